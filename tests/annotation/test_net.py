"""The client for addresses that people enter, against servers that behave in every way."""

import datetime
import gzip
import json
import socket
import ssl
import threading
import time
import traceback
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from annotation.net import GuardedClient, NetError
from tests.raw_server import RawServer, ok, request_of, says
from tests.scripted_server import Reply, ScriptedServer

SHORT = 0.4
"""Seconds: the deadline of requests to servers that would never end."""


@pytest.fixture(autouse=True)
def _private(settings):
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1", "localhost"]


@pytest.fixture
def client():
    made = GuardedClient()
    yield made
    made.close()


def _url(server, path="/", scheme="http"):
    return f"{scheme}://127.0.0.1:{server.port}{path}"


def _refusal(client, server, *, scheme="http", **options):
    """The NetError of a request. Its words hold nothing of what was sent or received."""
    with pytest.raises(NetError) as caught:
        client.request("GET", _url(server, "/?q=asked", scheme), **options)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    return caught.value.kind, caught.value.permanent


def test_json_goes_out_and_comes_back(client):
    with ScriptedServer() as server:
        server.route("POST", "/echo", lambda request: {"got": request.body, "is": request.headers["x-test"]})
        answer = client.request(
            "POST", _url(server, "/echo"), json={"text": "Zürich"}, headers={"X-Test": "yes"}
        )
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json() == {"got": {"text": "Zürich"}, "is": "yes"}


def test_content_and_files_go_out_as_they_are(client):
    with ScriptedServer() as server:
        server.route("PUT", "/raw", {})
        server.route("POST", "/files", {})
        client.request("PUT", _url(server, "/raw"), content=b"\x00\x01")
        client.request("POST", _url(server, "/files"), files={"file": ("a.jsonl", b"{}\n")})
        raw, form = server.requests
    assert raw.body == b"\x00\x01"
    assert form.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert b'filename="a.jsonl"' in form.body


@pytest.mark.parametrize("status", [201, 400, 401, 404, 429, 500, 503])
def test_an_answer_of_any_status_is_an_answer(client, status):
    with ScriptedServer() as server:
        server.route("GET", "/", Reply(status, {"error": "x"}, headers={"Retry-After": "7"}))
        answer = client.request("GET", _url(server))
    assert (answer.status, answer.headers["retry-after"], answer.json()) == (status, "7", {"error": "x"})


def test_a_redirect_is_not_followed(client):
    with RawServer(says(ok(b"secret"))) as inside, ScriptedServer() as server:
        server.route("GET", "/", Reply(302, b"", headers={"Location": _url(inside)}))
        answer = client.request("GET", _url(server))
    assert (answer.status, inside.connections, len(server.requests)) == (302, 0, 1)


def test_nothing_is_kept_or_taken_from_elsewhere(client, monkeypatch):
    """No cookie of an answer, no proxy and no password of the environment."""
    with RawServer(says(ok(b"secret"))) as proxy, ScriptedServer() as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://ann:secret@127.0.0.1:{proxy.port}")
        server.route("GET", "/", Reply(200, {}, headers={"Set-Cookie": "a=b; Path=/"}))
        GuardedClient().request("GET", _url(server))
        client.request("GET", _url(server))
        client.request("GET", _url(server))
        sent = [request.headers for request in server.requests]
    assert proxy.connections == 0
    assert [set(headers) & {"cookie", "authorization"} for headers in sent] == [set()] * 3
    assert sent[0]["user-agent"] == "HyPAC"


def test_a_connection_is_used_again(client):
    with RawServer(says(ok())) as server:
        for _ in range(3):
            assert client.request("GET", _url(server)).content == b"ok"
    assert server.connections == 1


def test_a_connection_that_the_server_closed_is_not(client):
    with RawServer(says(ok(), close=True)) as server:
        for _ in range(3):
            assert client.request("GET", _url(server)).content == b"ok"
    assert server.connections == 3


def test_threads_get_their_own_answers_over_no_more_connections_than_allowed():
    client = GuardedClient(max_connections=3)

    def own(connection):
        while True:
            path = request_of(connection).split(b" ")[1]
            connection.sendall(ok(path))

    with RawServer(own) as server, ThreadPoolExecutor(8) as pool:
        paths = [f"/{number}" for number in range(80)]
        answers = list(pool.map(lambda path: client.request("GET", _url(server, path)).content, paths))
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
            assert client.request("GET", _url(server)).status == 200
        assert left.wait(10)
        client.request("GET", _url(second))
        assert second.connections == 1


def test_nobody_listens(client):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(NetError, match=f"port {port}") as caught:
        client.request("GET", f"http://127.0.0.1:{port}/")
    assert (caught.value.kind, caught.value.permanent) == ("connect", False)


def test_an_address_of_the_wrong_form_is_a_net_error_too(client):
    with pytest.raises(NetError, match="starts with http") as caught:
        client.request("GET", "ftp://example.org/")
    assert (caught.value.kind, caught.value.permanent) == ("url", True)


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
        assert _refusal(client, server) == ("too_large", True)


def test_an_answer_may_be_as_large_as_the_limit():
    client = GuardedClient(max_bytes=1_000)
    for answer in (ok(b"x" * 1_000), ok(gzip.compress(b"x" * 1_000), "Content-Encoding: GZIP")):
        with RawServer(says(answer)) as server:
            assert client.request("GET", _url(server)).content == b"x" * 1_000


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

    monkeypatch.setattr("annotation.net.client.zlib.decompressobj", Watched)
    bomb = ok(gzip.compress(b"\0" * 50_000_000), "Content-Encoding: gzip")
    with RawServer(says(bomb)) as server:
        _refusal(GuardedClient(max_bytes=1_000), server)
    assert made
    assert sum(made) <= 1_001


def test_endless_headers_end(client):
    with RawServer(_endless(b"HTTP/1.1 200 OK\r\n", b"X-Secret: secret\r\n" * 100)) as server:
        assert _refusal(client, server) == ("protocol", False)


# --- Too slow -----------------------------------------------------------------------------------------------


def _dribble(head, part, pause=0.02):
    def handle(connection):
        request_of(connection)
        connection.sendall(head)
        while True:
            time.sleep(pause)
            connection.sendall(part)

    return handle


def _silent(connection):
    time.sleep(30)


@pytest.mark.parametrize(
    "handle",
    [
        _silent,
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
        assert _refusal(client, server) == ("timeout", False)


def test_a_server_that_is_silent_for_too_long_is_given_up(client):
    with RawServer(_silent) as server:
        assert _refusal(GuardedClient(read_timeout=SHORT), server) == ("timeout", False)
        assert _refusal(client, server, total_timeout=SHORT) == ("timeout", False)


def test_a_server_that_does_not_take_what_is_sent_is_given_up():
    client = GuardedClient(read_timeout=20, total_timeout=SHORT)

    def slow(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        while True:
            connection.recv(1024)
            time.sleep(0.05)

    with RawServer(slow) as server:
        assert _refusal(client, server, content=b"x" * 20_000_000) == ("timeout", False)


def test_waiting_for_a_free_connection_counts():
    client = GuardedClient(max_connections=1)
    arrived = threading.Event()

    def hold(connection):
        request_of(connection)
        arrived.set()
        _silent(connection)

    with RawServer(hold) as server:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(_refusal, client, server, total_timeout=3 * SHORT)
            assert arrived.wait(10)
            assert _refusal(client, server, total_timeout=SHORT) == ("timeout", False)
        assert first.result() == ("timeout", False)


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
        assert _refusal(client, server) == (kind, False)


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
)
def test_what_is_no_answer(client, answer):
    with RawServer(says(answer, close=True)) as server:
        assert _refusal(client, server) == ("protocol", False)


def test_a_broken_request_leaves_the_client_usable(client):
    with ScriptedServer() as server:
        server.route("GET", "/?q=asked", Reply(200, {"a": "x" * 99}, cut=3))
        server.route("GET", "/", {"fine": True})
        for _ in range(3):
            _refusal(client, server)
            assert client.request("GET", _url(server)).json() == {"fine": True}


@pytest.mark.parametrize("body", [b"secret", b"", b"\xff", b"[" * 100_000, b"1" * 10_000])
def test_content_that_is_no_json_is_said_and_not_repeated(client, body):
    with RawServer(says(ok(body))) as server:
        answer = client.request("GET", _url(server))
    with pytest.raises(NetError, match=r"status 200\) is no JSON") as caught:
        answer.json()
    assert "secret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "key", ["secret\r\nX: y", "secret\nX: y", "secret\0", "geheim-ü-secret", "secret\ud800"]
)
def test_a_header_that_cannot_be_sent_is_said_and_not_repeated(client, key):
    with RawServer(says(ok())) as server:
        kind, permanent = _refusal(client, server, headers={"Authorization": f"Bearer {key}"})
    assert (kind, permanent) == ("request", True)


# --- TLS ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for localhost that nobody signed, and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return file


def _tls(certificate, answer):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def handle(connection):
        with context.wrap_socket(connection, server_side=True) as encrypted:
            says(answer)(encrypted)

    return handle


def test_a_certificate_that_nobody_trusts_is_refused(client, certificate):
    with RawServer(_tls(certificate, ok(b"secret"))) as server:
        assert _refusal(client, server, scheme="https") == ("tls", True)


def test_a_certificate_authority_of_ones_own_is_trusted_for_its_name_alone(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    from annotation.net.client import _tls as trusted

    trusted.cache_clear()
    try:
        client = GuardedClient()
    finally:
        trusted.cache_clear()
    with RawServer(_tls(certificate, ok(json.dumps({"a": 1}).encode()))) as server:
        for _ in range(2):
            assert client.request("GET", f"https://localhost:{server.port}/").json() == {"a": 1}
        assert server.connections == 1
        assert _refusal(client, server, scheme="https") == ("tls", True)


def test_a_server_that_does_not_speak_tls(client):
    def plain(connection):
        connection.recv(1024)
        connection.sendall(b"HTTP/1.1 400 secret\r\n\r\n")

    with RawServer(plain) as server:
        with pytest.raises(NetError, match="speak https") as caught:
            client.request("GET", _url(server, scheme="https"))
        assert (caught.value.kind, caught.value.permanent) == ("tls", False)


def test_a_handshake_does_not_outlast_the_deadline():
    client = GuardedClient(connect_timeout=20, total_timeout=SHORT)
    with RawServer(_silent) as server:
        assert _refusal(client, server, scheme="https") == ("timeout", False)
