"""Tables whose rows are facts, and columns that are: the database itself refuses to change them.

Triggers are (re)made after every migration, because SQLite drops them when Django rebuilds a table.
Deleting is left
open: a project that is deleted takes its facts along. And of a fact a column may be emptied, where that is
named: what a person or an item was is erased, never altered.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connections

# Of each table the columns that may be emptied, with what they then hold, as SQL.
_tables: dict[str, dict[str, str]] = {}


@dataclass(frozen=True)
class _Columns:
    fixed: tuple[str, ...]
    once: dict[str, str]
    message: str


_columns: dict[str, _Columns] = {}
_DIFFERS = {"sqlite": "IS NOT", "postgresql": "IS DISTINCT FROM"}


def register(*tables: str) -> None:
    """Name tables whose rows may be added and deleted, never updated. Called from AppConfig.ready."""
    for table in tables:
        _tables.setdefault(table, {})


def register_emptied(table: str, **emptied: str) -> None:
    """Name columns of such a table that may be emptied, each with what it holds then, as SQL."""
    _tables[table] = emptied


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

        def present_in(table: str) -> set[str]:
            cursor.execute(f"SELECT * FROM {table} LIMIT 0")  # noqa: S608 - its name is ours
            return {column[0] for column in cursor.description}

        for table in sorted(_tables.keys() & existing):
            for statement in _statements(connection.vendor, table, present_in(table)):
                cursor.execute(statement)
        for table in sorted(_columns.keys() & existing):
            present, columns = present_in(table), _columns[table]
            if not present.issuperset([*columns.fixed, *columns.once]):
                continue  # an older state of the table, in the middle of a migration to a named one
            for statement in _column_statements(connection.vendor, table, columns):
                cursor.execute(statement)
            if table not in _tables:  # it may have been one of those that are fixed as a whole
                on_table = f" ON {table}" if connection.vendor == "postgresql" else ""
                cursor.execute(f"DROP TRIGGER IF EXISTS {table}_append_only{on_table}")


def _statements(vendor: str, table: str, present: set[str]) -> list[str]:
    """For a whole table: what would change any of its columns is refused, but for those that are emptied."""
    differs, emptied = _DIFFERS.get(vendor), _tables[table]
    changed = [f"NEW.{column} {differs} OLD.{column}" for column in sorted(present - emptied.keys())]
    changed += [
        f"(NEW.{column} {differs} OLD.{column} AND NEW.{column} {differs} {empty})"
        for column, empty in sorted(emptied.items())
        if column in present
    ]
    message = f"{table} is append-only: add a new row that names the one it replaces"
    condition = " OR ".join(changed) if emptied else "true"
    return _refusing_trigger(vendor, table, f"{table}_append_only", condition, message)


def _column_statements(vendor: str, table: str, columns: _Columns) -> list[str]:
    """As for a whole table, where one of the columns would change."""
    differs = _DIFFERS.get(vendor)
    changed = [f"NEW.{column} {differs} OLD.{column}" for column in columns.fixed]
    changed += [
        f"(NEW.{column} {differs} OLD.{column} AND NOT (OLD.{column} {still_open}))"
        for column, still_open in columns.once.items()
    ]
    return _refusing_trigger(vendor, table, f"{table}_fixed", " OR ".join(changed), columns.message)


def _refusing_trigger(vendor: str, table: str, name: str, condition: str, message: str) -> list[str]:
    """Which columns it names may differ from version to version, so that the trigger is made anew."""
    if vendor == "sqlite":
        return [
            f"DROP TRIGGER IF EXISTS {name}",
            f"CREATE TRIGGER {name} BEFORE UPDATE ON {table} WHEN {condition} "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END",
        ]
    if vendor == "postgresql":
        # The condition stands in the function: in the trigger it would bind the columns, and no later
        # migration could change the type of one.
        return [
            f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger AS $$ BEGIN IF {condition} THEN "
            f"RAISE EXCEPTION '{message}' USING ERRCODE = 'integrity_constraint_violation'; "
            "END IF; RETURN NEW; END $$ LANGUAGE plpgsql",
            f"CREATE OR REPLACE TRIGGER {name} BEFORE UPDATE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION {name}()",
        ]
    return []
