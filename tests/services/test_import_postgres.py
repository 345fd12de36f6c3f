"""An import on PostgreSQL, where rows are copied: a worker that is killed loses and doubles nothing."""

import os

import psycopg

from tests.annotation.test_import_killed import kill_twice


def test_an_import_goes_on_where_its_worker_was_killed(postgres_url: str, tmp_path) -> None:
    environment = {**os.environ, "DATABASE_URL": postgres_url, "HYPAC_VAR": str(tmp_path)}

    def ask(statement: str) -> tuple[int, ...]:
        with psycopg.connect(postgres_url) as connection:
            row = connection.execute(statement).fetchone()  # type: ignore[arg-type]
            assert row
            return tuple(row)

    kill_twice(environment, ask)
