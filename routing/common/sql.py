"""Set-based writes that the ORM has no words for."""

from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import BigIntegerField, Func, Model, QuerySet, TextField, Value
from django.db.models.sql.compiler import SQLCompiler

from routing.core.sampling import tie_breaks


def insert_select(model: type[Model], fields: tuple[str, ...], rows: QuerySet[Any, Any]) -> int:
    """INSERT INTO model (fields) SELECT rows, in one statement; returns how many rows came in.

    `rows` is a `values_list` in the order of `fields`.
    """
    meta, quote = model._meta, connection.ops.quote_name
    columns = ", ".join(quote(_column(meta.get_field(name))) for name in fields)
    try:
        select, params = rows.query.sql_with_params()
    except EmptyResultSet:  # the conditions exclude every row
        return 0
    with connection.cursor() as cursor:
        # Names come from the models, values go in as parameters.
        cursor.execute(f"INSERT INTO {quote(meta.db_table)} ({columns}) {select}", params)
        return int(cursor.rowcount)


def analyse_tables(*models: type[Model], new: int | None = None) -> None:
    """Have PostgreSQL look at tables into which many rows have come, so that it plans the next statements for
    them: it would do so by itself, a minute after they are committed. Locks out no reader and no writer, and
    waits for nobody who looks at them meanwhile.

    `new`: how many rows came into each by this call; a table for which that is little is left to PostgreSQL.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for model in models:
                table = connection.ops.quote_name(model._meta.db_table)
                if new is None or new > _little(cursor, table):
                    cursor.execute(f"ANALYZE (SKIP_LOCKED) {table}")


def _little(cursor: CursorWrapper, table: str) -> float:
    """The threshold of autovacuum, by its default settings; of large tables less, as what is new is often all
    that the next statement is about.
    """
    cursor.execute("SELECT reltuples FROM pg_class WHERE oid = %s::regclass", [table])
    (rows,) = cursor.fetchone()  # -1: it was never looked at
    return min(50 + 0.1 * max(rows, 0), 1_000)


def _column(field: Any) -> str:
    return str(field.column)


class TieBreak(Func):
    """`routing.core.sampling.tie_breaks` in the database: the 53-bit V of an item from the run's salt and
    its id.
    """

    output_field = BigIntegerField()

    def __init__(self, salt: str, item_id: str) -> None:
        super().__init__(Value(salt), item_id)

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        connection.ensure_connection()
        connection.connection.create_function(
            "hypac_tie_break", 2, lambda salt, name: int(tie_breaks(salt, [name])[0]), deterministic=True
        )
        return self.as_sql(compiler, connection, function="hypac_tie_break", **context)

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        salt, name = self.get_source_expressions()
        salt_sql, salt_params = compiler.compile(salt)
        name_sql, name_params = compiler.compile(name)
        salt_bytes = f"convert_to(({salt_sql})::text, 'UTF8')"
        name_bytes = f"convert_to(({name_sql})::text, 'UTF8')"
        text = rf"{salt_bytes} || '\x00'::bytea || {name_bytes}"
        bits = f"('x' || encode(substr(sha256({text}), 1, 8), 'hex'))::bit(64)::bigint"
        # The shift keeps the sign, so that the upper bits are masked off.
        return f"(({bits} >> 11) & 9007199254740991)", (*salt_params, *name_params)


class DataCell(Func):
    """The text in a column of imported data, null where an item lacks it.

    The column may have any name: in the lookups of a JSONField "2" is the third entry of a list, and on
    SQLite a quotation mark ends the name.
    """

    output_field = TextField()

    def __init__(self, data: str, column: str) -> None:
        super().__init__(data, Value(column))

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        return self._select(compiler, "(SELECT value FROM json_each({data}) WHERE key = {column})")

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        return self._select(compiler, "({data} ->> ({column})::text)")

    def _select(self, compiler: SQLCompiler, template: str) -> Any:
        (data, first), (column, last) = map(compiler.compile, self.get_source_expressions())
        return template.format(data=data, column=column), (*first, *last)
