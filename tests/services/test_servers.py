"""The servers that the tests start: they come up, survive a kill, and the site runs on them."""

import psycopg
import redis

from testbed.servers import PostgresServer, RedisServer
from tests.services.conftest import Site


def test_postgres_keeps_what_was_committed_when_it_is_killed(
    postgres_server: PostgresServer,
) -> None:
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
    postgres_server.kill()
    assert not postgres_server.ping()
    postgres_server.start()
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        row = connection.execute("SELECT value FROM kept").fetchone()
        connection.execute("DROP TABLE kept")
    assert row == (7,)


def test_each_postgres_test_has_an_empty_database(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert rows == []


def test_redis_starts_empty_and_again_after_a_stop(redis_server: RedisServer, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
    redis_server.stop()
    assert not redis_server.ping()
    redis_server.start()
    assert redis_server.ping()


def test_the_site_migrates_on_postgres_and_has_no_open_model_changes(postgres_site: Site) -> None:
    assert "[ ]" not in postgres_site.manage("showmigrations", "--plan")
    postgres_site.manage("makemigrations", "--check", "--dry-run")
    postgres_site.manage("check", "--database", "default")
