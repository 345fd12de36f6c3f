"""A PostgreSQL and a Redis for the tests in this folder.

Taken from HYPAC_TEST_POSTGRES_URL (a server on which databases may be made) and HYPAC_TEST_REDIS_URL (a
database that may be emptied) where they are set, else started from installed programs, else the test is
skipped - or fails, in CI. `postgres_server` and `redis_server` are always the tests' own, as only those may
be stopped and killed.
"""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from testbed.hub_server import Hub, running_hub
from testbed.object_store import Bucket, ObjectStoreServer
from testbed.servers import PostgresServer, RedisServer, create_database, drop_database
from tests.support import missing
from tests.template_database import copy_postgres

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running server. A test that stops or kills it starts it again before it ends."""
    binaries = PostgresServer.installed()
    if binaries is None:
        missing("postgres", "No PostgreSQL server is installed.")
    with PostgresServer(binaries) as server:
        yield server


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """URL of an empty database, dropped after the test."""
    server_url, name = _server_url(request), _new_name()
    yield create_database(server_url, name)
    drop_database(server_url, name)


@pytest.fixture
def migrated_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """URL of a migrated database, dropped after the test."""
    server_url, name = _server_url(request), _new_name()
    yield copy_postgres(server_url, name)
    drop_database(server_url, name)


def _server_url(request: pytest.FixtureRequest) -> str:
    named = os.environ.get("HYPAC_TEST_POSTGRES_URL")
    return named or request.getfixturevalue("postgres_server").url("postgres")


def _new_name() -> str:
    return f"hypac_test_{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A running server. A test that stops or kills it starts it again before it ends."""
    program = RedisServer.installed()
    if program is None:
        missing("redis", "No Redis server is installed.")
    with RedisServer(program) as server:
        yield server


@pytest.fixture
def redis_url(request: pytest.FixtureRequest) -> str:
    """URL of an empty Redis database."""
    url = os.environ.get("HYPAC_TEST_REDIS_URL")
    if not url:
        url = request.getfixturevalue("redis_server").url()
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    return url


@dataclass(frozen=True)
class Site:
    """A HyPAC installation of its own: `environment` for its processes, `manage` to run a command."""

    environment: dict[str, str]

    def manage(self, *arguments: str, timeout: float = 400) -> str:
        """Run `manage.py` to its end; returns what it printed, fails the test if it failed."""
        outcome = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if outcome.returncode != 0:
            pytest.fail(
                f"manage.py {' '.join(arguments)} failed:\n{outcome.stdout}{outcome.stderr}", pytrace=False
            )
        return outcome.stdout


@pytest.fixture
def postgres_site(migrated_url: str, tmp_path: Path) -> Site:
    """An installation on PostgreSQL, migrated, with a state folder of its own and the embedded broker."""
    return Site(
        {
            **os.environ,
            "DATABASE_URL": migrated_url,
            "HYPAC_VAR": str(tmp_path / "var"),
            "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
        }
    )


@pytest.fixture(scope="module")
def object_store() -> Iterator[ObjectStoreServer]:
    with ObjectStoreServer() as server:
        yield server


@pytest.fixture
def bucket(object_store: ObjectStoreServer, settings: Any) -> Bucket:
    """A bucket of its own, which a project may be connected to."""
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    return object_store.bucket()


@pytest.fixture
def hub(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A Hub of its own, which the site asks."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between two requests of the library
    with running_hub() as running:
        settings.HYPAC_HUB_ENDPOINT = running.url
        yield running
