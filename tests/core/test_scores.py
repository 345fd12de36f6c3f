"""Uncertainty scores: what each gives, and what becomes of a prediction that has none."""

from __future__ import annotations

import json
import math

import pytest

from routing.core.registry import UnknownNameError
from routing.core.scores import SCORES, fields_read, make_score, score_key
from routing.core.scores.base import ScoreError
from routing.core.scores.verbalized import SYSTEM_PROMPT, parse_reply, prompts

CATS = {"cat": "cat", "Cat": "cat", "dog": "dog", "Dog": "dog"}


def u(name: str, prediction: dict[str, object], **params: object) -> float:
    result = make_score(name, params)(prediction)
    assert result.usable, result.reason
    return result.u


def reason(name: str, prediction: dict[str, object], **params: object) -> str:
    result = make_score(name, params)(prediction)
    assert result.u == 1.0
    return result.reason


def test_every_score_says_what_it_is() -> None:
    for kind in SCORES:
        assert kind.title
        assert kind.summary.endswith(".")
        assert all(sentence.endswith(".") for sentence in kind.parameters.values())
        with pytest.raises(ScoreError, match="nonsense"):
            kind.make({"nonsense": 1})


def test_an_unknown_score_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="no score 'nope'; choose one of: max_softmax, label_prob"):
        make_score("nope")


def test_max_softmax() -> None:
    assert u("max_softmax", {"probabilities": [0.1, 0.7, 0.2]}) == pytest.approx(0.3)
    assert u("max_softmax", {"probabilities": {"cat": 0.25, "dog": 0.75}}) == 0.25
    assert u("max_softmax", {"probabilities": [1.0000001, 0.0]}) == 0.0  # what a float32 softmax may give


@pytest.mark.parametrize(
    ("probabilities", "words"),
    [
        (None, "missing"),
        ([], "missing"),
        ("0.5", "missing"),
        ([0.5, float("nan")], "NaN"),
        ([0.5, 0.2], "add up to 0.7"),
        ([1.5, -0.5], "outside"),
        ([0.5, "x"], "not a number"),
        ([True, False], "not a number"),
        ([0.5, None], "missing"),
    ],
)
def test_max_softmax_without_usable_probabilities(probabilities: object, words: str) -> None:
    assert words in reason("max_softmax", {"probabilities": probabilities})


def test_recorded() -> None:
    assert u("recorded", {"confidence": 0.75}) == 0.25
    assert u("recorded", {"confidence": "0.75"}) == 0.25
    assert repr(u("recorded", {"confidence": 0.982})) == "0.018"
    assert u("recorded", {"uncertainty": 0.1, "confidence": 0.2}) == 0.1
    assert u("recorded", {"uncertainty": None, "confidence": 1}) == 0.0
    assert u("recorded", {"uncertainty": 0}) == 0.0


@pytest.mark.parametrize(
    ("prediction", "words"),
    [
        ({}, "missing"),
        ({"confidence": ""}, "missing"),
        ({"confidence": float("nan")}, "NaN"),
        ({"confidence": "inf"}, "outside"),
        ({"confidence": 1.01}, "outside"),
        ({"uncertainty": -0.01}, "outside"),
        ({"confidence": "high"}, "not a number"),
        ({"confidence": [0.5]}, "not a number"),
        ({"confidence": 10**400}, "not a number"),
    ],
)
def test_recorded_without_a_usable_value(prediction: dict[str, object], words: str) -> None:
    assert words in reason("recorded", prediction)


def test_logits_is_one_minus_the_mean_token_probability() -> None:
    assert u("logits", {"token_probabilities": [0.9, 0.5, 0.4]}) == pytest.approx(0.4)
    logprobs = [math.log(0.9), math.log(0.5), math.log(0.4)]
    assert u("logits", {"token_logprobs": logprobs}) == pytest.approx(0.4)
    assert u("logits", {"token_logprobs": [0.0, 1e-9, -9999.0]}) == pytest.approx(1 / 3)
    assert u("logits", {"token_probabilities": [1.0] * 1000}) == 0.0


@pytest.mark.parametrize(
    ("prediction", "words"),
    [
        ({}, "missing"),
        ({"token_probabilities": []}, "missing"),
        ({"token_probabilities": "0.5"}, "missing"),
        ({"token_probabilities": [0.5, 2]}, "outside"),
        ({"token_probabilities": [0.5, "NaN"]}, "NaN"),
        ({"token_logprobs": [-0.1, 0.2]}, "above 0"),
        ({"token_logprobs": [float("nan")]}, "NaN"),
        ({"token_logprobs": [None]}, "missing"),
    ],
)
def test_logits_without_usable_tokens(prediction: dict[str, object], words: str) -> None:
    assert words in reason("logits", prediction)


def test_label_probability_is_renormalised_among_the_allowed_labels() -> None:
    prediction = {"label": "cat", "allowed": CATS, "probabilities": {"cat": 0.3, " dog": 0.1, "the": 0.6}}
    assert u("label_probability", prediction) == pytest.approx(0.25)
    # Two spellings of one label add up.
    prediction["probabilities"] = {"cat": 0.2, "Cat": 0.1, "dog": 0.1}
    assert u("label_probability", prediction) == pytest.approx(0.25)
    prediction = {"label": "cat", "label_logprobs": {"cat": math.log(0.06), "dog": math.log(0.02)}}
    assert u("label_probability", prediction) == pytest.approx(0.25)
    prediction = {"label": "b", "classes": ["a", "b"], "probabilities": [0.3, 0.7]}
    assert u("label_probability", prediction) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("prediction", "words"),
    [
        ({"probabilities": {"cat": 1.0}}, "the answer is missing"),
        ({"label": "cat"}, "probabilities of the labels are missing"),
        ({"label": "cat", "probabilities": [0.5, 0.5]}, "probabilities of the labels are missing"),
        ({"label": "cat", "probabilities": {"dog": 0.5}}, "no probability is stored for the answer 'cat'"),
        ({"label": "cat", "probabilities": {"cat": 0.0, "dog": 0}}, "all 0"),
        ({"label": "cat", "probabilities": {"cat": 0.5, "dog": 7}}, "'dog' is outside"),
        ({"label": "cat", "label_logprobs": {"cat": 0.5}}, "'cat' is above 0"),
    ],
)
def test_label_probability_without_usable_probabilities(prediction: dict[str, object], words: str) -> None:
    assert words in reason("label_probability", {"allowed": CATS, **prediction})


@pytest.mark.parametrize(
    ("reply", "confidence"),
    [
        ("0.85", 0.85),
        (" .9\n", 0.9),
        ("**0.7**", 0.7),
        ("1", 1.0),
        ("0.0", 0.0),
        ("85%", 0.85),
        ("85 %", 0.85),
        ("8.5e-1", 0.85),
        (0.85, 0.85),
        ("Probability: 0.85", 0.85),
        ("The 2nd option; the probability is 0.4.", 0.4),
        ("I found 3 roots. Confidence of 90%", 0.9),
        ("I would say 0.6", 0.6),
        ("<think>maybe 0.2, or 0.3</think>0.6", 0.6),
    ],
)
def test_a_stated_confidence_is_read(reply: object, confidence: float) -> None:
    assert parse_reply(reply) == pytest.approx(confidence)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("", "empty"),
        ("I cannot tell", "no number"),
        ("between 0.5 and 0.7", "several numbers"),
        ("85", "outside"),
        ("1.2", "outside"),
        ("-0.5", "outside"),
        ("<think>" * 200_000, "middle of a thought"),
        ("<think>0.5 seems", "middle of a thought"),
        (None, "missing"),
        (float("nan"), "NaN"),
    ],
)
def test_a_reply_that_states_no_confidence_says_why(reply: object, words: str) -> None:
    result = parse_reply(reply)
    assert isinstance(result, str)
    assert words in result


def test_verbalized_is_one_minus_the_mean_of_the_replies() -> None:
    assert u("verbalized", {"verbalized": ["0.8", "90%", 0.7]}) == pytest.approx(0.2)
    assert u("verbalized", {"verbalized": ["0.8", "no idea", "0.6"]}) == pytest.approx(0.3)
    assert u("verbalized", {"verbalized": "0.8"}) == pytest.approx(0.2)
    words = reason("verbalized", {"verbalized": ["0.8", "no idea"]}, least_replies=2)
    assert words.startswith("1 of 2 replies can be read, 2 are needed; the reply holds no number")
    assert "missing" in reason("verbalized", {})
    with pytest.raises(ScoreError, match="least_replies"):
        make_score("verbalized", {"least_replies": 0})


def test_the_prompt_takes_question_and_answer_as_they_are() -> None:
    system, user = prompts("What is {answer}?", "{question} 7")
    assert system == SYSTEM_PROMPT
    assert user.startswith("Question: What is {answer}?\nAnswer: {question} 7\nProvide a probability")


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("answer", 0.75),
        ("majority", 0.5),
        # two cats, one dog, one without an answer
        ("entropy", (0.5 * math.log(2) + 2 * 0.25 * math.log(4)) / math.log(4)),
    ],
)
def test_ensemble(measure: str, expected: float) -> None:
    prediction = {"label": "dog", "allowed": CATS, "samples": ["cat", " Cat ", "Dog", None]}
    assert u("ensemble", prediction, measure=measure) == pytest.approx(expected)
    agreed = {"label": "dog", "samples": ["dog"] * 5}
    assert u("ensemble", agreed, measure=measure) == 0.0


def test_ensemble_without_samples() -> None:
    assert "fewer than two" in reason("ensemble", {"label": "dog", "samples": ["dog"]})
    assert "fewer than two" in reason("ensemble", {"label": "dog"})
    assert "answer is missing" in reason("ensemble", {"samples": ["dog", "dog"]})
    with pytest.raises(ScoreError, match="measure must be one of answer, majority, entropy"):
        make_score("ensemble", {"measure": "vote"})


@pytest.mark.parametrize("name", [name for name in SCORES.names() if name not in ("calibrated", "hybrid")])
def test_an_answer_that_is_missing_or_cut_off_has_no_usable_score(name: str) -> None:
    whole = {
        "confidence": 0.9,
        "probabilities": {"cat": 0.9, "dog": 0.1},
        "token_probabilities": [0.9],
        "verbalized": ["0.9"],
        "samples": ["cat", "cat"],
        "label": "cat",
        "finish_reason": "stop",
    }
    assert u(name, whole) <= 0.1 + 1e-12
    assert "cut off" in reason(name, whole | {"finish_reason": "length"})
    assert reason(name, whole | {"label": None, "reason": "unknown label 'x'"}) == "unknown label 'x'"
    assert reason(name, whole | {"label": None}) == "no answer"
    assert reason(name, {"label": "cat"})


def test_hybrid_is_a_weighted_mean() -> None:
    prediction = {"confidence": 0.8, "probabilities": [0.6, 0.4]}
    assert u("hybrid", prediction, scores=["recorded", "max_softmax"]) == pytest.approx(0.3)
    weighted = [{"score": "recorded", "weight": 3}, {"score": "max_softmax", "params": {}}]
    assert u("hybrid", prediction, scores=weighted) == pytest.approx((3 * 0.2 + 0.4) / 4)
    assert reason("hybrid", {"confidence": 0.8}, scores=weighted).startswith("max_softmax: the class")
    assert fields_read("hybrid", {"scores": weighted}) == [("uncertainty", "confidence"), ("probabilities",)]


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (None, "needs scores"),
        ([], "needs scores"),
        (["hybrid"], "cannot be made of 'hybrid'"),
        ([7], "entry 1 of scores"),
        (["recorded", {"score": "recorded", "colour": 1}], "entry 2 of scores has 'colour'"),
        ([{"score": "recorded", "weight": 0}], "weight of entry 1"),
        ([{"score": "recorded", "weight": float("nan")}], "weight of entry 1"),
        ([{"score": "recorded", "params": {"x": 1}}], "no parameter 'x'"),
        (["nope"], "no score 'nope'"),
    ],
)
def test_a_hybrid_that_cannot_be_is_refused(scores: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_score("hybrid", {"scores": scores})


def test_other_parameters_are_stored_under_another_name() -> None:
    assert score_key("logits", {}) == "logits"
    key = score_key("ensemble", {"measure": "answer"})
    assert key != score_key("ensemble", {"measure": "majority"})
    assert key.startswith("ensemble#")
    # What a database may do to numbers and to the order of names changes nothing.
    params = {"scores": [{"score": "recorded", "weight": 2.0}], "a": {"x": 1, "y": True}}
    back = json.loads(
        json.dumps({"a": {"y": True, "x": 1.0}, "scores": [{"weight": 2, "score": "recorded"}]})
    )
    assert score_key("hybrid", params) == score_key("hybrid", back)
    assert max(len(score_key(name, {"a": 1})) for name in SCORES.names()) <= 40
