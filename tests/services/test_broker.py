"""The same code on PostgreSQL and Redis: a worker takes jobs from the broker; emptying it loses none."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kombu
import psycopg
import pytest
import redis
from kombu.transport import redis as redis_transport

from hypac_site import redis_broker
from testbed.servers import RedisServer
from tests.services.conftest import ROOT, Site

ROWS = 500
START_IMPORT = """
import django; django.setup()
import sys
from annotation.models import User
from annotation.common.files import store_file
from annotation.imports.upload import ColumnMapping, start_import
from annotation.projects.manage import ChoiceSpec, create_project
user = User.objects.create_user("manager")
project = create_project(user=user, name="Broker", choices=[ChoiceSpec("yes"), ChoiceSpec("no")])
with open(sys.argv[1], "rb") as file:
    stored = store_file(project=project, content=file, original_name="items.csv", media_type="text/csv")
mapping = ColumnMapping(id_column="id", text_column="text")
start_import(project=project, user=user, stored_file=stored, mapping=mapping)
"""
RECONCILE = "import django; django.setup(); from annotation.jobs import jobs; print(jobs.reconcile())"


def test_a_job_goes_through_redis_and_survives_an_emptied_broker(
    postgres_site: Site, migrated_url: str, redis_url: str, tmp_path: Path
) -> None:
    site = Site(postgres_site.environment | {"CELERY_BROKER_URL": redis_url})
    file = tmp_path / "items.csv"
    file.write_text("id,text\n" + "".join(f"{number},text {number}\n" for number in range(ROWS)))

    python(site, START_IMPORT, str(file))
    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("default") == 1, "the message waits in Redis"
        client.flushdb()
    with psycopg.connect(migrated_url, autocommit=True) as database, worker(site):

        def value(query: str) -> Any:
            row = database.execute(query).fetchone()
            return row and row[0]

        assert value("SELECT state FROM annotation_job") == "queued"
        database.execute("UPDATE annotation_job SET heartbeat_at = now() - interval '1 minute'")
        assert python(site, RECONCILE).strip() == "1"
        until(lambda: value("SELECT state FROM annotation_job") == "done")
        assert value("SELECT count(*) FROM annotation_item") == ROWS
        assert value("SELECT attempts FROM annotation_job") == 1


def acknowledge(message: kombu.Message) -> None:
    message.ack()


def reject(message: kombu.Message) -> None:
    message.reject()


def give_back(message: kombu.Message) -> None:
    message.requeue()


@pytest.mark.parametrize("settle", [acknowledge, reject, give_back])
def test_a_message_that_redis_hears_nothing_of_keeps_no_place(
    redis_server: RedisServer,
    settle: Callable[[kombu.Message], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redis_transport.Channel, "QoS", redis_transport.QoS)  # put back afterwards
    url = redis_server.url()  # one of the tests' own, as it is stopped
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    redis_broker.install(url)
    got: list[kombu.Message] = []
    with kombu.Connection(url, transport_options={"socket_timeout": 1}) as connection:
        queue = kombu.Queue("places", channel=connection)
        for number in range(2):
            connection.Producer().publish({"number": number}, routing_key="places", declare=[queue])
        consumer = connection.Consumer(queue, prefetch_count=1, on_message=got.append)
        with consumer:
            connection.drain_events(timeout=60)
            redis_server.send(signal.SIGSTOP)
            try:
                with pytest.raises(redis.exceptions.TimeoutError):
                    settle(got[0])
            finally:
                redis_server.send(signal.SIGCONT)
            connection.drain_events(timeout=60)
            assert [message.decode()["number"] for message in got] == [0, 1]
            got[1].ack()


def python(site: Site, code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=site.environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def worker(site: Site) -> Iterator[None]:
    """A Celery worker as docs/configuration.md starts it."""
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "hypac_site",
        "worker",
        "-Q",
        "default,models",
        "-c",
        "1",
    ]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=site.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(condition: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.1)
