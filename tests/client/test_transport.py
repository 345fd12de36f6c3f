"""What is sent again and what is not, errors, and that the token stays where it belongs."""

import gzip
import json
import logging
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from hypac_client import (
    AuthenticationError,
    BadRequestError,
    Client,
    ConflictError,
    GoneError,
    HypacError,
    InvalidError,
    NotAllowedError,
    NotFoundError,
    RateLimitedError,
    ServerError,
    UnavailableError,
)
from hypac_client.command import _refuse
from tests.client.scripted import SITE, TOKEN, ok, problem, scripted


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(status: int) -> None:
    client, script, pauses = scripted(problem(status), problem(status), ok({"slug": "a"}))
    assert client.projects.get("a").slug == "a"
    assert len(script.requests) == 3
    assert 0 < pauses[0] < pauses[1] + 1


@pytest.mark.parametrize(
    "error", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), httpx.RemoteProtocolError("cut")]
)
def test_a_lost_connection_is_tried_again_and_a_write_keeps_its_key(error: Exception) -> None:
    client, script, _ = scripted(error, problem(503), ok({"slug": "a"}, status=201))
    client.projects.create("a", choices=["yes", "no"])
    keys = {request.headers["Idempotency-Key"] for request in script.requests}
    assert len(script.requests) == 3
    assert len(keys) == 1
    assert {request.content for request in script.requests} == {script.requests[0].content}


class Cut(httpx.SyncByteStream):
    """Ends before it is whole."""

    def __iter__(self) -> Iterator[bytes]:
        yield b'{"detail": "N'
        raise httpx.ReadError("cut")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("status", [200, 409])
def test_an_answer_that_cannot_be_read_to_its_end_is_told_as_one(*, status: int, streamed: bool) -> None:
    kinds = {"Content-Type": "application/json"}
    garbled = {**kinds, "Content-Encoding": "gzip"}

    def read(client: Client) -> None:
        with client._transport.stream("projects/a/") as response:
            response.read()

    for answer in (
        httpx.Response(status, stream=Cut(), headers=kinds),
        httpx.Response(status, content=iter([b"no gzip"]), headers=garbled),
    ):
        client, script, _ = scripted(answer, attempts=1)
        with pytest.raises(HypacError, match=r"broke off|does not answer"):
            read(client) if streamed else client.projects.get("a")
        assert not script.replies


@pytest.mark.parametrize("status", [200, 400])
def test_what_is_small_as_it_comes_and_large_unpacked_is_not_read_to_its_end(status: int) -> None:
    packer = zlib.compressobj(level=1, wbits=31)
    pieces = [packer.compress(bytes(10**6)) for _ in range(120)]
    kinds = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    client, script, _ = scripted(httpx.Response(status, content=iter(pieces), headers=kinds))
    with pytest.raises(HypacError, match="more than 100,000,000 bytes"):
        client.projects.get("a")
    assert not script.replies
    packed = gzip.compress(b'{"slug": "a"}')
    client, _, _ = scripted(httpx.Response(200, content=iter([packed]), headers=kinds))
    assert client.projects.get("a").slug == "a"


def test_each_write_has_a_key_of_its_own_and_a_read_none() -> None:
    client, script, _ = scripted(ok({"slug": "a"}), ok({"slug": "b"}), ok({"slug": "a"}))
    client.projects.create("a")
    client.projects.create("b")
    client.projects.get("a")
    first, second, read = (request.headers.get("Idempotency-Key") for request in script.requests)
    assert first
    assert second
    assert first != second
    assert read is None


def test_it_waits_as_long_as_the_server_asks_for() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    replies = [problem(429, headers={"Retry-After": "17"}), problem(503, headers={"Retry-After": later})]
    client, _, pauses = scripted(*replies, problem(503, headers={"Retry-After": "soon"}), ok({"slug": "a"}))
    client.projects.get("a")
    assert pauses[0] == 17
    assert 80 < pauses[1] <= 90
    assert pauses[2] < 5


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("%d %b %Y %H:%M:%S -0000", 60),
        ("%d %b %Y %H:%M:%S", 60),
        ("%d %b %Y 99:99:99 +0000", 0),
        ("x -0000", 0),
        ("%d %b 99999999999999999999 %H:%M:%S +0000", 0),
    ],
)
def test_it_reads_each_moment_that_can_be_written(stamp: str, seconds: int) -> None:
    later = (datetime.now(UTC) + timedelta(seconds=60)).strftime(stamp)
    client, _, pauses = scripted(problem(503, headers={"Retry-After": later}), ok({"slug": "a"}))
    client.projects.get("a")
    assert abs(pauses[0] - seconds) < 20


def test_a_list_without_an_end_is_told() -> None:
    page = {"results": [{"slug": "a"}], "next": f"{SITE}/api/v1/projects/?cursor=1"}
    client, script, _ = scripted(*[ok(page)] * 9)
    with pytest.raises(HypacError, match="the same page again"):
        list(client.projects)
    assert len(script.requests) == 2


@pytest.mark.parametrize(
    "path",
    [
        "http://elsewhere.example/x",
        "https:x",
        "//elsewhere.example/x",
        "../../x",
        "projects/%2e%2e/x",
        "projects/a\x00b/",
        "http://[x",
        f"projects/{'x' * 70_000}/",
        "\\\\e/x",
    ],
)
def test_the_token_goes_to_no_other_address(path: str) -> None:
    client, script, _ = scripted()
    with pytest.raises(HypacError, match="a path below /api/v1/ is wanted") as refused:
        client._transport.request("GET", path)
    assert len(str(refused.value)) < 300
    assert not script.requests


def test_what_is_still_at_work_is_waited_for_and_other_conflicts_are_told() -> None:
    for lost in (httpx.ReadTimeout("slow"), problem(502), problem(503), problem(504)):
        client, script, pauses = scripted(lost, *[at_work()] * 5, ok({"slug": "a"}, status=201), attempts=2)
        client.projects.create("a")
        assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 1
        assert len(script.requests) == 7
        assert pauses[-1] > 2 * pauses[1]
        client, script, _ = scripted(lost, problem(409, "Another run is under way."))
        with pytest.raises(ConflictError, match="Another run"):
            client.projects.create("a")
        assert len(script.requests) == 2


def test_what_stays_at_work_is_waited_for_about_as_long_as_for_an_answer() -> None:
    client, _, pauses = scripted(httpx.ReadTimeout("slow"), *[at_work()] * 50)
    with pytest.raises(ConflictError, match="Still at work"):
        client.projects.create("a")
    assert 60 <= sum(pauses[1:]) < 60 + 30


def at_work() -> httpx.Response:
    return problem(409, "Still at work.", headers={"Retry-After": "1"})


def test_it_gives_up_with_the_last_reason() -> None:
    client, script, pauses = scripted(*[problem(429, "Slow down.")] * 4)
    with pytest.raises(RateLimitedError, match="Slow down"):
        client.projects.get("a")
    assert (len(script.requests), len(pauses)) == (4, 3)
    client, _, _ = scripted(*[httpx.ConnectError("refused")] * 4)
    with pytest.raises(HypacError, match=r"labels\.example\.org does not answer: refused") as caught:
        client.projects.get("a")
    assert caught.value.status is None


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, AuthenticationError), (403, NotAllowedError), (404, NotFoundError), (400, HypacError)],
)
def test_a_refusal_is_told_at_once_with_its_field(status: int, kind: type[HypacError]) -> None:
    client, script, _ = scripted(
        problem(status, "That is too much.", field="epsilon", errors={"epsilon": ["That is too much."]})
    )
    with pytest.raises(kind) as caught:
        client.projects.get("a")
    error = caught.value
    assert (error.status, error.detail, error.field) == (status, "That is too much.", "epsilon")
    assert error.errors == {"epsilon": ["That is too much."]}
    assert str(error) == f"epsilon: That is too much. (HTTP {status})"
    assert len(script.requests) == 1


def test_what_is_no_problem_document_is_told_as_well() -> None:
    client, _, _ = scripted(httpx.Response(500, text="<h1>Oops</h1>"))
    with pytest.raises(HypacError, match="Oops"):
        client.projects.get("a")
    client, _, _ = scripted(httpx.Response(200, text="<h1>Welcome</h1>"))
    with pytest.raises(HypacError, match="something else than JSON"):
        client.projects.get("a")


@pytest.mark.parametrize(
    ("params", "query"),
    [(None, "page_size=2"), ({}, "page_size=2"), ({"cursor": "x", "q": None}, "page_size=2&cursor=x")],
)
def test_a_query_in_the_path_is_sent(params: dict[str, Any] | None, query: str) -> None:
    client, script, _ = scripted(ok({"results": []}))
    client.request("GET", "projects/a/items/?page_size=2", params=params)
    assert str(script.requests[0].url) == f"{SITE}/api/v1/projects/a/items/?{query}"


def test_a_redirect_is_not_followed() -> None:
    client, script, _ = scripted(httpx.Response(301, headers={"Location": "https://elsewhere.example.net/"}))
    with pytest.raises(HypacError, match=r"elsewhere\.example\.net"):
        client.projects.get("a")
    assert len(script.requests) == 1


def test_the_token_is_in_the_header_and_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client, script, _ = scripted(problem(401, "Wrong token."))
    with pytest.raises(AuthenticationError) as caught:
        client.projects.get("a")
    assert script.requests[0].headers["Authorization"] == f"Token {TOKEN}"
    assert TOKEN not in str(script.requests[0].url)
    seen = [repr(client), repr(client._transport), repr(client.projects), str(caught.value), caplog.text]
    assert not [text for text in seen if TOKEN in text]


@pytest.mark.parametrize(
    "url",
    [
        *(
            "labels.example.org",
            "ftp://labels.example.org",
            "https://me:secret@labels.example.org",
            "https://",
        ),
        *("https://[labels", "https://labels.example.org:99999", "https://labels\x00.example.org"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url is the site's address") as caught:
        Client(url, TOKEN)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("token", ["", " x", "x\n", "tökén"])
def test_a_token_that_is_none_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(ValueError, match="token is what") as caught:
        Client(SITE, token)
    assert not token.strip() or token not in str(caught.value)


def test_it_is_closed_at_the_end_of_the_block() -> None:
    client, _, _ = scripted()
    with client:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        client.projects.get("a")


def test_nobody_waits_for_a_day_because_a_server_asks_for_it() -> None:
    client, script, pauses = scripted(problem(429, "Too many keys.", headers={"Retry-After": "86000"}))
    with pytest.raises(RateLimitedError, match=r"Too many keys.*again after 86000 seconds") as caught:
        client.projects.create("a")
    assert (len(script.requests), pauses, caught.value.retry_after) == (1, [], 86000)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "parse_error", InvalidError),
        (409, "routed_already", ConflictError),
        (410, "image_lost", GoneError),
        (503, "unavailable", UnavailableError),
        (500, "server_error", ServerError),
    ],
)
def test_errors_have_the_code_of_the_server_and_a_kind_of_each_status(status, code, kind, capsys) -> None:
    fault = {"field": "params.model", "code": "required", "detail": "no"}
    answer = problem(status, code=code, faults=[fault])
    client, _, _ = scripted(*[answer] * 4)
    with pytest.raises(HypacError) as caught:
        client.me()
    assert (type(caught.value), caught.value.code, caught.value.faults) == (kind, code, [fault])
    _refuse(caught.value, as_json=True)
    assert isinstance(caught.value, BadRequestError) == (status == 400)
    told = json.loads(capsys.readouterr().err)
    assert (told["error"], told["code"], told["faults"]) == (kind.__name__, code, [fault])
