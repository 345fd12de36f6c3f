"""Tables whose rows are facts: the database itself refuses to change them.

Triggers are (re)made after every migration, because SQLite drops them when Django rebuilds a table.
Deleting is left
open: a project that is deleted takes its facts along.
"""

from typing import Any

from django.db import connections

_tables: set[str] = set()


def register(*tables: str) -> None:
    """Name tables whose rows may be added and deleted, never updated. Called from AppConfig.ready."""
    _tables.update(tables)


def install(*, using: str = "default", **_: Any) -> None:
    """Put the triggers in place on the tables that exist (a `post_migrate` handler)."""
    connection = connections[using]
    with connection.cursor() as cursor:
        existing = set(connection.introspection.table_names(cursor))
        for table in sorted(_tables & existing):
            for statement in _statements(connection.vendor, table):
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
            f"CREATE OR REPLACE FUNCTION {table}_append_only() RETURNS trigger AS "
            f"$$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = 'integrity_constraint_violation'; END $$ "
            "LANGUAGE plpgsql",
            f"CREATE OR REPLACE TRIGGER {table}_append_only BEFORE UPDATE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION {table}_append_only()",
        ]
    return []
