"""The client for addresses that people enter, beside servers that misbehave in every way."""

import gzip
import socket
import threading
import time
import traceback
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from annotation.outside.net import GuardedClient, NetError
from testbed.scripted_server import Reply, ScriptedServer
from tests.annotation.outside.net_requests import SHORT, refusal, url_of
from tests.raw_server import RawServer, ok, request_of, says, silent

pytestmark = pytest.mark.costly


@pytest.fixture(autouse=True)
def _private(settings):
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1", "localhost"]


@pytest.fixture
def client():
    made = GuardedClient()
    yield made
    made.close()


# --- Too much -----------------------------------------------------------------------------------------------


def _chunked(*parts):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


def _endless(head, part):
    def handle(connection):
        request_of(connection)
        connection.sendall(head)
        while True:
            connection.sendall(part)

    return handle


BIG = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n"


@pytest.mark.parametrize(
    "handle",
    [
        says(ok(b"x" * 1_001)),
        says(_chunked(*[b"x"] * 1_001) + b"0\r\n\r\n"),
        says(ok(gzip.compress(b"x" * 1_001), "Content-Encoding: gzip")),
        says(ok(gzip.compress(b"\0" * 50_000_000), "Content-Encoding: gzip")),
        _endless(BIG, b"x" * 5_000),
        _endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 5_000),
        _endless(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
    ids=["length", "chunked", "gzip", "bomb", "endless length", "endless", "endless chunks"],
)
def test_a_large_answer_ends_at_the_limit(handle):
    client = GuardedClient(max_bytes=1_000)
    with RawServer(handle) as server:
        assert refusal(client, server) == ("too_large", True)


def test_an_answer_may_be_as_large_as_the_limit():
    client = GuardedClient(max_bytes=1_000)
    for answer in (ok(b"x" * 1_000), ok(gzip.compress(b"x" * 1_000), "Content-Encoding: GZIP")):
        with RawServer(says(answer)) as server:
            assert client.request("GET", url_of(server)).content == b"x" * 1_000


def test_a_bomb_is_never_unpacked(monkeypatch):
    """Only the limit and a byte of its 50 MB ever come out of the decompressor."""
    made = []
    real = zlib.decompressobj

    class Watched:
        def __init__(self, **options):
            self._inner = real(**options)

        def decompress(self, part, most):
            made.append(len(out := self._inner.decompress(part, most)))
            return out

        def __getattr__(self, name):
            return getattr(self._inner, name)

    monkeypatch.setattr("annotation.outside.net.client.zlib.decompressobj", Watched)
    bomb = ok(gzip.compress(b"\0" * 50_000_000), "Content-Encoding: gzip")
    with RawServer(says(bomb)) as server:
        refusal(GuardedClient(max_bytes=1_000), server)
    assert made
    assert sum(made) <= 1_001


def test_endless_headers_end(client):
    with RawServer(_endless(b"HTTP/1.1 200 OK\r\n", b"X-Secret: secret\r\n" * 100)) as server:
        assert refusal(client, server) == ("protocol", False)


def test_a_header_longer_than_any_that_is_read_is_left_out(client):
    with RawServer(says(ok(b"ok", "Retry-After: " + "1" * 90_000, "ETag: kept"))) as server:
        answer = client.request("GET", url_of(server))
    assert (answer.content, answer.headers.get("etag")) == (b"ok", "kept")
    assert "retry-after" not in answer.headers


def test_an_answer_with_more_headers_than_anybody_sends_is_refused(client):
    with RawServer(says(ok(b"ok", *["X-Many: 1"] * 201))) as server:
        assert refusal(client, server) == ("too_large", True)
    with RawServer(says(ok(b"ok", *["X-Many: 1"] * 190))) as server:
        assert client.request("GET", url_of(server)).status == 200


# --- Too slow -----------------------------------------------------------------------------------------------


def _dribble(head, part, pause=0.02):
    def handle(connection):
        request_of(connection)
        connection.sendall(head)
        while True:
            time.sleep(pause)
            connection.sendall(part)

    return handle


@pytest.mark.parametrize(
    "handle",
    [
        silent,
        _dribble(BIG, b"x"),
        _dribble(b"HTTP/1.1 200 OK\r\n", b"x"),
        _dribble(b"HTTP/1.1 200 OK\r\n", b"X-Y: z\r\n"),
        _dribble(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        _dribble(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        _dribble(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    ],
    ids=["silent", "body", "header", "headers", "informational", "chunks", "length of a chunk"],
)
def test_no_server_holds_a_request_longer_than_its_deadline(handle):
    client = GuardedClient(read_timeout=20, total_timeout=SHORT)
    with RawServer(handle) as server:
        assert refusal(client, server) == ("timeout", False)


def test_a_server_that_issilent_for_too_long_is_given_up(client):
    with RawServer(silent) as server:
        assert refusal(GuardedClient(read_timeout=SHORT), server) == ("timeout", False)
        assert refusal(client, server, total_timeout=SHORT) == ("timeout", False)


def test_a_server_that_does_not_take_what_is_sent_is_given_up():
    client = GuardedClient(read_timeout=20, total_timeout=SHORT)

    def slow(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        while True:
            connection.recv(1024)
            time.sleep(0.05)

    with RawServer(slow) as server:
        assert refusal(client, server, content=b"x" * 20_000_000) == ("timeout", False)


def test_waiting_for_a_free_connection_counts():
    client = GuardedClient(max_connections=1)
    arrived, over = threading.Event(), threading.Event()

    def hold(connection):
        request_of(connection)
        arrived.set()
        over.wait(60)
        connection.sendall(ok())

    with RawServer(hold) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.request, "GET", url_of(server))
        assert arrived.wait(60)
        assert refusal(client, server, total_timeout=SHORT) == ("timeout", False)
        over.set()
        assert first.result().content == b"ok"
        assert server.connections == 1


def test_a_slow_look_up_counts(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **o: time.sleep(3))
    with pytest.raises(NetError, match="looked up in time") as caught:
        GuardedClient(total_timeout=SHORT).request("GET", "http://example.org/")
    assert caught.value.kind == "timeout"


# --- Broken -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(200, {"secret": 1}, reset=True), "reset"),
        (Reply(200, {"secret": "x" * 1_000}, reset=True, cut=10), "reset"),
        (Reply(200, {"secret": "x" * 1_000}, cut=10), "protocol"),
        (Reply(200, b"", headers={"Content-Length": "x"}), "protocol"),
    ],
    ids=["reset", "reset in the body", "cut off", "length"],
)
def test_a_connection_that_breaks(client, reply, kind):
    with ScriptedServer() as server:
        server.route("GET", "/?q=asked", reply)
        assert refusal(client, server) == (kind, False)


@pytest.mark.parametrize(
    "answer",
    [
        b"secret\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6 secret\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsecret\r\n",
        ok(b"secret", "Content-Encoding: gzip"),
        ok(gzip.compress(b"secret")[:-4], "Content-Encoding: gzip"),
        ok(gzip.compress(b"secret") + b"more", "Content-Encoding: gzip"),
        ok(b"secret", "Content-Encoding: br"),
        b"",
    ],
    ids=[
        "no header",
        "status",
        "ssh",
        "chunk",
        "no gzip",
        "gzip cut off",
        "more than gzip",
        "brotli",
        "nothing",
    ],
)
def test_what_is_no_answer(client, answer):
    with RawServer(says(answer, close=True)) as server:
        assert refusal(client, server) == ("protocol", False)


def test_a_broken_request_leaves_the_client_usable(client):
    with ScriptedServer() as server:
        server.route("GET", "/?q=asked", Reply(200, {"a": "x" * 99}, cut=3))
        server.route("GET", "/", {"fine": True})
        for _ in range(3):
            refusal(client, server)
            assert client.request("GET", url_of(server)).json() == {"fine": True}


@pytest.mark.parametrize("body", [b"secret", b"", b"\xff", b"[" * 100_000, b"1" * 10_000])
def test_content_that_is_no_json_is_said_and_not_repeated(client, body):
    with RawServer(says(ok(body))) as server:
        answer = client.request("GET", url_of(server))
    with pytest.raises(NetError, match=r"status 200\) is no JSON") as caught:
        answer.json()
    assert "secret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "key", ["secret\r\nX: y", "secret\nX: y", "secret\0", "geheim-ü-secret", "secret\ud800"]
)
def test_a_header_that_cannot_be_sent_is_said_and_not_repeated(client, key):
    with RawServer(says(ok())) as server:
        kind, permanent = refusal(client, server, headers={"Authorization": f"Bearer {key}"})
    assert (kind, permanent) == ("request", True)


# --- Where the status is all that counts --------------------------------------------------------------------


def _dripping(connection):
    request_of(connection)
    connection.sendall(BIG)
    while True:
        time.sleep(0.01)
        connection.sendall(b"x")


@pytest.mark.parametrize(
    "handle",
    [
        _endless(BIG, b"x" * 5_000),
        _endless(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        _dripping,
        says(BIG + b"cut off"),
        says(ok(b"no gzip", "Content-Encoding: gzip")),
        says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno length of a chunk\r\n"),
    ],
    ids=["long", "endless chunks", "dripping", "cut off", "no gzip", "no chunk"],
)
def test_a_content_that_nobody_reads_spoils_nothing(handle, monkeypatch):
    monkeypatch.setattr("annotation.outside.net.client.SKIP_SECONDS", 0.2)
    client = GuardedClient(max_bytes=1_000)
    with RawServer(handle) as server:
        for _time in range(2):
            answer = client.request("POST", url_of(server), read_content=False)
            assert (answer.status, answer.content) == (200, b"")
    client.close()


def test_a_short_content_that_nobody_reads_leaves_the_connection_usable(client):
    def handle(connection):
        for _time in range(3):
            request_of(connection)
            connection.sendall(ok(b"taken"))

    with RawServer(handle) as server:
        for _time in range(3):
            assert client.request("GET", url_of(server), read_content=False).status == 200
        assert server.connections == 1


def test_without_a_status_it_stays_a_failure():
    with RawServer(says(b"HTTP/1.1 2")) as server, pytest.raises(NetError) as caught:
        GuardedClient(read_timeout=SHORT).request("GET", url_of(server), read_content=False)
    assert caught.value.permanent is False
