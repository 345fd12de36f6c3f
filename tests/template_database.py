"""A migrated database that is made once and copied wherever a test needs one.

`manage.py migrate` makes it, so that it holds all that an installation's has, triggers included: a file below
.pytest_cache for SQLite, a database beside the others on a PostgreSQL server. Its name tells what it was made
from; where that has changed, the next one takes its place. Processes that start together wait for the first.
"""

import fcntl
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import django
import psycopg
from django.apps import apps
from django.conf import settings
from psycopg import sql

from annotation.common import append_only

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / ".pytest_cache" / "hypac"
PREFIX = "hypac_template_"
# Those of the process that made it are not those of a test.
NO_SETTINGS = "DELETE FROM annotation_agreedsettings"


def copy_sqlite(target: Path) -> None:
    """Put a migrated database into the file `target`, which does not exist."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with open(KEPT / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        template = KEPT / f"{_name()}.sqlite3"
        if not template.exists():
            for other in KEPT.glob(f"{PREFIX}*"):
                other.unlink()
            with TemporaryDirectory(dir=KEPT) as folder:
                _migrate(HYPAC_VAR=folder, DATABASE_URL="")
                made = Path(folder) / "hypac.sqlite3"
                with closing(sqlite3.connect(made)) as file:  # nothing stays in files beside it
                    with file:
                        file.execute(NO_SETTINGS)
                    file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                made.rename(template)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(template, target)


def copy_postgres(server_url: str, name: str) -> str:
    """Make the migrated database `name` on the server of `server_url`, in place of an older one; its URL."""
    template = _name()
    # Held until the session ends, so that nobody opens a template while it is copied.
    with psycopg.connect(_url(server_url, "postgres"), autocommit=True) as server:
        server.execute("SELECT pg_advisory_lock(hashtext(%s))", [PREFIX])
        rows = server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [PREFIX])
        there = [found for (found,) in rows.fetchall()]
        if template not in there:
            for other in there:
                _run(server, "DROP DATABASE {}", other)
            unfinished = f"{PREFIX}unfinished"
            _run(server, "CREATE DATABASE {}", unfinished)
            with TemporaryDirectory() as folder:
                _migrate(HYPAC_VAR=folder, DATABASE_URL=_url(server_url, unfinished))
            with psycopg.connect(_url(server_url, unfinished)) as made:
                made.execute(NO_SETTINGS)
            _run(server, "ALTER DATABASE {} RENAME TO {}", unfinished, template)
        _run(server, "DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
        _run(server, "CREATE DATABASE {} TEMPLATE {}", name, template)
    return _url(server_url, name)


def _migrate(**environment: str) -> None:
    outcome = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity=0"],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "hypac_site.settings", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if outcome.returncode != 0:
        raise RuntimeError(f"manage.py migrate failed:\n{outcome.stdout}{outcome.stderr}")


def _name() -> str:
    """Stands for all that decides what `migrate` makes: migrations, triggers, rights and kinds of rows."""
    folders = [Path(app.path) / "migrations" for app in apps.get_app_configs()]
    files = sorted(path for folder in folders for path in folder.glob("*.py"))
    metas = [model._meta for model in apps.get_models()]
    parts = [
        *(django.get_version(), sqlite3.sqlite_version, settings.INSTALLED_APPS, settings.MIGRATION_MODULES),
        *(sorted(append_only._tables), sorted(append_only._columns.items())),
        *((meta.label, meta.permissions, meta.default_permissions) for meta in metas),
    ]
    found = hashlib.sha256(repr(parts).encode())
    for path in [Path(append_only.__file__), *files]:
        found.update(path.read_bytes())
    return PREFIX + found.hexdigest()[:16]


def _run(server: psycopg.Connection, statement: str, *names: str) -> None:
    server.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _url(server_url: str, database: str) -> str:
    return urlsplit(server_url)._replace(path=f"/{database}").geturl()
