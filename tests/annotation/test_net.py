"""The client for addresses that people enter: what it sends, keeps and gives back."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from annotation.net import GuardedClient, NetError
from testbed.scripted_server import Reply, ScriptedServer
from testbed.servers import dead_port
from tests.annotation.net_requests import url_of
from tests.raw_server import RawServer, ok, request_of, says


@pytest.fixture(autouse=True)
def _private(settings):
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1", "localhost"]


@pytest.fixture
def client():
    made = GuardedClient()
    yield made
    made.close()


def test_json_goes_out_and_comes_back(client):
    with ScriptedServer() as server:
        server.route("POST", "/echo", lambda request: {"got": request.body, "is": request.headers["x-test"]})
        answer = client.request(
            "POST", url_of(server, "/echo"), json={"text": "Zürich"}, headers={"X-Test": "yes"}
        )
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json() == {"got": {"text": "Zürich"}, "is": "yes"}


def test_content_and_files_go_out_as_they_are(client):
    with ScriptedServer() as server:
        server.route("PUT", "/raw", {})
        server.route("POST", "/files", {})
        client.request("PUT", url_of(server, "/raw"), content=b"\x00\x01")
        client.request("POST", url_of(server, "/files"), files={"file": ("a.jsonl", b"{}\n")})
        raw, form = server.requests
    assert raw.body == b"\x00\x01"
    assert form.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert b'filename="a.jsonl"' in form.body


@pytest.mark.parametrize("status", [201, 400, 401, 404, 429, 500, 503])
def test_an_answer_of_any_status_is_an_answer(client, status):
    with ScriptedServer() as server:
        server.route("GET", "/", Reply(status, {"error": "x"}, headers={"Retry-After": "7"}))
        answer = client.request("GET", url_of(server))
    assert (answer.status, answer.headers["retry-after"], answer.json()) == (status, "7", {"error": "x"})


def test_a_redirect_is_not_followed(client):
    with RawServer(says(ok(b"secret"))) as inside, ScriptedServer() as server:
        server.route("GET", "/", Reply(302, b"", headers={"Location": url_of(inside)}))
        answer = client.request("GET", url_of(server))
    assert (answer.status, inside.connections, len(server.requests)) == (302, 0, 1)


def test_nothing_is_kept_or_taken_from_elsewhere(client, monkeypatch):
    """No cookie of an answer, no proxy and no password of the environment."""
    with RawServer(says(ok(b"secret"))) as proxy, ScriptedServer() as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://ann:secret@127.0.0.1:{proxy.port}")
        server.route("GET", "/", Reply(200, {}, headers={"Set-Cookie": "a=b; Path=/"}))
        GuardedClient().request("GET", url_of(server))
        client.request("GET", url_of(server))
        client.request("GET", url_of(server))
        sent = [request.headers for request in server.requests]
    assert proxy.connections == 0
    assert [set(headers) & {"cookie", "authorization"} for headers in sent] == [set()] * 3
    assert sent[0]["user-agent"] == "HyPAC"


def test_a_connection_is_used_again(client):
    with RawServer(says(ok())) as server:
        for _ in range(3):
            assert client.request("GET", url_of(server)).content == b"ok"
    assert server.connections == 1


def test_a_connection_that_the_server_closed_is_not(client):
    closed = threading.Semaphore(0)

    def once(connection):
        says(ok(), close=True)(connection)
        closed.release()

    with RawServer(once) as server:
        for _time in range(3):
            assert client.request("GET", url_of(server)).content == b"ok"
            assert closed.acquire(timeout=60)
            while not all(idle.has_expired() for _, idle in client._pool._idle):
                time.sleep(0.01)  # until the end of the connection has arrived
    assert server.connections == 3


def test_threads_get_their_own_answers_over_no_more_connections_than_allowed():
    client = GuardedClient(max_connections=3)

    def own(connection):
        while True:
            path = request_of(connection).split(b" ")[1]
            connection.sendall(ok(path))

    with RawServer(own) as server, ThreadPoolExecutor(8) as pool:
        paths = [f"/{number}" for number in range(80)]
        answers = list(pool.map(lambda path: client.request("GET", url_of(server, path)).content, paths))
        assert answers == [path.encode() for path in paths]
        assert server.connections <= 3


def test_no_more_idle_connections_are_kept_than_may_be_used():
    client = GuardedClient(max_connections=2)
    left = threading.Event()

    def first(connection):
        request_of(connection)
        connection.sendall(ok())
        if not connection.recv(1):
            left.set()

    with RawServer(first) as oldest, RawServer(says(ok())) as second, RawServer(says(ok())) as third:
        for server in (oldest, second, third):
            assert client.request("GET", url_of(server)).status == 200
        assert left.wait(60)
        client.request("GET", url_of(second))
        assert second.connections == 1


def test_nobody_listens(client):
    with dead_port() as port, pytest.raises(NetError, match=f"port {port}") as caught:
        client.request("GET", f"http://127.0.0.1:{port}/")
    assert (caught.value.kind, caught.value.permanent) == ("connect", False)


def test_an_address_of_the_wrong_form_is_a_net_error_too(client):
    with pytest.raises(NetError, match="starts with http") as caught:
        client.request("GET", "ftp://example.org/")
    assert (caught.value.kind, caught.value.permanent) == ("url", True)


def test_a_connection_that_was_in_use_when_the_client_was_closed_is_not_kept():
    client = GuardedClient()
    asked, close = threading.Event(), threading.Event()

    def answer(request):
        asked.set()
        close.wait(60)
        return {}

    with ScriptedServer() as server, ThreadPoolExecutor(1) as threads:
        server.route("GET", "/", answer)
        running = threads.submit(client.request, "GET", url_of(server))
        assert asked.wait(60)
        client.close()
        close.set()
        assert running.result().status == 200
        assert not client._pool._idle
