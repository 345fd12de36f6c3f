"""A Label Studio ML backend that fails, and how many items are asked of it at a time."""

import json
import threading
import time
import traceback

import pytest

from annotation.errors import InputError
from routing.sources.backends import BackendError, predict_all
from routing.sources.backends.label_studio_ml import calls
from testbed.scripted_server import Reply, Request, ScriptedServer
from tests.routing.sources.backends.label_studio import asked, choose, collect, items_of, open_it, predict

pytestmark = pytest.mark.costly


@pytest.fixture(autouse=True)
def _quick(settings, monkeypatch):
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    monkeypatch.setattr(calls, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(calls, "AGAIN_AFTER", 0.0)


@pytest.fixture
def server():
    with ScriptedServer() as made:
        made.route("GET", "/health", {"status": "UP", "model_class": "Pets"})
        made.route("POST", "/setup", {"model_version": "1.0"})
        made.route("POST", "/predict", predict(choose))
        yield made


def test_one_bad_item_does_not_take_its_batch_along(server):
    def reply(request):
        if any(task["data"]["text"] == "boom" for task in request.body["tasks"]):
            return Reply(500, {"traceback": "secret"})
        return predict(choose)(request)

    server.route("POST", "/predict", reply)
    answers = predict_all(open_it(server), items_of("wuff", "boom", "miau"))
    assert [answer.value for answer in answers] == ["dog", None, "cat"]
    assert answers[1].reason == "the server answered with status 500"


@pytest.mark.parametrize(
    ("reply", "reason", "tries"),
    [
        (Reply(200, b"no json"), "no JSON", 2),
        (Reply(200, {"other": 1}), "no list of results", 2),
        (Reply(200, {"results": []}), "0 predictions came for 1 items", 1),
        (Reply(200, {"results": [{}, {}]}), "2 predictions came for 1 items", 1),
        (Reply(200, {"results": []}, cut=3), "spoilt", 2),
        (Reply(reset=True), "ended the connection", 2),
        (Reply(422), "status 422", 1),
        (Reply(200, b"[" + b" " * 17_000_000), "larger than", 1),
    ],
    ids=["no json", "no results", "none", "two", "cut", "reset", "422", "large"],
)
def test_what_a_server_answers_to_one_item_ends_as_its_reason(server, reply, reason, tries):
    server.route("POST", "/predict", reply)
    (answer,) = predict_all(open_it(server), items_of("x"))
    assert answer.value is None
    assert reason in answer.reason
    assert len(asked(server)) == tries


def test_a_server_that_recovers_is_asked_again(server):
    replies = [Reply(503, headers={"Retry-After": "0"}), Reply(502), Reply(reset=True)]
    server.route("POST", "/predict", lambda request: replies.pop(0) if replies else predict(choose)(request))
    (answer,) = predict_all(open_it(server), items_of("wuff"))
    assert answer.value == "dog"


def test_an_item_that_takes_for_ever_ends(server):
    def reply(request):
        slow = any(task["data"]["text"] == "slow" for task in request.body["tasks"])
        return Reply(200, {"results": []}, delay=30) if slow else predict(choose)(request)

    server.route("POST", "/predict", reply)
    answers = predict_all(open_it(server, total_timeout=2), items_of("wuff", "slow"))
    assert [answer.value for answer in answers] == ["dog", None]
    assert "in time" in answers[1].reason


@pytest.mark.parametrize(
    ("reply", "permanent", "words"),
    [
        (Reply(503), False, "cannot be reached"),
        (Reply(429), False, "cannot be reached"),
        (Reply(401), True, "name:password"),
        (Reply(403), True, "name:password"),
        (Reply(404), True, "knows no /predict"),
        (Reply(301, headers={"Location": "/x"}), True, "leads on"),
    ],
)
def test_a_server_that_answers_nobody_ends_the_work(server, reply, permanent, words):
    server.route("POST", "/predict", reply)
    with pytest.raises(BackendError, match=words) as caught:
        predict_all(open_it(server), items_of("x", "y"))
    assert caught.value.permanent is permanent


def test_a_server_that_is_gone_ends_the_work_for_now(server):
    backend = open_it(server)
    server.stop()
    for call in (backend.fingerprint, lambda: predict_all(backend, items_of("x"))):
        with pytest.raises(BackendError) as caught:
            call()
        assert not caught.value.permanent


def test_a_server_that_fails_every_item_ends_the_work(server):
    """And does not send a whole pool to people, as items that the model could not answer."""
    server.route("POST", "/predict", Reply(500))
    backend = open_it(server, concurrency=1, batch_size=4)
    answered = []
    with pytest.raises(BackendError, match="10 items in a row") as caught:
        collect(backend.predict(items_of(*map(str, range(100)))), answered)
    assert not caught.value.permanent
    assert len(answered) == 8


def test_what_was_answered_before_a_failure_is_given(server):
    def reply(request):
        if request.body["tasks"][0]["data"]["text"] == "4":
            return Reply(403)
        return predict(choose)(request)

    server.route("POST", "/predict", reply)
    backend = open_it(server, concurrency=1, batch_size=2)
    answered = []
    with pytest.raises(BackendError, match="403"):
        collect(backend.predict(items_of(*map(str, range(20)))), answered)
    assert [text for text, _ in answered] == ["0", "1", "2", "3"]
    assert len(asked(server)) == 3


def test_no_more_items_are_taken_than_may_be_in_flight(server):
    backend = open_it(server, concurrency=2, batch_size=3)
    taken, stored = [], 0

    def source():
        for item in items_of(*map(str, range(60))):
            taken.append(item)
            assert len(taken) - stored <= backend.in_flight == 9
            yield item

    groups = backend.predict(source())
    while group := next(groups, None):
        stored += len(group)
    assert len(taken) == stored == 60


def test_closing_asks_for_no_more(server):
    gate = threading.Event()

    def reply(request):
        if request.body["tasks"][0]["data"]["text"] != "0":
            gate.wait(60)
        return predict(choose)(request)

    server.route("POST", "/predict", reply)
    groups = open_it(server, concurrency=1, batch_size=1).predict(items_of(*map(str, range(9))))
    next(groups)
    while len(asked(server)) < 2:
        time.sleep(0.01)
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("label-studio-ml")]
    groups.close()
    gate.set()
    for thread in threads:
        thread.join(60)
    assert len(asked(server)) == 2


def test_what_the_items_raise_comes_after_the_answers_of_those_before(server):
    def source():
        yield from items_of("wuff", "miau", "wuff")
        raise RuntimeError("no more money")

    answered = []
    with pytest.raises(RuntimeError, match="no more money"):
        collect(open_it(server, batch_size=2).predict(source()), answered)
    assert sorted(value for _, value in answered) == ["cat", "dog", "dog"]


def test_batches_are_asked_for_at_the_same_time(server):
    both = threading.Barrier(2, timeout=60)

    def reply(request: Request):
        both.wait()
        return predict(choose)(request)

    server.route("POST", "/predict", reply)
    answers = predict_all(open_it(server, batch_size=1, concurrency=2), items_of("wuff", "miau"))
    assert [answer.value for answer in answers] == ["dog", "cat"]


def test_what_is_sent_is_json(server):
    predict_all(open_it(server), items_of('Zürich "quoted" \u2028'))
    assert json.dumps(asked(server)[0]["tasks"][0]["data"]["text"]) == json.dumps('Zürich "quoted" \u2028')


@pytest.mark.parametrize("status", [200, 401, 404, 422, 500])
@pytest.mark.parametrize("path", ["/setup", "/predict"])
def test_a_server_that_repeats_the_key_makes_nobody_else_do_so(server, caplog, path, status):
    caplog.set_level("DEBUG")

    def echo(request):
        return Reply(status, {"error": dict(request.headers), "detail": "ann:hunter2"})

    server.route("POST", path, echo)
    backend = open_it(server, api_key="ann:hunter2")
    said = repr(backend)
    for call in (backend.check, backend.fingerprint, lambda: predict_all(backend, items_of("x"))):
        try:
            said += repr(call())
        except (BackendError, InputError) as error:
            said += "".join(traceback.format_exception(error))
    for secret in ("hunter2", "YW5uOmh1bnRlcjI="):
        assert secret not in said
        assert secret not in caplog.text
