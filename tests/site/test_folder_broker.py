"""Messages in a folder: whole, once, and no end of a worker where one is torn."""

import os
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import pytest
from kombu import Connection, Consumer, Exchange, Queue
from kombu.utils.json import dumps, loads

from hypac_site.celery import app
from hypac_site.folder_broker import TORN_SECONDS, Transport

pytestmark = pytest.mark.costly


def queue_of(folder: Path) -> Queue:
    """Of another name in each test: what is bound in a process kombu remembers beside the folder."""
    return Queue(folder.name, Exchange(folder.name, type="direct"), routing_key="work")


def connect(folder: Path) -> Connection:
    options = {
        "data_folder_in": str(folder / "messages"),
        "data_folder_out": str(folder / "messages"),
        "control_folder": str(folder / "control"),
        "polling_interval": 0.001,
    }
    return Connection("filesystem://localhost", transport=Transport, transport_options=options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "messages").mkdir()
    return tmp_path


@pytest.fixture
def connection(folder: Path) -> Iterator[Connection]:
    with connect(folder) as made:
        yield made


def _queue(connection: Connection) -> Queue:
    return queue_of(Path(connection.transport_options["control_folder"]).parent)


def send(connection: Connection, *bodies: object) -> None:
    queue = _queue(connection)
    with connection.Producer() as producer:
        for body in bodies:
            producer.publish(body, exchange=queue.exchange, routing_key="work", declare=[queue])


def received(connection: Connection, count: int = 0, seconds: float = 0.3) -> list[object]:
    """As a worker waits for what comes, until it has come so often; raises what would end it."""
    got: list[object] = []

    def take(body: object, message: object) -> None:
        got.append(body)
        message.ack()

    began = time.monotonic()
    with Consumer(connection, _queue(connection), callbacks=[take], accept=["json"]):
        while (spent := time.monotonic() - began) < seconds or (len(got) < count and spent < 60):
            try:
                connection.drain_events(timeout=0.05)
            except TimeoutError:
                continue
    return got


def messages(folder: Path) -> list[Path]:
    return sorted((folder / "messages").iterdir())


def test_the_site_uses_it() -> None:
    assert isinstance(app.connection_for_write().transport, Transport)


def test_what_is_sent_comes_once(connection, folder) -> None:
    send(connection, {"n": 1}, {"n": 2})
    assert sorted(map(dumps, received(connection, 2))) == ['{"n": 1}', '{"n": 2}']
    assert messages(folder) == []


@pytest.mark.parametrize("part", [0, 40])
def test_a_message_that_is_being_written_waits_until_it_is_whole(connection, folder, part) -> None:
    """As a writer leaves it that gives it its name first: empty, or as far as it has come."""
    send(connection, {"n": 1})
    (path,) = messages(folder)
    whole = path.read_bytes()
    with path.open("wb", buffering=0) as file:
        file.write(whole[:part])
        assert received(connection) == []
        assert messages(folder) == [path]
        send(connection, {"n": 2})
        assert received(connection, 1) == [{"n": 2}]  # and nothing behind it waits
        file.write(whole[part:])
    assert received(connection, 1) == [{"n": 1}]
    assert messages(folder) == []


def test_one_that_stays_torn_goes_and_is_said(connection, folder, caplog) -> None:
    send(connection, {"n": 1}, {"n": 2})
    path = messages(folder)[0]
    path.write_bytes(path.read_bytes()[:-20])
    long_ago = time.time() - TORN_SECONDS - 1
    os.utime(path, (long_ago, long_ago))
    assert len(received(connection, 1)) == 1
    assert messages(folder) == []
    assert path.name in caplog.text


def test_a_torn_table_of_listeners_is_made_anew(folder) -> None:
    table = folder / "control" / f"{folder.name}.exchange"
    table.parent.mkdir()
    table.write_text('[["work", "", "wo')
    with connect(folder) as connection:
        send(connection, {"n": 1})
        assert received(connection, 1) == [{"n": 1}]
    assert loads(table.read_text()) == [["work", "", folder.name]]


def _write(folder: Path, writer: int, count: int) -> None:
    with connect(folder) as connection:
        for number in range(count):
            send(connection, {"writer": writer, "n": number})


def test_of_many_writers_everything_comes_once(connection, folder) -> None:
    writers = [get_context("spawn").Process(target=_write, args=(folder, n, 100)) for n in range(3)]
    for writer in writers:
        writer.start()
    got: list[object] = []
    while any(writer.is_alive() for writer in writers) or messages(folder):
        got += received(connection, seconds=0.2)
    got += received(connection, 300 - len(got), seconds=0.2)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert len(got) == len({dumps(body) for body in got}) == 300
