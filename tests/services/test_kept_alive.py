"""Several requests on one connection, byte by byte, against both web servers as processes."""

import re
import socket
from collections.abc import Iterator
from typing import IO

import pytest
from django.conf import settings
from django.test import Client

from annotation.models import StoredFile, User
from testbed.factories import make_image_items, make_project, make_user
from tests.services.web_process import serving
from tests.support import child_environment

pytestmark = pytest.mark.django_db(transaction=True)
Answer = tuple[int, dict[str, str], bytes]


class Connection:
    """One connection, on which answers are read to the byte that their headers name."""

    def __init__(self, port: int, cookie: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.file: IO[bytes] = self.socket.makefile("rb")
        self.cookie = cookie

    def ask(self, method: str, path: str, *lines: str, body: bytes = b"") -> Answer:
        head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Cookie: {self.cookie}", *lines, "", ""]
        self.socket.sendall("\r\n".join(head).encode() + body)
        return self.answer(method)

    def answer(self, method: str) -> Answer:
        first = self.file.readline()
        found = re.fullmatch(rb"HTTP/1\.1 (\d{3}) .*\r\n", first)
        assert found, f"no beginning of an answer: {first[:80]!r}"
        headers: dict[str, str] = {}
        while (line := self.file.readline()) != b"\r\n":
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        status = int(found[1])
        if method == "HEAD" or status in (204, 304):
            return status, headers, b""
        if "chunked" in headers.get("transfer-encoding", ""):
            return status, headers, self._chunks()
        return status, headers, self.file.read(int(headers["content-length"]))

    def _chunks(self) -> bytes:
        content = b""
        while size := int(self.file.readline(), 16):
            content += self.file.read(size)
            self.file.readline()
        self.file.readline()
        return content

    def goes_on(self) -> bool:
        """Whether a next request is answered as it should be; else the server closed the connection, having
        sent nothing more."""
        try:
            status, _, content = self.ask("GET", "/healthz")
        except (AssertionError, ConnectionError):
            assert self.file.read() == b""
            return False
        assert (status, content) == (200, b"ok\n")
        return True


@pytest.fixture(params=["waitress", "gunicorn"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    with serving(request.param, child_environment()) as port:
        yield port


@pytest.fixture
def connection(port: int) -> Iterator[Connection]:
    owner = make_user("owner")
    client = Client()
    client.force_login(owner)
    made = Connection(port, f"{settings.SESSION_COOKIE_NAME}={client.cookies['sessionid'].value}")
    yield made
    made.socket.close()


def test_a_head_is_answered_without_a_body_and_the_connection_goes_on(connection: Connection) -> None:
    project = make_project(User.objects.get())
    make_image_items(project, 1)
    image = f"/projects/{project.slug}/images/{StoredFile.objects.get().sha256}/"
    paths = {
        "/": 200,
        "/login/": 302,
        "/static/site.js": 200,
        image: 200,
        f"/projects/{project.slug}/": 200,
        "/api/v1/projects/": 200,
        "/api/v1/schema/": 200,
        "/api/v1/nothing/": 404,
        "/nothing/": 404,
        "/logout/": 405,
        "/healthz": 200,
    }
    for path, expected in paths.items():
        status, of_head, _ = connection.ask("HEAD", path)
        assert status == expected, path
        assert connection.goes_on(), path
        _, of_get, content = connection.ask("GET", path)
        assert of_head["content-length"] == of_get["content-length"] == str(len(content)), path
        assert content or status in (302, 405), path


def test_an_answer_without_a_body_leaves_nothing_behind(connection: Connection) -> None:
    _, headers, _ = connection.ask("GET", "/static/site.js")
    since = f"If-Modified-Since: {headers['last-modified']}"
    assert connection.ask("GET", "/static/site.js", since)[0] == 304
    connection.goes_on()  # waitress closes it


def test_nothing_follows_the_head_of_an_answer_whose_length_nobody_knows(connection: Connection) -> None:
    project = make_project(User.objects.get())
    for path in ("labels.ndjson", "items.ndjson"):
        again = Connection(connection.socket.getpeername()[1], connection.cookie)
        status, headers, _ = again.ask("HEAD", f"/api/v1/projects/{project.slug}/{path}")
        assert (status, headers["content-type"]) == (200, "application/x-ndjson")
        again.goes_on()


def test_a_body_that_is_refused_is_no_request(connection: Connection) -> None:
    """A 413 that is answered before the body was read: what is left of it must not be taken for requests."""
    body = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 150_000
    for method in ("POST", "HEAD"):
        again = Connection(connection.socket.getpeername()[1], connection.cookie)
        try:
            status, _, _ = again.ask(method, "/login/", f"Content-Length: {len(body)}", body=body)
        except (ConnectionError, AssertionError):  # closed while it was being sent
            continue
        assert status == 413
        again.goes_on()


def test_whoever_waits_to_be_told_to_go_on_is_told(connection: Connection) -> None:
    token = "csrfmiddlewaretoken=x&username=nobody"
    head = ["POST /login/ HTTP/1.1", "Host: localhost", "Expect: 100-continue"]
    head += ["Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(token)}", "", ""]
    connection.socket.sendall("\r\n".join(head).encode())
    assert connection.file.readline().startswith(b"HTTP/1.1 100 ")
    assert connection.file.readline() == b"\r\n"
    connection.socket.sendall(token.encode())
    status, _, _ = connection.answer("POST")
    assert status == 403
    assert connection.goes_on()
