"""A web host and two worker hosts that share PostgreSQL, Redis and an object store, and nothing else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.hosts import Host
from testbed.hosts_story import Story, environment_of
from testbed.object_store import Bucket, ObjectStoreServer
from testbed.servers import free_port

ROWS = 4_000


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with ObjectStoreServer() as server:
        yield server.bucket()


@pytest.fixture
def hosts(postgres_url: str, redis_url: str, bucket: Bucket, tmp_path: Path) -> Iterator[list[Host]]:
    environment = environment_of(bucket, postgres_url, redis_url, f"127.0.0.1:{free_port()}")
    logs = tmp_path / "logs"
    logs.mkdir()
    made = [Host(name, tmp_path / name, environment, logs=logs) for name in ("web", "one", "two")]
    yield made
    for host in made:
        host.stop()


@pytest.mark.slow
def test_each_worker_host_may_die_in_the_middle_and_nothing_is_lost(
    hosts: list[Host], bucket: Bucket, postgres_url: str, tmp_path: Path
) -> None:
    web, one, two = hosts
    story = Story(
        *hosts,
        address=f"http://{web.environment['HYPAC_WEB_BIND']}",
        database_url=postgres_url,
        rows=ROWS,
        folder=tmp_path,
    )
    told = story.tell()
    assert told.rows == ROWS
    assert told.different < 0.1 * ROWS, "what models may label wrongly"
    assert told.verified
    assert told.images == 20
    # Both hosts began with the first of the two imports, and both with the predictions: whoever was killed
    # at it, the other did the rest. A busy machine may have somebody begin once more: nobody counts that.
    assert set(told.begun["import"]) == {one.name, two.name}
    assert len(told.begun["import"]) >= 3
    assert set(told.begun["prepare_run"]) == {one.name, two.name}
    # The other jobs go to whichever host is quicker.
    assert {who for _, _, who in told.stages} <= {"web", one.name, two.name}
    # No host kept a file of the project: what was uploaded and what was made lies in the store.
    for name, files in told.files.items():
        assert not [file for file in files if file.startswith("var/media") or "batches" in file], name
    assert len(bucket.names()) >= 20 + 2 + 5
