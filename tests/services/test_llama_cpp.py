"""The `openai_api` backend beside a second real server, which differs from vLLM in much: llama-cpp-python's.

HYPAC_TEST_LLAMA_CPP names a Python that has it (CONTRIBUTING.md). It is up in seconds, so tests may end
a server and start it again.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from annotation.errors import InputError
from routing.sources.backends import BackendError, TaskSpec, predict_all
from tests.llama_cpp import PYTHON, LlamaCppServer
from tests.llm import VllmServer, llm_python
from tests.llm_sources import (
    FAST,
    GREEDY,
    KEY,
    QUESTIONS,
    SLOW,
    SUMS,
    items,
    mean_probability,
    open_api,
    right,
)

pytestmark = [
    pytest.mark.llm,
    pytest.mark.xdist_group("llm"),
    pytest.mark.skipif(
        not PYTHON, reason="HYPAC_TEST_LLAMA_CPP names no Python that has the package llama-cpp-python."
    ),
]

# Unless it is told otherwise, this server makes tokens less likely that have been there before: digits.
PLAIN = {"extra": {"repeat_penalty": 1.0}}
DIGITS = TaskSpec("single_choice", tuple((str(digit), str(digit)) for digit in range(10)))


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, LlamaCppServer]]:
    with ExitStack() as stack:
        fast = stack.enter_context(LlamaCppServer("fast"))
        slow = stack.enter_context(LlamaCppServer("slow", "--api_key", KEY))
        yield {"fast": fast, "slow": slow}


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]


def test_answers_tokens_and_probabilities_of_the_fast_model(servers):
    backend = open_api(servers["fast"], **PLAIN, **FAST)
    assert backend.check()["model"] == "fast"
    answers = predict_all(backend, items(SUMS))
    assert right(answers) > 0.6
    for answer, question in zip(answers, QUESTIONS, strict=True):
        assert answer.served_model == "fast"
        assert answer.tokens_in == len(question.question) + 3
        # The token that ends an answer is in none of its numbers.
        assert answer.tokens_out == len(answer.raw["token_logprobs"]) == len(answer.raw["text"])
        assert 0 < mean_probability(answer) <= 1


def test_probabilities_are_those_of_vllm(servers):
    python = llm_python()
    if python is None:
        pytest.skip("There is no .venv-llm; `make setup-llm` makes it.")
    mine = predict_all(open_api(servers["fast"], **PLAIN, **GREEDY), items(SUMS))
    with VllmServer(python, "fast") as vllm:
        theirs = predict_all(open_api(vllm, **GREEDY), items(SUMS))
    same = [(one, other) for one, other in zip(mine, theirs, strict=True) if one.value == other.value]
    assert len(same) >= 0.95 * len(SUMS)  # another order of additions may turn a close decision
    for one, other in same:
        assert one.raw["token_logprobs"] == pytest.approx(other.raw["token_logprobs"], abs=5e-3)
        assert (one.tokens_in, one.tokens_out + 1) == (other.tokens_in, other.tokens_out)


def test_probabilities_come_only_where_they_are_asked_for(servers):
    asked = open_api(servers["fast"], top_logprobs=1, **GREEDY)
    assert all(answer.raw["token_logprobs"] for answer in predict_all(asked, items(SUMS[:3])))
    not_asked = open_api(servers["fast"], logprobs=False, **GREEDY)
    assert all("token_logprobs" not in answer.raw for answer in predict_all(not_asked, items(SUMS[:3])))


def test_labels_have_probabilities(servers):
    backend = open_api(servers["fast"], DIGITS, top_logprobs=10, **PLAIN, **GREEDY)
    answers = predict_all(backend, items(["3 + 4", "9 - 2", "1 + 1"]))
    assert [answer.value for answer in answers] == ["7", "7", "2"]
    for answer in answers:
        # Among the alternatives is the end token, which this server writes as a token without text.
        found = answer.raw["label_logprobs"]
        assert len(found) > 2
        assert max(found, key=found.__getitem__) == answer.value


def test_thinking_within_the_text_comes_apart_and_is_counted(servers):
    answers = predict_all(open_api(servers["slow"], **PLAIN, **SLOW), items(SUMS))
    assert right(answers) > 0.8
    thought = [answer for answer in answers if answer.raw.get("reasoning")]
    assert len(thought) > 0.9 * len(answers)
    for answer in thought:
        assert len(answer.raw["token_logprobs"]) > len(answer.raw["text"]) + len(answer.raw["reasoning"])
        assert "think>" not in answer.raw["text"] + answer.raw["reasoning"]


def test_thinking_that_is_cut_off_is_no_answer(servers):
    answers = predict_all(open_api(servers["slow"], **{**SLOW, "max_tokens": 3}), items(SUMS[:8]))
    assert {(answer.value, answer.finish_reason) for answer in answers} == {(None, "length")}
    assert "cut off inside its thinking" in answers[0].reason


def test_an_answer_that_is_cut_off_is_not_used(servers):
    answers = predict_all(open_api(servers["fast"], **{**FAST, "max_tokens": 1}), items(SUMS[:8]))
    assert {(answer.value, answer.finish_reason) for answer in answers} == {(None, "length")}


def test_samples_are_asked_for_one_by_one_and_all_paid(servers):
    one = predict_all(open_api(servers["fast"], **PLAIN, **FAST), items(SUMS[:20]))
    five = predict_all(open_api(servers["fast"], samples=5, **PLAIN, **FAST), items(SUMS[:20]))
    assert {len(answer.raw["samples"]) for answer in five} == {5}
    assert [answer.tokens_in for answer in five] == [5 * answer.tokens_in for answer in one]
    assert any(len(set(answer.raw["samples"])) > 1 for answer in five)


def test_an_answer_is_held_to_a_form_that_is_told_as_this_server_knows_it(servers):
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    known = {"response_format": {"type": "json_object", "schema": schema}}
    held = open_api(servers["fast"], structured="json", temperature=0, max_tokens=60, extra=known)
    for answer in predict_all(held, items(SUMS[:4])):
        assert answer.raw["text"].lstrip().startswith("{")
    grammar = open_api(servers["fast"], extra={"grammar": "root ::= [1-9] [0-9] [0-9]"}, **GREEDY)
    assert all(100 <= int(answer.value) <= 999 for answer in predict_all(grammar, items(SUMS[:4])))
    with pytest.raises(BackendError, match="json_schema"):
        predict_all(open_api(servers["fast"], structured="json", retries=0, **GREEDY), items(SUMS[:2]))


def test_what_is_too_long_for_the_model_is_refused_for_that_item_alone(servers):
    texts = [SUMS[0], "1" * 300, SUMS[1]]
    first, long, last = predict_all(open_api(servers["fast"], **GREEDY), items(texts))
    assert "the server refused it (400)" in long.reason
    assert first.value is not None
    assert last.value is not None


def test_more_tokens_than_the_model_has_room_for_do_no_harm(servers):
    answers = predict_all(open_api(servers["fast"], temperature=0, max_tokens=500), items(SUMS[:3]))
    assert all(answer.value is not None for answer in answers)


def test_an_unknown_model_is_found_by_the_list_as_every_name_is_answered(servers):
    backend = open_api(servers["fast"], **{**GREEDY, "model": "slow"})
    with pytest.raises(InputError, match="it lists fast") as caught:
        backend.check()
    assert caught.value.where == "model"
    with pytest.raises(BackendError, match="it lists fast"):
        backend.fingerprint()
    # Why the list has to be asked: by its answers, the server has any model that is named.
    assert {answer.served_model for answer in predict_all(backend, items(SUMS[:2]))} == {"slow"}


def test_a_key_that_the_server_refuses_is_told_and_in_no_message(servers):
    backend = open_api(servers["slow"], key="sk-another-key", **SLOW)
    with pytest.raises(InputError) as caught:
        backend.check()
    assert caught.value.where == "api_key"
    with pytest.raises(BackendError) as stopped:
        predict_all(backend, items(SUMS[:2]))
    assert stopped.value.permanent is True
    assert "sk-another-key" not in stopped.value.message


def test_fingerprints_tell_the_models_apart(servers):
    prints = [open_api(servers[name], **GREEDY).fingerprint() for name in ("fast", "slow", "fast")]
    assert prints[0] == prints[2] != prints[1]


def test_a_server_that_fails_at_everything_stops_the_source_in_its_words():
    with LlamaCppServer("fast", "--logits_all", "false") as server:
        with pytest.raises(BackendError, match=r"status 500\): logprobs is not supported") as stopped:
            predict_all(open_api(server, retries=1, **GREEDY), items(SUMS[:4]))
        assert stopped.value.permanent is False
        without = open_api(server, logprobs=False, **PLAIN, **GREEDY)
        assert all(answer.value is not None for answer in predict_all(without, items(SUMS[:4])))


def test_a_server_that_falls_silent_stops_the_source_until_it_speaks_again(servers):
    backend = open_api(servers["fast"], retries=1, read_timeout=1, **PLAIN, **FAST)
    with servers["fast"].silent(), pytest.raises(BackendError, match="does not answer") as stopped:
        predict_all(backend, items(SUMS[:4]))
    assert stopped.value.permanent is False
    patient = open_api(servers["fast"], **PLAIN, **FAST)
    assert all(answer.value is not None for answer in predict_all(patient, items(SUMS[:4])))


# --- These end the server, and start it again ---------------------------------------------------------------


def test_a_server_that_is_away_for_a_moment_is_asked_again(servers):
    backend = open_api(servers["fast"], retries=12, **PLAIN, **FAST)
    asked, given, killed = items(SUMS * 3), [], False
    for group in backend.predict(iter(asked)):
        given += group
        if len(given) >= 30 and not killed:
            killed = True
            servers["fast"].kill()
            servers["fast"].start()
    assert killed
    assert sorted(item.pk for item, _ in given) == [item.pk for item in asked]
    assert all(answer.value is not None for _, answer in given)


def test_a_server_that_is_killed_stops_the_source_and_loses_no_answer(servers):
    backend = open_api(servers["fast"], retries=1, **PLAIN, **FAST)
    asked, given = items([f"{n} + {n % 7}" for n in range(400)]), []

    def ask_and_kill() -> None:
        for group in backend.predict(iter(asked)):
            given.extend(item.pk for item, _ in group)
            if len(given) >= 50:
                servers["fast"].kill()

    with pytest.raises(BackendError) as stopped:
        ask_and_kill()
    assert stopped.value.permanent is False
    assert 50 <= len(given) == len(set(given)) < 400
    servers["fast"].start()
    assert len(predict_all(backend, asked[:2])) == 2
