"""Labels told apart at the first token of an answer, and only where that is no guess."""

import math

import pytest

from routing.sources.backends import TaskSpec
from routing.sources.backends.llm import Token, label_logprobs, stored_logprobs, without_end

ANIMALS = TaskSpec("single_choice", (("cat", "Feline"), ("dog", "Hound")))


def labels(*choices: str) -> TaskSpec:
    return TaskSpec("single_choice", tuple((choice, choice) for choice in choices))


def answer(*tokens: str | Token) -> list[Token]:
    return [token if isinstance(token, Token) else Token(token, -0.1) for token in tokens]


def first(text: str, **top: float) -> Token:
    return Token(text, top.get(text, -0.1), tuple(top.items()))


@pytest.mark.parametrize("before", [(), ("<think>", "cat?", "</think>", "\n\n"), ('{"', "label", '":', ' "')])
def test_the_label_is_found_where_the_answer_begins(before):
    tokens = answer(*before, first("cat", cat=-0.2, dog=-2.0, maybe=-3.0))
    assert label_logprobs(tokens, "cat", ANIMALS) == {"cat": -0.2, "dog": -2.0}


def test_spellings_of_a_label_add_up():
    tokens = answer(first(" Cat", **{" Cat": math.log(0.5), "cat": math.log(0.2), "fel": math.log(0.1)}))
    assert label_logprobs(tokens, "cat", ANIMALS) == {"cat": pytest.approx(math.log(0.8), abs=1e-6)}


@pytest.mark.parametrize(
    ("task", "tokens", "value"),
    [
        (labels("1", "10"), answer(first("1", **{"1": -0.1, "2": -3.0}), "0"), "10"),
        (labels("good", "gone"), answer(first("go", go=-0.1), "od"), "good"),
        (ANIMALS, answer(first("The", The=-0.1, cat=-3.0), " cat"), "cat"),
        (ANIMALS, answer(first("dog", dog=-0.1, cat=-3.0)), "cat"),
        (ANIMALS, answer(first("cat", cat=math.nan)), "cat"),
        (ANIMALS, answer(first("cat", cat=0.5)), "cat"),
        (ANIMALS, answer(' "cat'), "cat"),
        (ANIMALS, answer("</think>cat"), "cat"),
        (ANIMALS, [], "cat"),
    ],
    ids=[
        "a label begins another",
        "two begin alike",
        "a sentence",
        "another label",
        "NaN",
        "above 0",
        "no boundary",
        "within a token of the thinking",
        "no tokens",
    ],
)
def test_a_guess_is_none(task, tokens, value):
    assert label_logprobs(tokens, value, task) == {}


def test_the_first_of_several_tokens_may_be_enough():
    tokens = answer(first("spo", spo=-0.1, art=-2.0), "rts")
    assert label_logprobs(tokens, "sports", labels("sports", "arts")) == {"sports": -0.1, "arts": -2.0}


@pytest.mark.parametrize("end", ["<|im_end|>", "</s>", "<eos>", "<|endoftext|>", "<end_of_turn>", ""])
def test_the_end_token_is_no_part_of_the_answer(end):
    assert [token.text for token in without_end(answer("a", "cat", end), "a cat")] == ["a", "cat"]


@pytest.mark.parametrize("last", ["cat", "<b>", "</s>"])
def test_a_token_of_the_answer_stays(last):
    assert len(without_end(answer("a ", last), f"a {last}")) == 2


def test_numbers_are_stored_as_json_can_hold_them():
    tokens = [Token("a", value) for value in (-0.123456789, -math.inf, math.nan, math.inf)]
    assert stored_logprobs(tokens) == [-0.123457, -9999.0, "nan", "inf"]
