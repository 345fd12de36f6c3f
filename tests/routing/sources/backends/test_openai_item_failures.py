"""docs/backends.md: what is wrong with one answer or one item ends with that item, which keeps its reason."""

import pytest

from annotation.models import Item
from routing.core.scores import make_score
from routing.sources.backends import TaskSpec, predict_all
from routing.sources.backends.openai_api import endpoint
from testbed.scripted_replies import completion, failure
from testbed.scripted_server import Reply
from tests.routing.sources.backends.asking import answers, items, open_api

pytestmark = pytest.mark.costly


def score_of(answer, name="logits"):
    return make_score(name)({**answer.raw, "label": answer.value, "reason": answer.reason})


def for_item(number: int, reply):
    """A script that gives `reply` for one item, and "cat" for the others."""
    return lambda request: reply if request.prompt == f"item {number}" else "cat"


# --- Of one answer: the item ends with its reason -----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty answer"),
        ("   \n", "empty answer"),
        ("A unicorn.", "unknown label"),
        ("Either a cat or a dog.", "names several labels"),
    ],
    ids=["empty", "white space", "unknown", "ambiguous"],
)
def test_unparsable(server, text, reason):
    server.script(text)
    (answer,) = answers(open_api(server))
    assert answer.value is None
    assert reason in answer.reason
    assert answer.tokens_in == 10  # and it is paid
    assert len(server.calls) == 1  # another attempt would be another draw


def test_cut_off(server):
    server.script(lambda request: completion("ca", finish_reason="length", asked=request.body))
    (answer,) = answers(open_api(server))
    assert (answer.value, answer.finish_reason) == (None, "length")
    assert answer.reason == "the answer was cut off (finish_reason is 'length')"
    assert answer.tokens_out == 2


@pytest.mark.parametrize(
    "reply",
    [
        completion(None, reasoning="Hm, it has", finish_reason="length"),
        completion(None, reasoning="Hm, it has", reasoning_field="reasoning_content", finish_reason="length"),
        completion("<think>Hm, it has", finish_reason="length"),
    ],
    ids=["reasoning", "reasoning_content", "in the text"],
)
def test_cut_off_inside_the_thinking(server, reply):
    server.script(reply)
    (answer,) = answers(open_api(server))
    assert answer.value is None
    assert answer.reason == "the answer was cut off inside its thinking (finish_reason is 'length')"
    assert answer.raw["reasoning"] == "Hm, it has"


@pytest.mark.parametrize("finish", ["abort", "error", "insufficient_system_resource"])
def test_broken_off_by_the_server(server, finish):
    server.script(lambda request: completion("cat", finish_reason=finish, asked=request.body))
    (answer,) = answers(open_api(server))
    assert (answer.value, answer.reason) == (
        None,
        f"the server broke the answer off (finish_reason is {finish!r})",
    )


@pytest.mark.parametrize("finish", ["max_tokens", "MAX_TOKENS", "model_length"])
def test_cut_off_in_other_words(server, finish):
    server.script(lambda request: completion("cat", finish_reason=finish, asked=request.body))
    (answer,) = answers(open_api(server))
    assert answer.value is None
    assert answer.reason.startswith("the answer was cut off")


def test_thinking_without_an_answer(server):
    server.script(completion(None, reasoning="It purrs."))
    (answer,) = answers(open_api(server))
    assert (answer.value, answer.reason) == (None, "there is thinking, and no answer after it")


def test_refused_by_the_model(server):
    server.script(completion(None, refusal="I can't help with that."))
    (answer,) = answers(open_api(server))
    assert (answer.value, answer.reason) == (None, "the model refused: I can't help with that.")


def test_stopped_by_a_content_filter(server):
    server.script(completion("ca", finish_reason="content_filter"))
    (answer,) = answers(open_api(server))
    assert (answer.value, answer.reason) == (None, "the server's content filter stopped the answer")


@pytest.mark.parametrize("token", ["NaN", "Infinity", "null"])
def test_probabilities_that_are_no_numbers(server, token):
    text = '{"model": "scripted", "choices": [{"message": {"content": "cat"}, "finish_reason": "stop", '
    text += f'"logprobs": {{"content": [{{"token": "cat", "logprob": {token}, "top_logprobs": []}}]}}}}]}}'
    server.script(Reply(body=text.encode()))
    (answer,) = answers(open_api(server))
    assert answer.value == "cat"
    assert score_of(answer).u == 1
    assert score_of(answer).reason
    assert "label_logprobs" not in answer.raw


def test_probability_zero_is_one(server):
    server.script(
        lambda request: completion(
            "cat", asked=request.body, tokens=[("cat", float("-inf"))], flavour="openai"
        )
    )
    (answer,) = answers(open_api(server))
    assert (score_of(answer).u, score_of(answer).reason) == (1, "")


def test_text_that_no_database_stores(server):
    server.default = completion("cat \x00 \ud800", reasoning="\x00")
    (answer,) = answers(open_api(server, task=TaskSpec("short_text")))
    assert answer.value == "cat \N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}"
    assert answer.raw["reasoning"] == "\N{REPLACEMENT CHARACTER}"


def test_a_long_text_is_kept_in_part(server):
    server.script(completion("cat", reasoning="hm " * 20_000))
    (answer,) = answers(open_api(server))
    assert answer.value == "cat"
    assert len(answer.raw["reasoning"]) == 20_000
    assert answer.raw["note"] == "20,000 of 59,999 characters of the reasoning are kept"


def test_probabilities_that_the_server_ignores(server):
    server.script(completion("cat", flavour="transformers"))
    (answer,) = answers(open_api(server))
    assert answer.value == "cat"
    assert score_of(answer).reason == "the token probabilities are missing"


def test_usage_that_the_server_does_not_tell(server):
    server.script(completion("cat", usage=False))
    (answer,) = answers(open_api(server))
    assert (answer.value, answer.tokens_in, answer.tokens_out) == ("cat", None, None)


def test_usage_that_cannot_be(server):
    server.script(completion("cat", usage={"prompt_tokens": -1, "completion_tokens": 10**30}))
    (answer,) = answers(open_api(server))
    assert (answer.value, answer.tokens_in, answer.tokens_out) == ("cat", None, None)


# --- Of one item: the others go on --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        Reply(400, failure("maximum context length is 4096 tokens", code="context_length_exceeded")),
        Reply(400, failure("flagged by our content policy", code="content_filter")),
        Reply(422, failure("the prompt is too long")),
        Reply(413, b"<html>too large</html>"),
        Reply(429, failure("Request too large for gpt-x on tokens per min: Limit 10000, Requested 15000")),
        Reply(403, failure("your input was flagged by moderation")),
    ],
    ids=["context", "content filter", "422", "413", "larger than the limit of a minute", "moderation"],
)
def test_refused_for_what_the_item_says(server, reply):
    server.default = for_item(0, reply)
    first, *others = answers(open_api(server, concurrency=1), 3)
    assert first.value is None
    assert first.reason.startswith(f"the server refused it ({reply.status})")
    assert [answer.value for answer in others] == ["cat", "cat"]
    # Before anything was answered, one harmless call told item and source apart; it is paid as well.
    assert len(server.calls) == 4
    assert (first.tokens_in, first.tokens_out) == (10, 2)
    assert first.reason.endswith(
        "(its tokens are those of a harmless call, made to see whether the server works)"
    )
    assert len(first.reason) <= 200


def test_an_image_among_texts_is_not_sent_and_stops_nobody(server):
    backend, image = open_api(server), Item(pk=9, external_id="9", image_id=1)
    assert set(backend.most_usage(image).values()) == {0}
    first, second = predict_all(backend, [image, *items(1)])
    assert (first.value, first.tokens_in, first.tokens_out) == (None, 0, 0)
    assert "is an image" in first.reason
    assert second.value == "cat"


def test_an_item_at_which_the_server_always_fails(server):
    server.default = for_item(1, Reply(500, failure("CUDA assert")))
    found = answers(open_api(server, concurrency=1, retries=2), 4)
    assert [answer.value for answer in found] == ["cat", None, "cat", "cat"]
    assert found[1].reason == (
        "the server failed (status 500): CUDA assert, after 3 attempts (its tokens are those of a harmless "
        "call, made to see whether the server works)"
    )


@pytest.mark.parametrize("reply", [Reply(reset=True), Reply(body=b"no json"), Reply(body={"choices": []})])
def test_an_item_that_never_gets_an_answer(server, reply):
    server.default = for_item(2, reply)
    found = answers(open_api(server, retries=1), 8)
    assert [answer.value for answer in found].count("cat") == 7
    assert found[2].reason.endswith(", after 2 attempts")


def test_several_bad_items_in_a_row_do_not_stop_the_source(server):
    server.default = lambda request: Reply(500) if request.prompt in ("item 0", "item 1", "item 2") else "cat"
    found = answers(open_api(server, concurrency=1, retries=3), 6)
    assert [answer.value for answer in found] == [None, None, None, "cat", "cat", "cat"]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body="cat", dribble=0.05),
        Reply(body="cat", endless=True, dribble=0.01),
        Reply(body="cat", delay=60),
    ],
    ids=["dribbled", "endless", "silent"],
)
def test_endless(server, reply):
    server.default = for_item(0, reply)
    found = answers(open_api(server, total_timeout=2, read_timeout=1.5, retries=0, concurrency=2), 3)
    assert [answer.value for answer in found] == [None, "cat", "cat"]
    assert "in time" in found[0].reason or "time for the whole" in found[0].reason
    assert found[0].tokens_out is None  # nobody knows what was generated


def test_larger_than_any_answer_can_be(server, monkeypatch):
    monkeypatch.setattr(endpoint, "MIB", 1024)
    server.default = for_item(0, Reply(body=b"x" * 2**20))
    found = answers(open_api(server, max_tokens=1, concurrency=1), 2)
    assert [answer.value for answer in found] == [None, "cat"]
    assert "larger than" in found[0].reason
