"""An import on PostgreSQL, where rows are copied: a worker that is killed loses and doubles nothing."""

from pathlib import Path

from tests.annotation.installation import Installation
from tests.services.test_import_killed import kill_twice


def test_an_import_goes_on_where_its_worker_was_killed(migrated_url: str, tmp_path: Path) -> None:
    kill_twice(Installation(tmp_path, url=migrated_url))
