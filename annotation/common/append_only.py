"""Tables whose rows are facts, and columns that are: the database itself refuses to change them.

Triggers are (re)made after every migration, because SQLite drops them when Django rebuilds a table.
Deleting is left
open: a project that is deleted takes its facts along.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connections

_tables: set[str] = set()


@dataclass(frozen=True)
class _Columns:
    fixed: tuple[str, ...]
    once: dict[str, str]
    message: str


_columns: dict[str, _Columns] = {}


def register(*tables: str) -> None:
    """Name tables whose rows may be added and deleted, never updated. Called from AppConfig.ready."""
    _tables.update(tables)


def register_columns(table: str, *, fixed: Iterable[str], once: dict[str, str], message: str) -> None:
    """Name the columns of a table that are facts, while its other columns may change.

    `fixed` never change after the row was added. `once` may be filled in later, one time: each with the SQL
    that is true of its old value as long as that has not happened, such as "IS NULL". `message` is what an
    update of one of them is refused with.
    """
    _columns[table] = _Columns(tuple(fixed), once, message)


def install(*, using: str = "default", **_: Any) -> None:
    """Put the triggers in place on the tables that exist (a `post_migrate` handler)."""
    connection = connections[using]
    with connection.cursor() as cursor:
        existing = set(connection.introspection.table_names(cursor))
        for table in sorted(_tables & existing):
            for statement in _statements(connection.vendor, table):
                cursor.execute(statement)
        for table in sorted(_columns.keys() & existing):
            present = {
                column.name for column in connection.introspection.get_table_description(cursor, table)
            }
            columns = _columns[table]
            if not present.issuperset([*columns.fixed, *columns.once]):
                continue  # an older state of the table, in the middle of a migration to a named one
            for statement in _column_statements(connection.vendor, table, columns):
                cursor.execute(statement)


def _statements(vendor: str, table: str) -> list[str]:
    message = f"{table} is append-only: add a new row that names the one it replaces"
    if vendor == "sqlite":
        return [
            f"CREATE TRIGGER IF NOT EXISTS {table}_append_only BEFORE UPDATE ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
        ]
    if vendor == "postgresql":
        return [
            *_refusing_function(f"{table}_append_only", message),
            f"CREATE OR REPLACE TRIGGER {table}_append_only BEFORE UPDATE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION {table}_append_only()",
        ]
    return []


def _column_statements(vendor: str, table: str, columns: _Columns) -> list[str]:
    """As for a whole table, where one of the columns would change; which ones may differ from version to
    version, so that the trigger is made anew.
    """
    name, differs = f"{table}_fixed", {"sqlite": "IS NOT", "postgresql": "IS DISTINCT FROM"}.get(vendor)
    changed = [f"NEW.{column} {differs} OLD.{column}" for column in columns.fixed]
    changed += [
        f"(NEW.{column} {differs} OLD.{column} AND NOT (OLD.{column} {still_open}))"
        for column, still_open in columns.once.items()
    ]
    condition = " OR ".join(changed)
    if vendor == "sqlite":
        return [
            f"DROP TRIGGER IF EXISTS {name}",
            f"CREATE TRIGGER {name} BEFORE UPDATE ON {table} WHEN {condition} "
            f"BEGIN SELECT RAISE(ABORT, '{columns.message}'); END",
        ]
    if vendor == "postgresql":
        # The condition stands in the function: in the trigger it would bind the columns, and no later
        # migration could change the type of one.
        return [
            *_refusing_function(name, columns.message, condition=condition),
            f"CREATE OR REPLACE TRIGGER {name} BEFORE UPDATE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION {name}()",
        ]
    return []


def _refusing_function(name: str, message: str, *, condition: str = "true") -> list[str]:
    return [
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger AS $$ BEGIN IF {condition} THEN "
        f"RAISE EXCEPTION '{message}' USING ERRCODE = 'integrity_constraint_violation'; "
        "END IF; RETURN NEW; END $$ LANGUAGE plpgsql"
    ]
