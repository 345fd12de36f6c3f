"""Losses of texts, numbers and sets: what is right, what is wrong, and what is refused."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from routing.core.losses import LOSSES, LossError, losses_of, make_loss, sorts_labels
from routing.core.losses.numeric import read_number
from routing.core.registry import UnknownNameError

pytestmark = pytest.mark.costly

ROOT = Path(__file__).resolve().parents[2]
OWN = "tests.core.own_losses"
NEEDED = {"cosine_distance": {"embedder": f"{OWN}:embed"}, "measured_elsewhere": {"measure": "mine 1.0"}}


def test_every_loss_is_known_with_a_sentence_and_its_bound() -> None:
    assert LOSSES.names() == (
        "zero_one",
        "exact_match",
        "numeric",
        "math_equivalence",
        "set_equal",
        "jaccard",
        "cosine_distance",
        "token_f1",
        "box_f1",
        "boxes_right",
        "mask_dice",
        "masks_right",
        "measured_elsewhere",
    )
    graded = {"jaccard", "cosine_distance", "token_f1", "box_f1", "mask_dice", "measured_elsewhere"}
    for kind in LOSSES:
        assert kind.summary.endswith(".")
        params = NEEDED.get(kind.name, {})
        loss = make_loss(kind.name, params)
        assert loss.name == kind.name
        assert loss.bound == (2 if kind.name == "cosine_distance" else 1)
        assert loss.binary is (kind.name not in graded)


@pytest.mark.parametrize(
    ("name", "params", "texts"),
    [
        ("zero_one", {}, ["a", "A", "b"]),
        ("exact_match", {}, ["a b", "A  B", "a\tb", "b"]),
        (
            "exact_match",
            {"ignore_articles": True, "ignore_punctuation": True},
            ["a cat", "Cat!", "cats", "the"],
        ),
        ("numeric", {}, ["1", "1.0", "1e0", "1.1"]),
        ("set_equal", {}, ['["a","b"]', '["b","a","a"]', '["a"]', "[]"]),
        ("jaccard", {"separator": "|"}, ["a|b", "b|a|", "a", ""]),
    ],
)
def test_labels_that_cost_nothing_against_a_third_are_alike_where_a_loss_says_so(
    name: str, params: dict[str, object], texts: list[str]
) -> None:
    loss = make_loss(name, params)
    assert sorts_labels(loss)
    alike = {(a, b) for a in texts for b in texts if loss(a, b) == 0 and loss(b, a) == 0}
    assert all((a, a) in alike for a in texts)
    assert all((a, c) in alike for a, b in alike for other, c in alike if b == other)


@pytest.mark.parametrize("params", [{"absolute": "0.5"}, {"relative": "0.5"}])
def test_a_tolerance_sorts_nothing(params: dict[str, object]) -> None:
    loss = make_loss("numeric", params)
    assert loss("1.4", "1") == loss("1", "1.4") == loss("1.4", "1.8") == loss("1.8", "1.4") == 0
    assert loss("1", "1.8") == 1
    assert not sorts_labels(loss)


def test_a_loss_that_declares_nothing_may_not_sort() -> None:
    assert not sorts_labels(make_loss("cosine_distance", {"embedder": f"{OWN}:embed"}))
    assert not sorts_labels(make_loss("math_equivalence"))


def test_importing_the_losses_loads_no_computer_algebra() -> None:
    code = "import sys, routing.core.losses; print(sorted({'sympy', 'math_verify'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["zero_one", "exact_match", "numeric", "math_equivalence", "jaccard"])
def test_an_unknown_parameter_is_named(name: str) -> None:
    with pytest.raises(LossError, match=f"'{name}' has no parameter 'tolerence'"):
        make_loss(name, {"tolerence": 1})


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("exact_match", {"ignore_case": "yes"}, "'ignore_case' must be true or false, not 'yes'"),
        ("numeric", {"absolute": "a bit"}, "'absolute': 'a bit' is not a number"),
        ("numeric", {"relative": -0.1}, "'relative' must be at least 0"),
        ("math_equivalence", {"decimals": 2.5}, "'decimals' must be a whole number from 0 to 30, not 2.5"),
        ("math_equivalence", {"seconds": 0}, "'seconds' must be a whole number from 1"),
        ("math_equivalence", {"seconds": True}, "'seconds' must be a whole number from 1"),
        ("set_equal", {"separator": ""}, "'separator' must be a text of at least one sign"),
        ("cosine_distance", {}, "needs the parameter 'embedder'"),
        ("cosine_distance", {"embedder": "numpy"}, "write it as 'package.module:name'"),
        ("cosine_distance", {"embedder": f"{OWN}:not_callable"}, "cannot be called with a list of texts"),
        ("numeric", {"absolute": math.nan}, "not plain JSON"),
        ("numeric", {"absolute": {1}}, "not plain JSON"),
    ],
)
def test_a_parameter_that_cannot_be_used_is_refused(name: str, params: dict[str, object], words: str) -> None:
    with pytest.raises(LossError) as refused:
        make_loss(name, params)
    assert words in str(refused.value)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="choose one of: zero_one, exact_match"):
        make_loss("hamming")


def test_one_loss_is_made_once() -> None:
    assert make_loss("numeric", {"absolute": 1}) is make_loss("numeric", {"absolute": 1})
    assert make_loss("numeric", {"absolute": 2}) is not make_loss("numeric", {"absolute": 1})


# --- Texts and numbers --------------------------------------------------------------------------------------


def test_zero_one_compares_the_texts_themselves() -> None:
    loss = make_loss("zero_one")
    assert [loss("a", "a"), loss("a", "A"), loss("a", "")] == [0, 1, 1]
    assert losses_of(loss, ["a", "b", "c"], ["a", "x", "c"]).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("params", "label", "prediction", "value"),
    [
        ({}, "New  York", " new york\n", 0),
        ({}, "Straße", "STRASSE", 0),
        ({}, "\N{LATIN SMALL LIGATURE FI}ne", "fine", 0),
        ({}, "é", "e\N{COMBINING ACUTE ACCENT}", 0),
        ({}, "\N{FULLWIDTH DIGIT SEVEN}", "7", 0),
        ({}, "yes.", "yes", 1),
        ({}, "the end", "end", 1),
        ({"ignore_case": False}, "US", "us", 1),
        ({"ignore_case": False}, "US ", "US", 0),
        ({"ignore_punctuation": True}, "«Yes!»", "yes", 0),
        ({"ignore_punctuation": True}, "1+1", "11", 1),
        ({"ignore_articles": True}, "The end", "end", 0),
        ({"ignore_articles": True}, "theme", "me", 1),
        ({"ignore_articles": True, "ignore_case": False}, "An End", "End", 0),
    ],
)
def test_exact_match_after_its_normalisation(
    params: dict[str, object], label: str, prediction: str, value: float
) -> None:
    assert make_loss("exact_match", params)(label, prediction) == value


@given(st.text(st.characters(max_codepoint=0x2FF), max_size=20))
def test_a_text_always_matches_itself_in_other_capitals_and_spaces(text: str) -> None:
    loss = make_loss("exact_match")
    assert loss(text, f" {text}\t") == 0
    assert loss(text, text.casefold()) == 0
    assert loss(text, text + "x") == 1


@pytest.mark.parametrize(
    ("params", "label", "prediction", "value"),
    [
        ({}, "3", "3.0", 0),
        ({}, "1,234.50", "1234.5", 0),
        ({}, "1234567", "1,234,567", 0),
        ({}, "-5", "\N{MINUS SIGN}5", 0),
        ({}, "1e3", "1000", 0),
        ({}, "0.1", ".1", 0),
        ({}, "3", "3.000000000000000000000001", 1),
        ({}, "0.3", "0.30000000000000004", 1),
        ({}, "1.5", "1,5", 1),
        ({}, "1234", "12,34", 1),
        ({}, "3", "three", 1),
        ({}, "3", "", 1),
        ({}, "3", "nan", 1),
        ({}, "3", "Infinity", 1),
        ({}, "3", "1_0", 1),
        ({}, "3", "1e999999999", 1),
        ({}, "3", "9" * 5000, 1),
        ({"absolute": "0.1"}, "0.2", "0.3", 0),
        ({"absolute": 0.1}, "0.2", "0.3", 0),
        ({"absolute": "0.1"}, "0.2", "0.30000001", 1),
        ({"relative": "0.01"}, "200", "198", 0),
        ({"relative": "0.01"}, "-200", "-202", 0),
        ({"relative": "0.01"}, "200", "197.99", 1),
        ({"relative": "0.01"}, "0", "0.001", 1),
        ({"relative": "0.01", "absolute": "1"}, "10", "10.9", 0),
    ],
)
def test_numbers_within_a_tolerance(
    params: dict[str, object], label: str, prediction: str, value: float
) -> None:
    assert make_loss("numeric", params)(label, prediction) == value


def test_a_label_that_is_no_number_is_an_error_that_says_so() -> None:
    with pytest.raises(LossError, match="label 'about 3' is not a number; correct it"):
        make_loss("numeric")("about 3", "3")


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=4))
def test_numbers_are_read_as_they_are_written(number: object) -> None:
    assert read_number(f"{number:,}") == read_number(str(number)) == read_number(f" {number}\n")
    assert float(read_number(str(number)) or 0) == float(str(number))


# --- Several labels per item --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "label", "prediction", "equal", "jaccard"),
    [
        ({}, '["cat","dog"]', '["dog", "cat", "cat"]', 0, 0),
        ({}, '["cat","dog"]', '["cat"]', 1, 1 / 2),
        ({}, '["a","b","c"]', '["b","c","d"]', 1, 1 / 2),
        ({}, '["a"]', '["b"]', 1, 1),
        ({}, "[]", "[]", 0, 0),
        ({}, "[]", '["a"]', 1, 1),
        ({}, "[1, true]", "[true, 1]", 0, 0),
        ({}, '["a"]', "a", 1, 1),
        ({}, '["a"]', '"a"', 1, 1),
        ({}, '["a"]', '[["a"]]', 1, 1),
        ({}, '["a"]', "[" * 100_000, 1, 1),
        ({"separator": "|"}, "cat | dog", "dog|cat|", 0, 0),
        ({"separator": "|"}, "cat|dog", "", 1, 1),
    ],
)
def test_sets_of_labels(
    params: dict[str, object], label: str, prediction: str, equal: float, jaccard: float
) -> None:
    assert make_loss("set_equal", params)(label, prediction) == equal
    assert make_loss("jaccard", params)(label, prediction) == pytest.approx(jaccard)


@pytest.mark.parametrize("name", ["set_equal", "jaccard"])
def test_a_label_that_is_no_list_is_an_error(name: str) -> None:
    with pytest.raises(LossError, match="the label 'cat' is not a JSON list"):
        make_loss(name)("cat", '["cat"]')


SETS = st.sets(st.sampled_from("abcdef")).map(lambda keys: json.dumps(sorted(keys)))


@given(SETS, SETS, SETS)
def test_jaccard_is_a_distance_and_zero_only_for_equal_sets(a: str, b: str, c: str) -> None:
    jaccard, equal = make_loss("jaccard"), make_loss("set_equal")
    assert jaccard(a, b) == jaccard(b, a)
    assert 0 <= jaccard(a, b) <= 1
    assert (jaccard(a, b) == 0) == (equal(a, b) == 0) == (a == b)
    assert jaccard(a, c) <= jaccard(a, b) + jaccard(b, c) + 1e-12


# --- Many pairs ---------------------------------------------------------------------------------------------


class _Broken:
    """A loss that was never checked, given to `losses_of` directly."""

    name, bound, binary = "broken", 1.0, False

    def __call__(self, label: str, prediction: str) -> float:
        return float(prediction)


def test_losses_of_many_pairs_name_the_row_that_is_wrong() -> None:
    assert losses_of(_Broken(), ["a", "b"], ["0.5", "1"]).tolist() == [0.5, 1]
    for value in ("nan", "1.5", "-1"):
        with pytest.raises(LossError, match=r"row 1: the loss 'broken' gave .*outside its range"):
            losses_of(_Broken(), ["a", "b"], ["0.5", value])
    with pytest.raises(LossError, match="2 labels and 1 predictions"):
        losses_of(_Broken(), ["a", "b"], ["0.5"])
    with pytest.raises(LossError, match="row 1: the label 'x' is not a number"):
        losses_of(make_loss("numeric"), ["1", "x"], ["1", "1"])
    assert losses_of(_Broken(), [], []).shape == (0,)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_many_pairs_at_once_give_what_single_calls_give(pairs: list[tuple[str, str]]) -> None:
    labels, predictions = (list(side) for side in zip(*pairs, strict=True))
    for loss in (make_loss("zero_one"), make_loss("cosine_distance", {"embedder": f"{OWN}:embed"})):
        single = [loss(*pair) for pair in pairs]
        np.testing.assert_allclose(losses_of(loss, labels, predictions), single, atol=1e-15)


ANSWERS = st.text(st.characters(categories=["L", "N", "P", "S", "Z", "C"]), max_size=30)
LABELS = {"zero_one": "a", "exact_match": "a", "numeric": "1,000.5", "set_equal": '["a"]', "jaccard": "[]"}


@pytest.mark.parametrize("name", LABELS)
@given(answer=ANSWERS | st.from_regex(r"[-+0-9.,eE\[\]\"]{0,12}", fullmatch=True))
def test_no_answer_whatever_it_is_stops_an_analysis(name: str, answer: str) -> None:
    loss = make_loss(name)
    assert 0 <= loss(LABELS[name], answer) <= 1
    assert loss(LABELS[name], LABELS[name]) == 0


@pytest.mark.parametrize(
    ("label", "prediction", "params", "expected"),
    [
        ("the cat sat", "sat  the\ncat", {}, 0.0),
        ("the cat sat", "a dog ran", {}, 1.0),
        ("a b c d", "a b", {}, 1 - 2 * 2 / 6),
        ("a a b", "a b b", {}, 1 - 2 * 2 / 6),
        ("Cat", "cat", {}, 1.0),
        ("Cat", "cat", {"ignore_case": True}, 0.0),
        ("x=f(1)", "x = f(2)", {}, 1 - 2 * 5 / 12),
        ("\u00e9", "e\u0301", {}, 0.0),
        (" ", "", {}, 0.0),
        ("a", "", {}, 1.0),
    ],
)
def test_the_share_of_words_that_differ(
    label: str, prediction: str, params: dict[str, bool], expected: float
) -> None:
    loss = make_loss("token_f1", params)
    assert loss(label, prediction) == pytest.approx(expected)
    assert loss(prediction, label) == pytest.approx(expected)
