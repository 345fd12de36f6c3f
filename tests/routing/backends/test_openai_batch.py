"""API batch files against a server that is scripted; the fixtures of this folder let it be asked."""

import json
import time

import pytest

from annotation.errors import InputError
from annotation.models import Item
from routing.backends import BackendError, Prompt, SourceContext, TaskSpec, open_backend, predict_all
from routing.backends.openai_batch import server as batch_server
from routing.backends.openai_batch.lines import read_results
from testbed.scripted_replies import completion
from testbed.scripted_server import Reply
from tests.batch_server import Batches
from tests.routing.backends.asking import ANIMALS, KEY, PLAIN, collected, items


@pytest.fixture
def api(server):
    return Batches(server)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(batch_server, "FIRST_PAUSE", 0)


def open_batch(api, *, task=ANIMALS, prompt=PLAIN, **params):
    context = SourceContext(task, prompt, KEY, {})
    url = api.server.url if api else ""
    return open_backend(
        "openai_batch", {"url": url, "model": "scripted", "poll_seconds": 2, **params}, context
    )


def values(answers):
    return [answer.value for answer in answers]


def test_answers_are_joined_on_their_ids(api):
    api.answer = lambda call: completion("dog" if "item 1" in str(call) else "cat", asked=call["body"])
    answers = predict_all(open_batch(api), items(3))
    assert values(answers) == ["cat", "dog", "cat"]
    assert answers[0].raw["token_logprobs"]
    assert (answers[0].tokens_in, answers[0].served_model) == (10, "scripted")
    (call, *_) = api.calls("batch-0")
    assert (call["method"], call["url"]) == ("POST", "/v1/chat/completions")
    assert call["body"]["messages"][-1]["content"] == "item 0"


def test_each_batch_holds_as_many_items_as_were_set(api):
    backend = open_batch(api, batch_size=2)
    taken, given = [], 0
    for group in backend.predict(taken.append(item) or item for item in items(5)):
        assert len(taken) - given <= backend.in_flight == 2
        given += len(group)
    assert given == 5
    assert [len(api.calls(name)) for name in api.batches] == [2, 2, 1]


def test_while_it_waits_it_says_so(api):
    api.at_once = False
    groups = open_batch(api).predict(iter(items(2)))
    assert next(groups) == []
    assert next(groups) == []
    api.finish("batch-0")
    assert values(answer for _, answer in next(groups)) == ["cat", "cat"]


def test_a_pause_need_not_wait_for_the_next_look(api, server, monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    api.at_once = False
    groups = open_batch(api, poll_seconds=3599).predict(iter(items(2)))
    assert next(groups) == []
    before = len(server.requests)
    assert [next(groups) for _ in range(1799)] == [[]] * 1799
    assert len(server.requests) == before
    assert next(groups) == []
    assert len(server.requests) == before + 1
    assert (max(slept), sum(slept)) == (2, 3599)


def test_a_batch_of_a_worker_that_died_is_found_again_and_not_sent_twice(api):
    api.at_once = False
    groups = open_batch(api).predict(iter(items(3)))
    next(groups)
    groups.close()
    again = open_batch(api).predict(iter(items(3)))
    assert next(again) == []
    api.finish("batch-0")
    assert len(next(again)) == 3
    assert len(api.batches) == 1


def test_what_a_finished_batch_had_answered_is_taken_and_only_the_rest_sent(api):
    predict_all(open_batch(api), items(3))
    assert values(predict_all(open_batch(api), items(5))) == ["cat"] * 5
    assert [len(api.calls(name)) for name in api.batches] == [3, 2]


@pytest.mark.parametrize("change", [{"temperature": 0.5}, {"prompt": Prompt("What? {{ text }}")}])
def test_answers_to_another_question_are_never_taken(api, change):
    predict_all(open_batch(api), items(2))
    predict_all(open_batch(api, **change), items(2))
    assert [len(api.calls(name)) for name in api.batches] == [2, 2]


def test_of_an_expired_batch_the_finished_part_is_used(api):
    api.at_once = False
    groups = open_batch(api).predict(iter(items(3)))
    next(groups)
    api.finish("batch-0", "expired", answered=2)
    api.at_once = True
    given, error = collected(groups)
    assert error is None
    assert len(given) == 3
    assert [len(api.calls(name)) for name in api.batches] == [3, 1]


def test_a_cancelled_batch_gives_what_it_had_and_stops_the_source(api):
    api.at_once = False
    groups = open_batch(api).predict(iter(items(3)))
    next(groups)
    api.finish("batch-0", "cancelled", answered=1)
    given, error = collected(groups)
    assert len(given) == 1
    assert isinstance(error, BackendError)
    assert "was cancelled at the server" in error.message
    api.at_once = True
    assert values(predict_all(open_batch(api), items(3))) == ["cat"] * 3
    assert [len(api.calls(name)) for name in api.batches] == [3, 2]


def test_a_batch_that_the_server_refuses_stops_the_source_with_its_words(api):
    api.at_once = False
    groups = open_batch(api).predict(iter(items(1)))
    next(groups)
    api.batches["batch-0"] |= {"status": "failed", "errors": {"data": [{"message": "no such model"}]}}
    with pytest.raises(BackendError, match="no such model"):
        next(groups)


def test_what_a_server_says_of_a_batch_is_told_without_the_key(api):
    api.at_once = False
    groups = open_batch(api).predict(iter(items(1)))
    next(groups)
    said = {"message": f"the key {KEY} may not do this"}
    api.batches["batch-0"] |= {"status": "failed", "errors": {"data": [said]}}
    with pytest.raises(BackendError, match="may not do this") as caught:
        list(groups)
    assert KEY not in str(caught.value)


def test_what_a_server_says_of_a_call_is_told_without_what_looks_like_a_key():
    error = {"error": {"message": f"Incorrect API key provided: {KEY}"}}
    line = {"custom_id": "1-a", "response": {"status_code": 401, "body": error}}
    (result,) = read_results([json.dumps(line).encode()])
    assert "(401): Incorrect API" in result.reason
    assert KEY not in result.reason


def test_a_refused_call_is_an_answer_with_its_reason_and_is_not_sent_again(api):
    api.answer = lambda call: 400 if "item 1" in str(call) else completion("cat", asked=call["body"])
    answers = predict_all(open_batch(api), items(3))
    assert values(answers) == ["cat", None, "cat"]
    assert answers[1].reason == "the server refused it (400): failed with 400"
    assert len(api.batches) == 1


def test_a_call_that_fails_is_sent_again_and_given_up_in_the_end(api):
    api.answer = lambda call: 500 if "item 1" in str(call) else completion("cat", asked=call["body"])
    answers = predict_all(open_batch(api), items(2))
    assert values(answers) == ["cat", None]
    assert answers[1].reason == "the server failed (status 500): failed with 500, in 3 batches"
    assert [len(api.calls(name)) for name in api.batches] == [2, 1, 1]


def test_a_batch_is_not_made_twice_where_the_answer_was_lost(api, server):
    made = api._create

    def lose(request):
        server.route("POST", "/v1/batches", made)
        made(request)
        return Reply(502)

    api.at_once = False
    server.route("POST", "/v1/batches", lose)
    groups = open_batch(api).predict(iter(items(2)))
    assert next(groups) == []
    assert len(api.batches) == 1


def test_an_outage_may_end(api, server):
    server.route("POST", "/v1/files", Reply(503))
    with pytest.raises(BackendError) as caught:
        predict_all(open_batch(api), items(1))
    assert caught.value.permanent is False


@pytest.mark.parametrize("status", [401, 404])
def test_a_server_that_takes_no_batch_says_so_and_no_key(api, server, status):
    server.route("POST", "/v1/files", Reply(status, {"error": {"message": f"not with {KEY}"}}))
    with pytest.raises(BackendError) as caught:
        predict_all(open_batch(api), items(1))
    assert caught.value.permanent is True
    assert KEY not in caught.value.message


def test_what_the_right_model_answered_is_given_before_another_one_is_found_out(api):
    api.answer = lambda call: completion(
        "cat", model="other" if "item 1" in str(call) else "scripted", asked=call["body"]
    )
    given, error = collected(open_batch(api).predict(items(3)))
    # The results come in another order than the calls.
    assert [item.external_id for item, _ in given] == ["2"]
    assert isinstance(error, BackendError)
    assert "now answers as 'other'" in error.message


def test_an_image_is_not_sent_and_the_others_are(api):
    image = Item(pk=9, external_id="9", image_id=1)
    answers = predict_all(open_batch(api), [image, *items(1)])
    assert values(answers) == [None, "cat"]
    assert "is an image" in answers[0].reason
    assert len(api.calls("batch-0")) == 1


def test_several_samples_come_in_one_call(api):
    api.answer = lambda call: completion(asked=call["body"], texts=["cat", "dog", "cat"])
    (answer,) = predict_all(open_batch(api, samples=3), items(1))
    assert answer.raw["samples"] == ["cat", "dog", "cat"]
    assert api.calls("batch-0")[0]["body"]["n"] == 3


@pytest.mark.parametrize("params", [{"verbalized": 2}, {"samples": 2, "sample_temperature": 1}])
def test_what_takes_a_second_call_is_refused(api, params):
    with pytest.raises(InputError):
        open_batch(api, **params)


def test_lines_that_cannot_be_read_are_calls_without_a_result(api):
    api.at_once = False
    groups = open_batch(api).predict(iter(items(2)))
    next(groups)
    api.finish("batch-0")
    name = api.batches["batch-0"]["output_file_id"]
    first, _ = api.files[name].splitlines()
    spoilt = b"\xff\xfe{\n[1]\n" + json.dumps({"custom_id": 5}).encode() + b"\n" + first
    api.server.route("GET", f"/v1/files/{name}/content", Reply(body=spoilt))
    api.at_once = True
    given, error = collected(groups)
    assert error is None
    assert len(given) == 2
    assert [len(api.calls(name)) for name in api.batches] == [2, 1]


def test_without_a_server_it_asks_for_files(settings, tmp_path):
    settings.VAR_DIR = tmp_path
    backend = open_batch(None, task=TaskSpec("number"))
    assert backend.check() == {}
    with pytest.raises(BackendError, match="calls with"):
        predict_all(backend, items(2))
