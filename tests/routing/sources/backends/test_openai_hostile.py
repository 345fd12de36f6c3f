"""Whatever a server sends, it becomes a verdict, and a good verdict becomes an answer that can be stored."""

import json
import math
import re
from typing import Any

import httpx
import pytest
from hypothesis import given, settings, strategies as st

from annotation.outside.net import NetResponse
from routing.sources.backends import TaskSpec
from routing.sources.backends.llm import SAMPLING, answer_of, sampling_of
from routing.sources.backends.openai_api.completions import generated_in
from routing.sources.backends.openai_api.endpoint import usage_of
from routing.sources.backends.openai_api.verdicts import Kind, verdict_on
from routing.sources.backends.params import read_values
from tests.routing.sources.backends.asking import ANIMALS, NUMBERS

pytestmark = pytest.mark.costly

NUMBER = st.floats() | st.integers() | st.booleans()
# What has gone wrong before, more often than chance would have it.
ODD_TEXTS = ["cat", "dog", "7", "\0", "\ud800", "cat\0", "<think>", "</think>", '{"label": "cat"}', "[]"]
TEXT = st.sampled_from(ODD_TEXTS) | st.text(st.characters(codec=None), max_size=8)
LEAF = st.none() | NUMBER | TEXT
ANYTHING = st.recursive(
    LEAF, lambda more: st.lists(more, max_size=3) | st.dictionaries(TEXT, more, max_size=3)
)


def odd(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with some of these fields, any of which may be anything."""
    return st.fixed_dictionaries({}, optional={name: value | ANYTHING for name, value in fields.items()})


TOKEN = st.fixed_dictionaries(
    {"token": TEXT, "logprob": st.just(-0.1) | st.floats()},
    optional={"top_logprobs": st.lists(odd(token=TEXT, logprob=NUMBER), max_size=3) | ANYTHING},
)
PART = odd(type=st.sampled_from(["text", "thinking"]), text=TEXT, thinking=TEXT)
MESSAGE = odd(
    content=TEXT | st.lists(PART, max_size=2), reasoning=TEXT, reasoning_content=TEXT, refusal=st.none()
)
CHOICE = st.fixed_dictionaries(
    {"finish_reason": st.just("stop") | TEXT},
    optional={
        "index": st.integers() | ANYTHING,
        "logprobs": st.builds(lambda tokens: {"content": tokens}, st.lists(TOKEN, max_size=4)) | ANYTHING,
    },
)
GOOD = st.builds(
    lambda choices, messages, rest: {
        **rest,
        "choices": [{**one, "message": message} for one, message in zip(choices, messages, strict=True)],
    },
    st.lists(CHOICE, min_size=2, max_size=2),
    st.lists(MESSAGE, min_size=2, max_size=2),
    odd(usage=odd(prompt_tokens=NUMBER, completion_tokens=NUMBER), model=TEXT),
)
BAD = odd(choices=st.lists(CHOICE), error=odd(message=TEXT, code=LEAF, type=LEAF)) | ANYTHING
TASKS = (
    ANIMALS,
    NUMBERS,
    TaskSpec("multiple_choice", ANIMALS.choices),
    TaskSpec("short_text"),
    TaskSpec("code"),
)
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def unstorable(value: Any) -> bool:
    if isinstance(value, str):
        return bool(UNSTORABLE.search(value))
    if isinstance(value, dict):
        return any(unstorable(key) or unstorable(entry) for key, entry in value.items())
    if isinstance(value, list):
        return any(map(unstorable, value))
    return isinstance(value, float) and not math.isfinite(value)


@given(BAD | GOOD, st.sampled_from([200, 200, 200, 301, 400, 401, 403, 404, 429, 500]))
@settings(max_examples=100, deadline=None)
def test_anything_becomes_a_verdict(body, status):
    verdict = verdict_on(NetResponse(status, httpx.Headers(), json.dumps(body).encode()), "key")
    assert not unstorable(verdict.reason)
    assert (verdict.kind is Kind.OK) == (verdict.body is not None)
    assert bool(verdict.reason) == (verdict.body is None)
    assert status == 200 or verdict.body is None


@given(GOOD, st.sampled_from(TASKS), st.sampled_from(["none", "json"]))
@settings(max_examples=100, deadline=None)
def test_any_completion_becomes_an_answer_that_can_be_stored(body, task, structured):
    sent = json.loads(json.dumps(body))
    for generated in generated_in(sent):
        answer = answer_of(
            generated,
            spec=task,
            sampling=sampling_of(read_values(SAMPLING, {"structured": structured}), task),
            usage=usage_of(sent),
            samples=[generated],
            verbalized=[generated.text],
            served_model=str(sent.get("model")),
        )
        assert (answer.value is None) == bool(answer.reason)
        stored = [answer.value, answer.reason, answer.raw, answer.finish_reason, answer.served_model]
        assert not unstorable(stored)
        assert answer.tokens_in is None or 0 <= answer.tokens_in < 2**31


@given(st.binary(max_size=200), st.sampled_from([200, 400, 500]))
def test_any_bytes_are_borne(content, status):
    assert verdict_on(NetResponse(status, httpx.Headers(), content)).kind is not None
