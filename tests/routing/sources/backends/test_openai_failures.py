"""docs/backends.md: everything that goes wrong between a model server and an answer, provoked one by one.

In each test the item ends as an answer with its reason, or is asked for again, or the source stops; and what
was answered is given back, once.
"""

import threading
import time

import pytest

from routing.core.scores import make_score
from routing.sources.backends import BackendError, predict_all
from routing.sources.backends.openai_api import endpoint, throttle
from testbed.scripted_replies import completion, failure
from testbed.scripted_server import Reply, ScriptedServer
from tests.routing.sources.backends.asking import KEY, answers, collected, items, open_api

pytestmark = [pytest.mark.costly, pytest.mark.long]


def score_of(answer, name="logits"):
    return make_score(name)({**answer.raw, "label": answer.value, "reason": answer.reason})


def for_item(number: int, reply):
    """A script that gives `reply` for one item, and "cat" for the others."""
    return lambda request: reply if request.prompt == f"item {number}" else "cat"


# --- Passing: it is asked again -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        Reply(500),
        Reply(502, b"<html>bad gateway</html>"),
        Reply(503, headers={"Retry-After": "0"}),
        Reply(408),
        Reply(409),
        Reply(425),
        Reply(200, failure("overloaded", code=None)),
        Reply(reset=True),
        Reply(body="cat", cut=20),
        Reply(body="cat", cut=20, reset=True),
        Reply(body="cat", cut=0),
        Reply(body=b"<html>please log in</html>"),
        Reply(body={"choices": None}),
        Reply(body=[1]),
    ],
    ids=[
        "500",
        "502",
        "503",
        "408",
        "409",
        "425",
        "failure in a good answer",
        "reset",
        "cut off in the body",
        "reset in the body",
        "cut off before the body",
        "html",
        "no choices",
        "no object",
    ],
)
def test_asked_again(server, reply):
    server.script(reply, reply)
    (answer,) = answers(open_api(server))
    assert (answer.value, answer.tokens_in) == ("cat", 10)
    assert len(server.calls) == 3


def test_a_connection_that_died_while_it_was_idle(server):
    backend = open_api(server, concurrency=1)

    def asked():
        yield items(1)[0]
        for connection in list(server._connections):
            connection.shutdown(2)
        yield items(1, 1)[0]

    found = [answer for group in backend.predict(asked()) for _, answer in group]
    assert [answer.value for answer in found] == ["cat", "cat"]


def test_backoff_grows_and_differs(server, monkeypatch):
    pauses = []
    original = endpoint.random.uniform
    monkeypatch.setattr(
        endpoint.random, "uniform", lambda low, high: pauses.append((low, high)) or original(low, high / 100)
    )
    server.script(*[Reply(500)] * 5)
    answers(open_api(server, concurrency=1))
    # Full jitter: anything from nothing to a time that doubles, up to a bound.
    assert pauses == [(0, 0.005), (0, 0.01), (0, 0.02), (0, 0.04), (0, 0.05)]


# --- Too many calls -----------------------------------------------------------------------------------------


def test_a_storm_of_429_loses_nothing(server):
    calls = []

    def limited(request):
        calls.append(request.prompt)
        return Reply(429, failure("slow down"), {"Retry-After": "0.02"}) if len(calls) % 3 else "cat"

    server.default = limited
    found = answers(open_api(server, concurrency=8, retries=0), 30)
    assert {answer.value for answer in found} == {"cat"}
    assert len(server.calls) >= 60


def test_429_takes_nothing_of_the_time_of_an_item(server):
    """Six refusals, each of which takes half of it."""
    server.script(*[Reply(429, headers={"Retry-After": "0"}, delay=0.8)] * 6)
    (answer,) = answers(open_api(server, total_timeout=1.6, retries=0))
    assert answer.value == "cat"


def test_429_stops_every_thread_for_as_long_as_it_asks(server, monkeypatch):
    gate, noticed = threading.Barrier(4, timeout=60), threading.Event()
    limited = throttle.Throttle.limited
    monkeypatch.setattr(
        throttle.Throttle, "limited", lambda self, asked: limited(self, asked) or noticed.set()
    )

    def first_four(request):
        gate.wait()
        if request.prompt == "item 0":
            return Reply(429, headers={"Retry-After": "0.8"})
        assert noticed.wait(60)  # what ends before that may be followed by another call
        return "cat"

    server.script(*[first_four] * 4)
    assert {answer.value for answer in answers(open_api(server), 12)} == {"cat"}
    refused_at = max(request.at for request in server.calls[:4])
    assert min(request.at for request in server.calls[4:]) - refused_at >= 0.8


@pytest.mark.parametrize("headers", [{"x-ratelimit-reset-tokens": "120ms"}, {"Retry-After-Ms": "120"}])
def test_429_with_openai_s_headers(server, headers):
    server.script(Reply(429, headers=headers))
    answers(open_api(server))
    assert server.calls[1].at - server.calls[0].at >= 0.12


def test_429_for_longer_than_anybody_waits(server):
    server.default = lambda request: (
        Reply(429, headers={"Retry-After": "86400"}) if request.prompt == "item 5" else "cat"
    )
    given, error = collected(open_api(server, concurrency=1).predict(items(10)))
    assert [item.external_id for item, _ in given] == ["0", "1", "2", "3", "4"]
    assert isinstance(error, BackendError)
    assert not error.permanent
    assert "86,400 s" in error.message


def test_429_without_end(server, monkeypatch):
    monkeypatch.setattr(throttle, "PATIENCE", 0.1)
    server.default = Reply(429)
    _, error = collected(open_api(server).predict(items(4)))
    assert isinstance(error, BackendError)
    assert not error.permanent


def test_429_because_there_is_no_credit_left(server):
    server.default = Reply(429, failure("You exceeded your current quota", code="insufficient_quota"))
    _, error = collected(open_api(server).predict(items(4)))
    assert isinstance(error, BackendError)
    assert error.permanent
    assert "no credit" in error.message


# --- Of the source: it stops, what was answered is given ----------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(401, failure(f"Incorrect API key provided: {KEY}")), "API key"),
        (Reply(403, failure("Forbidden")), "API key"),
        (Reply(402, failure("Insufficient credits")), "no credit"),
        (Reply(404, failure("The model `scripted` does not exist.")), "does not know the model"),
        (Reply(405), "does not know the model or the address"),
        (Reply(307, headers={"Location": "http://127.0.0.1/"}), "leads on to another one"),
        (Reply(418), "refuses calls"),
    ],
    ids=["401", "403", "402", "404", "405", "redirect", "418"],
)
def test_no_call_can_be_answered(server, reply, words):
    server.default = lambda request: reply if int(request.prompt[5:]) >= 4 else "cat"
    given, error = collected(open_api(server, concurrency=1).predict(items(10)))
    assert [answer.value for _, answer in given] == ["cat"] * 4
    assert isinstance(error, BackendError)
    assert error.permanent
    assert words in error.message
    assert len(server.calls) <= 6  # no attempt is repeated, and nobody goes on


def test_a_parameter_that_the_server_refuses(server):
    server.default = Reply(400, failure("Unsupported parameter: 'top_k'"))
    given, error = collected(open_api(server, top_k=20).predict(items(30)))
    assert given == []
    assert isinstance(error, BackendError)
    assert error.permanent
    assert "Unsupported parameter: 'top_k'" in error.message
    assert len(server.calls) <= 9


def test_a_server_that_begins_to_refuse_everything(server):
    """Not every further item is blamed, and passed on to a dearer source."""
    server.script(*["cat"] * 20)
    server.default = Reply(400, failure("top_k is not supported here"))
    given, error = collected(open_api(server).predict(items(200)))
    assert isinstance(error, BackendError)
    assert error.permanent
    assert "refuses every call" in error.message
    assert "top_k is not supported here" in error.message
    refused = [answer for _, answer in given if answer.value is None]
    assert len(given) - len(refused) == 20
    assert len(refused) < 20


def test_many_items_that_are_refused_one_after_the_other_stop_nobody(server):
    server.default = lambda request: (
        Reply(400, failure("too long")) if request.prompt.startswith("item 1") else "cat"
    )
    found = answers(open_api(server), 120)
    assert [answer.value for answer in found[:3]] == ["cat", None, "cat"]
    assert {answer.value for answer in found[100:]} == {None}


def test_more_tokens_than_the_model_has_room_for(server):
    # vLLM says so of every call, in the words that it also has for one that is too long.
    server.default = Reply(400, failure("'max_tokens' is too large: 9000. Maximum context length is 4096"))
    _, error = collected(open_api(server, max_tokens=9000).predict(items(3)))
    assert isinstance(error, BackendError)
    assert error.permanent


def test_nobody_there(server):
    server.stop()
    began = time.monotonic()
    given, error = collected(open_api(server, retries=2).predict(items(10)))
    assert (given, error.permanent) == ([], False)
    assert "Nobody accepts connections" in error.message
    assert time.monotonic() - began < 60


def test_a_server_that_dies_in_the_middle(server):
    def dying(request):
        if len(server.calls) > 10:
            server.stop()
        return "cat"

    server.default = dying
    given, error = collected(open_api(server, retries=2).predict(items(40)))
    assert isinstance(error, BackendError)
    assert not error.permanent
    assert {answer.value for _, answer in given} == {"cat"}
    assert 7 <= len(given) <= 14
    assert len({item.pk for item, _ in given}) == len(given)


def test_a_server_that_is_away_for_a_moment(server):
    down = {"until": 0.0}

    def restarting(request):
        if len(server.calls) == 10:
            down["until"] = time.monotonic() + 0.1
        return Reply(503) if time.monotonic() < down["until"] else "cat"

    server.default = restarting
    found = answers(open_api(server, retries=20), 40)
    assert {answer.value for answer in found} == {"cat"}


@pytest.mark.parametrize("reply", [Reply(500), Reply(reset=True), Reply(body="cat", delay=60)])
def test_a_server_that_fails_at_everything(server, reply):
    server.default = lambda request: reply if request.number >= 8 else "cat"
    backend = open_api(server, retries=1, read_timeout=2, total_timeout=3)
    given, error = collected(backend.predict(items(40)))
    assert isinstance(error, BackendError)
    assert not error.permanent
    # Nothing is blamed on an item.
    assert {answer.value for _, answer in given} == {"cat"}
    assert len(given) == 8


def test_another_model_in_the_middle(server):
    server.default = lambda request: completion("cat", model="other" if len(server.calls) > 8 else "scripted")
    given, error = collected(open_api(server, concurrency=1).predict(items(40)))
    assert len(given) == 8
    assert {answer.served_model for _, answer in given} == {"scripted"}
    assert isinstance(error, BackendError)
    assert error.permanent
    assert "now answers as 'other', and not as 'scripted'" in error.message


def test_an_unknown_model_that_is_answered_all_the_same(server):
    server.default = completion("cat", model="whatever-is-loaded")
    given, error = collected(open_api(server, model="fast").predict(items(3)))
    assert given == []
    assert "'whatever-is-loaded', and not as 'fast'" in error.message


def test_all_that_was_paid_is_given_when_one_call_ends_the_source(server):
    hold = threading.Event()

    def mixed(request):
        if request.prompt == "item 3":
            hold.set()
            return Reply(401)
        assert hold.wait(60)
        return Reply(body="cat", delay=0.05)

    server.default = mixed
    given, error = collected(open_api(server, concurrency=4).predict(items(4)))
    assert sorted(item.external_id for item, _ in given) == ["0", "1", "2"]
    assert isinstance(error, BackendError)


def test_an_address_inside_the_network_of_the_server(server, settings):
    backend = open_api(server)
    settings.HYPAC_PRIVATE_HOSTS = []
    with pytest.raises(BackendError, match="HYPAC_PRIVATE_HOSTS") as caught:
        predict_all(backend, items(2))
    assert caught.value.permanent
    assert server.calls == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 418, 429, 500])
def test_the_key_is_in_no_message(server, status):
    said = failure(f"key {KEY} and Bearer {KEY} are wrong; moderation", code=KEY)
    server.default = Reply(status, said, {"Retry-After": "1000"})
    backend = open_api(server, retries=0)
    given, error = collected(backend.predict(items(2)))
    assert KEY not in f"{error} {error!r} {given}"
    assert KEY not in repr(backend.__dict__)
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(server.calls[0].body)


def test_a_source_without_a_key_sends_none(server):
    answers(open_api(server, api_key=""))
    assert "authorization" not in server.calls[0].headers


def test_a_dying_server_gives_what_it_answered(server):
    """As `test_a_server_that_dies_in_the_middle`, with the calls that were under way at its end counted."""
    with ScriptedServer("cat", delay=0.02) as other:
        other.default = lambda request: other.stop() if len(other.calls) == 20 else "cat"
        given, error = collected(open_api(other, retries=1).predict(items(60)))
        assert isinstance(error, BackendError)
        assert len(other.calls) - len(given) <= open_api(other).in_flight
