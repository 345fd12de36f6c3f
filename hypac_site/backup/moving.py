"""From SQLite to PostgreSQL: every row of this site copied into an empty database, and compared there."""

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

import dj_database_url
from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DatabaseError, connection, connections, models, transaction
from django.db.migrations.executor import MigrationExecutor

from annotation.common.bulk import copy_rows
from annotation.errors import HypacError, InputError

TARGET = "target"
# What `migrate` itself writes, with numbers of its own.
MADE_BY_MIGRATE = (ContentType, Permission)
AT_ONCE = 2000

Model = type[models.Model]
Say = Callable[[str], None]


def move(url: str, *, say: Say) -> int:
    """Copy all rows of this SQLite database into the PostgreSQL database at `url`; how many there were.

    One transaction holds it all: where it is cut off or a row differs, the other database stays as empty as
    it was, and it can be begun again. Nobody writes here meanwhile. Files stay where they are.

    Raises InputError for an address that is none of PostgreSQL, HypacError where this database is no
    SQLite, lacks migrations, or the other one holds anything.
    """
    if connection.vendor != "sqlite":
        raise HypacError(
            "This site does not use SQLite: `manage.py backup` and `restore` carry it elsewhere."
        )
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise HypacError("This database is of an older version: run `manage.py migrate` first.")
    _connect(url)
    try:
        _refuse_unless_empty()
        call_command("migrate", database=TARGET, verbosity=0, interactive=False)
        with transaction.atomic(), transaction.atomic(using=TARGET):
            return _copy(say)
    except DatabaseError as error:
        raise HypacError(f"Nothing was moved: {error}") from error
    finally:
        connections[TARGET].close()


def _connect(url: str) -> None:
    try:
        found: dict[str, Any] = dict(dj_database_url.parse(url))
    except (ValueError, dj_database_url.ParseError, dj_database_url.UnknownSchemeError):
        found = {}
    if found.get("ENGINE") != "django.db.backends.postgresql" or not found.get("NAME"):
        # Not the address: it may hold a password.
        raise InputError("That is no address of PostgreSQL. Write postgres://user:password@host:5432/name.")
    found["OPTIONS"] = {"connect_timeout": 10, "options": "-c jit=off"} | found.get("OPTIONS", {})
    both = connections.configure_settings({"default": connections.settings["default"], TARGET: found})
    connections.settings[TARGET] = both[TARGET]


def _refuse_unless_empty() -> None:
    known = {model._meta.db_table: model for model in _models()}
    for name in connections[TARGET].introspection.table_names():
        model = known.get(name)
        if name == "django_migrations" or model in MADE_BY_MIGRATE:
            continue
        if model is None or model._base_manager.using(TARGET).exists():
            raise HypacError(
                f"The other database is not empty: it has the table {name}. Make an empty one, and name that."
            )


def _models() -> list[Model]:
    every = apps.get_models(include_auto_created=True, include_swapped=False)
    return [model for model in every if model._meta.managed and not model._meta.proxy]


def _copy(say: Say) -> int:
    there, models_ = connections[TARGET], _models()
    with there.cursor() as cursor:
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SET LOCAL statement_timeout = 0")
        tables = ", ".join(there.ops.quote_name(model._meta.db_table) for model in models_)
        cursor.execute(f"TRUNCATE {tables}")
    total = 0
    for model in models_:
        names = [field.name for field in model._meta.concrete_fields]
        count = copy_rows(model, names, _rows(model, "default"), using=TARGET)
        _compare(model)
        total += count
        if count:
            say(f"{count:>12,}  {model._meta.db_table}")
    with there.cursor() as cursor:
        for statement in there.ops.sequence_reset_sql(no_style(), models_):
            cursor.execute(statement)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ANALYZE")
    return total


def _rows(model: Model, database: str) -> Iterator[tuple[Any, ...]]:
    columns = [field.attname for field in model._meta.concrete_fields]
    rows = model._base_manager.using(database).order_by("pk").values_list(*columns)
    return rows.iterator(chunk_size=AT_ONCE)


def _compare(model: Model) -> None:
    """Raise HypacError unless both databases have the same rows, value by value."""
    for mine, other in zip_longest(_rows(model, "default"), _rows(model, TARGET)):
        if mine != other:
            raise HypacError(
                f"Nothing was moved: {model._meta.db_table} would differ in the row {(mine or other)[0]!r}."
            )
