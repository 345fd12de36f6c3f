"""The database of a backup: taken as one snapshot beside all who write, and put back into an empty one."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from django.db import connection, transaction

from annotation.errors import HypacError, InputError

NAMED_FILES = "SELECT storage_name, size, sha256 FROM annotation_storedfile ORDER BY storage_name"
MIGRATIONS = "SELECT app, name FROM django_migrations ORDER BY app, name"
# Whoever has the key of a session is logged in by it: no backup has one, and none comes back.
SESSIONS = ("django_session", "annotation_signonsession")
# Handed to the programs of PostgreSQL in their environment: no password stands in a list of processes.
PG_VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
    "service": "PGSERVICE",
    "passfile": "PGPASSFILE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}
Row = tuple[Any, ...]


class Snapshot(Protocol):
    """A database as it was at one moment."""

    def rows(self, query: str) -> Iterator[Row]: ...


class Sqlite:
    name = "database.sqlite3"

    @contextmanager
    def dump(self, target: Path) -> Iterator[Snapshot]:
        with closing(sqlite3.connect(_sqlite_file(), timeout=60)) as live:
            # One read transaction: with WAL, writers go on meanwhile.
            live.execute("VACUUM INTO ?", (str(target),))
        with closing(sqlite3.connect(target)) as copy, copy:
            copy.execute("PRAGMA secure_delete = ON")  # with zeros in their place
            for table in SESSIONS:
                copy.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
        with closing(sqlite3.connect(f"file:{target}?mode=ro", uri=True)) as copy:
            if copy.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise HypacError("The database is damaged: `PRAGMA integrity_check` of SQLite says how.")
            yield _SqliteSnapshot(copy)

    def refuse_damaged(self, source: Path) -> None:
        """Raises InputError where the dump cannot be put back."""
        address = f"{source.resolve().as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(address, uri=True)) as copy:
                copy.execute("SELECT 1 FROM django_migrations LIMIT 1")
                (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            found = str(error)
        if found != "ok":
            raise InputError(
                f"The backup is damaged: its database cannot be read ({found}).", where=self.name
            )

    def restore(self, source: Path) -> None:
        connection.close()
        target = _sqlite_file()
        part = target.with_name(f"{target.name}.part")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        for beside in ("-wal", "-shm"):  # of the empty database that stood there
            target.with_name(target.name + beside).unlink(missing_ok=True)
        part.replace(target)


class _SqliteSnapshot:
    def __init__(self, copy: sqlite3.Connection) -> None:
        self._copy = copy

    def rows(self, query: str) -> Iterator[Row]:
        yield from self._copy.execute(query)


class Postgres:
    """With pg_dump and pg_restore, which must not be older than the server."""

    name = "database.dump"

    @contextmanager
    def dump(self, target: Path) -> Iterator[Snapshot]:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # It waits while pg_dump is at work.
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute("SELECT pg_export_snapshot()")
            (snapshot,) = cursor.fetchone()
            command = ["pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--no-comments"]
            command += [f"--exclude-table-data={table}" for table in SESSIONS]
            _run([*command, f"--snapshot={snapshot}", f"--file={target}"])
            yield _PostgresSnapshot()

    def refuse_damaged(self, source: Path) -> None:
        """By its list alone: what it holds is read when it is put back, all or nothing."""
        if shutil.which("pg_restore") is None:
            return  # whoever restores it is told
        try:
            _run(["pg_restore", "--list", "--file=/dev/null", str(source)])
        except HypacError as error:
            raise InputError(f"The database of the backup cannot be read. {error}", where=self.name) from None

    def restore(self, source: Path) -> None:
        connection.close()
        command = ["pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction"]
        _run([*command, f"--dbname={_pg_environment()['PGDATABASE']}", str(source)])


class _PostgresSnapshot:
    def rows(self, query: str) -> Iterator[Row]:
        with connection.chunked_cursor() as cursor:  # stays at the server: there may be millions
            cursor.execute(query)
            while found := cursor.fetchmany(2000):
                yield from found


def database() -> Sqlite | Postgres:
    return Postgres() if connection.vendor == "postgresql" else Sqlite()


def end_sessions() -> None:
    """Of a backup that still has them."""
    there = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        for table in there & set(SESSIONS):
            cursor.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours


def refuse_unless_empty() -> None:
    """Raise HypacError where the database of this site has tables."""
    tables = connection.introspection.table_names()
    if tables:
        raise HypacError(
            f"The database of this site is not empty: it has {len(tables)} tables. A backup is put back into "
            "an empty one only; make one, and name it in DATABASE_URL (or an empty folder in HYPAC_VAR)."
        )


def _sqlite_file() -> Path:
    return Path(str(connection.settings_dict["NAME"]))


def _pg_environment() -> dict[str, str]:
    known = connection.get_connection_params()
    named = {PG_VARIABLES[key]: str(value) for key, value in known.items() if key in PG_VARIABLES and value}
    return {**os.environ, **named}


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, env=_pg_environment(), capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise HypacError(
            f"The program {command[0]} is not installed. It comes with the client of PostgreSQL "
            "(Debian: postgresql-client)."
        ) from None
    if done.returncode != 0:
        raise HypacError(f"{command[0]} failed:\n{done.stderr.strip()}")
