"""Many rows into one table at once: COPY on PostgreSQL, one prepared INSERT elsewhere."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

from django.db import connections, models, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

Convert = Callable[[Any], Any]

BATCH = 1_000

# Texts, which are left as they are, and doubles as they are written from 1e16 on, all of them whole. Nothing
# is tried again within a number: one may have thousands of digits.
_LARGE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?(?<![0-9.])[0-9.]++e\+[0-9]++')

# Values of these go to the driver as they are; of a foreign key it is the key.
_AS_THEY_ARE = (
    models.BooleanField,
    models.CharField,
    models.FloatField,
    models.ForeignKey,
    models.IntegerField,
    models.TextField,
)


def copy_rows(
    model: type[models.Model], fields: Sequence[str], rows: Iterable[Sequence[Any]], *, using: str = ""
) -> int:
    """Add `rows`, each the values of `fields` in their order, and return how many there were.

    What bulk_create does, without an object for each row: values are not validated, and no keys come back.
    A foreign key is named like the field, and its value is the key. A field that is not named has the
    model's default, or the time, the same in every row. `using` names a database, if it is not the model's.

    All rows are added or none; inside of a transaction it is part of that. `rows` is read while the statement
    runs, so that it must not ask the database, and a slow one holds what the transaction holds. Raises
    IntegrityError where a constraint is broken.
    """
    connection = connections[using or router.db_for_write(model)]
    named = [_field(model, name) for name in fields]
    rest = [field for field in model._meta.concrete_fields if field not in named and not field.primary_key]
    blank = model()
    columns = [str(field.column) for field in (*named, *rest)]
    constants = [_converted(field.pre_save(blank, True), _converter(field, connection)) for field in rest]
    prepared = _Prepared(rows, [_converter(field, connection) for field in named], constants)
    insert = _copy if connection.vendor == "postgresql" else _insert
    with transaction.atomic(using=connection.alias):
        insert(connection, model._meta.db_table, columns, prepared)
    return prepared.count


class _Prepared:
    """Iterates over rows as the driver takes them, and counts them."""

    def __init__(
        self, rows: Iterable[Sequence[Any]], converters: Sequence[Convert | None], constants: Sequence[Any]
    ) -> None:
        self.count = 0
        self._rows = rows
        self._changes = [(place, convert) for place, convert in enumerate(converters) if convert]
        self._constants = constants

    def __iter__(self) -> Iterator[list[Any]]:
        for row in self._rows:
            values = [*row, *self._constants]
            for place, convert in self._changes:
                values[place] = convert(values[place])
            self.count += 1
            yield values


def _copy(connection: BaseDatabaseWrapper, table: str, columns: Sequence[str], rows: _Prepared) -> None:
    quote = connection.ops.quote_name
    statement = f"COPY {quote(table)} ({', '.join(map(quote, columns))}) FROM STDIN"
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
        write = copy.write_row
        for row in rows:
            write(row)


def _insert(connection: BaseDatabaseWrapper, table: str, columns: Sequence[str], rows: _Prepared) -> None:
    quote = connection.ops.quote_name
    places = ", ".join(["%s"] * len(columns))
    # The names come from the model.
    statement = f"INSERT INTO {quote(table)} ({', '.join(map(quote, columns))}) VALUES ({places})"  # noqa: S608
    values = iter(rows)
    with connection.cursor() as cursor:
        # Django keeps all that it is given until the statement is done.
        while batch := list(islice(values, BATCH)):
            cursor.executemany(statement, batch)


def _converted(value: Any, convert: Convert | None) -> Any:
    return convert(value) if convert else value


def _field(model: type[models.Model], name: str) -> "models.Field[Any, Any]":
    field = model._meta.get_field(name)
    if not isinstance(field, models.Field) or not field.concrete:
        raise ValueError(f"{name} is no column of {model.__name__}")
    return field


def _converter(field: "models.Field[Any, Any]", connection: BaseDatabaseWrapper) -> Convert | None:
    """What makes a value of the field one that the driver takes; None where it is one already."""
    if isinstance(field, models.JSONField):
        encode = (field.encoder or json.JSONEncoder)().encode
        return lambda value: None if value is None else _with_fractions(encode(value))
    if isinstance(field, _AS_THEY_ARE):
        return None
    return lambda value: field.get_db_prep_save(value, connection)


def _with_fractions(text: str) -> str:
    """JSON in which 1e+16 is 10000000000000000.0: PostgreSQL keeps numbers as decimals, and of that with an
    exponent it would make a whole number, which comes back as one.
    """
    return _LARGE.sub(_with_fraction, text) if "e+" in text else text


def _with_fraction(found: re.Match[str]) -> str:
    mark = found.group()
    return mark if mark.startswith('"') else f"{Decimal(mark):f}.0"
