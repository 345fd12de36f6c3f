"""An installation of a test's own, whose processes can be killed."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg

from tests.template_database import copy_sqlite

ROOT = Path(__file__).resolve().parents[2]


class Installation:
    """Its database is that of `url`, else a new SQLite file in `folder`. `settings` are environment variables
    beside.
    """

    def __init__(self, folder: Path, *, url: str = "", **settings: str) -> None:
        self.folder, self.url = folder, url
        kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        self.environment = {
            **kept,
            "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
            "HYPAC_VAR": str(folder),
            "HYPAC_JOB_STALE_SECONDS": "1",
            "HYPAC_LOG_LEVEL": "ERROR",
            **({"DATABASE_URL": url} if url else {}),
            **settings,
        }
        if not url:
            copy_sqlite(folder / "hypac.sqlite3")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, *arguments: str) -> str:
        """What it printed; it has to end well."""
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=900)
        assert process.returncode == 0, errors
        return output

    def row(self, statement: str) -> tuple[int, ...]:
        """The one row of a statement."""
        if self.url:
            with psycopg.connect(self.url) as server:
                found = server.execute(statement).fetchone()  # type: ignore[arg-type]
        else:
            with closing(sqlite3.connect(self.folder / "hypac.sqlite3", timeout=30)) as file:
                found = file.execute(statement).fetchone()
        assert found, statement
        return tuple(found)
