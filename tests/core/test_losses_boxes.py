"""The losses of boxes: matched one to one, in whole numbers, by label."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from hypac_verify.boxes import same_boxes
from routing.core.losses import LossError, losses_of, make_loss
from routing.core.losses.boxes import read_boxes

Sides = tuple[float, float, float, float]
A: Sides = (10, 10, 20, 20)
HALF: Sides = (10, 10, 20, 10)
UNDER_HALF: Sides = (10, 10, 20, 9.9999)
FAR: Sides = (60, 60, 20, 20)


def boxes(*found: Sides, label: str = "cat") -> str:
    return json.dumps(
        [dict(zip(("label", "x", "y", "width", "height"), (label, *one), strict=True)) for one in found]
    )


@pytest.mark.parametrize(
    ("label", "prediction", "f1"),
    [
        (boxes(A), boxes(A), Fraction(1)),
        (boxes(), boxes(), Fraction(1)),
        (boxes(A), boxes(), Fraction(0)),
        (boxes(), boxes(A), Fraction(0)),
        (boxes(A), boxes(A, label="dog"), Fraction(0)),
        (boxes(A), boxes(HALF), Fraction(1)),  # an overlap of exactly one half is enough
        (boxes(A), boxes(UNDER_HALF), Fraction(0)),
        (boxes(A, FAR), boxes(FAR, A), Fraction(1)),
        (boxes(A, FAR), boxes(A), Fraction(2, 3)),
        (boxes(A), boxes(A, A), Fraction(2, 3)),  # no box is found twice
        (boxes(A), "no boxes", Fraction(0)),
        (boxes(A), "{}", Fraction(0)),
        (boxes(A), boxes((90, 10, 20, 20)), Fraction(0)),
        (boxes(A), '[{"label":"cat","x":1e999999999,"y":1,"width":1,"height":1}]', Fraction(0)),
        (boxes(A), "[" * 100_000, Fraction(0)),
    ],
)
def test_it_is_one_less_the_f1_of_the_boxes(label: str, prediction: str, f1: Fraction) -> None:
    assert make_loss("box_f1")(label, prediction) == pytest.approx(float(1 - f1), abs=1e-15)
    assert make_loss("boxes_right")(label, prediction) == float(f1 < 1)
    assert make_loss("boxes_right", {"least_f1": "0.6"})(label, prediction) == float(f1 < Fraction(3, 5))


def test_a_box_takes_another_where_that_finds_more_pairs() -> None:
    """The first box fits both, the second one alone: greedy by order would find one pair."""
    truth = boxes((10, 10, 20, 20), (16, 10, 20, 20))
    guess = boxes((13, 10, 20, 20), (6, 10, 20, 20))
    assert make_loss("box_f1")(truth, guess) == 0


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("box_f1", {"iou": 0}),
        ("box_f1", {"iou": "1.1"}),
        ("box_f1", {"iou": "0.5555"}),
        ("box_f1", {"iou": "1e-999999999"}),
        ("box_f1", {"iou": "1e999999999"}),
        ("box_f1", {"least_f1": "0.5"}),
        ("boxes_right", {"least_f1": "0"}),
        ("boxes_right", {"least_f1": True}),
    ],
)
def test_parameters_out_of_their_range_are_refused(name: str, params: dict[str, Any]) -> None:
    with pytest.raises(LossError, match="parameter"):
        make_loss(name, params)


def test_a_label_of_record_that_is_no_list_of_boxes_is_an_error() -> None:
    with pytest.raises(LossError, match=r"row 1: .*boxes"):
        losses_of(make_loss("box_f1"), [boxes(A), "cat"], [boxes(A)] * 2)


SIDE = st.integers(0, 12)
BOX = st.tuples(SIDE, SIDE, st.integers(1, 8), st.integers(1, 8)).map(
    lambda one: tuple(float(4 * side) for side in one)
)
SOME = st.lists(BOX, max_size=4)


def overlap(one: Sides, other: Sides) -> Fraction:
    x, y, width, height = map(Fraction, one)
    left, top, wide, high = map(Fraction, other)
    common = max(min(x + width, left + wide) - max(x, left), Fraction(0)) * max(
        min(y + height, top + high) - max(y, top), Fraction(0)
    )
    return common / (width * height + wide * high - common)


def most_pairs(first: list[Sides], second: list[Sides], iou: Fraction) -> int:
    """By trying all."""
    return max(
        (
            sum(overlap(first[one], other) >= iou for one, other in zip(chosen, order, strict=True))
            for size in range(min(len(first), len(second)) + 1)
            for chosen in combinations(range(len(first)), size)
            for order in permutations(second, size)
        ),
        default=0,
    )


@settings(max_examples=60, deadline=None)
@given(SOME, SOME, st.sampled_from(["0.1", "0.3", "0.5", "0.75"]), st.sampled_from(["0.5", "0.8", "1"]))
def test_no_matching_finds_more_and_the_verifier_finds_as_many(
    first: list[Sides], second: list[Sides], iou: str, least: str
) -> None:
    truth, guess = boxes(*first), boxes(*second)
    size = len(first) + len(second)
    f1 = Fraction(2 * most_pairs(first, second, Fraction(iou)), size) if size else Fraction(1)
    loss = make_loss("box_f1", {"iou": iou})
    assert loss(truth, guess) == float(1 - f1) == loss(guess, truth)
    right = make_loss("boxes_right", {"iou": iou, "least_f1": least})(truth, guess) == 0
    same = same_boxes({"iou": iou, "least_f1": least})
    assert same is not None
    assert right == same(truth, guess) == (f1 >= Fraction(least))


def test_as_many_boxes_as_a_label_may_have_are_compared() -> None:
    many = boxes(*((x, y, 3.0, 3.0) for x in range(0, 96, 4) for y in range(0, 80, 4)))
    assert make_loss("box_f1")(many, many) == 0
    assert same_boxes({})(many, many)  # type: ignore[misc]
    found = read_boxes(many)
    assert found is not None
    assert found["cat"].shape == (480, 4)


@pytest.mark.parametrize(
    "params", [{"iou": "0.5555"}, {"iou": 2}, {"iou": "1e-999999999"}, {"x": 1}, {"iou": []}]
)
def test_the_verifier_knows_no_other_parameters(params: dict[str, Any]) -> None:
    assert same_boxes(params) is None


@pytest.mark.parametrize(
    "text",
    [
        '[{"label":"cat","x":10,"x":60,"y":10,"width":20,"height":20}]',
        '[{"label":"cat","x":10,"y":10,"width":20,"height":20,"z":NaN}]',
        boxes(*[A] * 501),
    ],
)
def test_what_two_readers_might_read_differently_is_no_list_of_boxes_to_either(text: str) -> None:
    same = same_boxes({})
    assert same is not None
    assert read_boxes(text) is None
    assert not same(boxes(A), text)
    with pytest.raises(LossError):
        make_loss("boxes_right")(text, boxes(A))
    with pytest.raises(ValueError, match="no list of boxes"):
        same(text, boxes(A))


def test_many_boxes_are_paired_by_both_alike() -> None:
    many = [(n % 25 * 4, n // 25 * 5, 4, 5) for n in range(500)]
    moved = [(min(x + 1, 96), y, width, height) for x, y, width, height in many]
    same = same_boxes({"iou": "0.5"})
    assert same is not None
    assert same(boxes(*many), boxes(*moved[::-1]))
    assert make_loss("boxes_right", {"iou": "0.5"})(boxes(*many), boxes(*moved[::-1])) == 0
