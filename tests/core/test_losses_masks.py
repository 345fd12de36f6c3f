"""The losses of masks: overlap by label on run lengths, never on pixels."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hypac_verify.masks import same_masks
from routing.core.losses import LossError, alike_by, losses_of, make_loss
from routing.core.losses.masks import dice, read_masks

pytestmark = pytest.mark.costly

Runs = list[int]
HALVES = [8, 8]
"""Of an image of 4 x 4 the columns on the right."""
QUARTER = [12, 4]


def masks(*found: Runs, label: str = "cat", size: tuple[int, int] = (4, 4)) -> str:
    return json.dumps([{"label": label, "size": size, "counts": counts} for counts in found])


@pytest.mark.parametrize(
    ("label", "prediction", "loss"),
    [
        (masks(HALVES), masks(HALVES), 0),
        (masks(), masks(), 0),
        (masks(HALVES), masks(), 1),
        (masks(), masks(HALVES), 1),
        (masks(HALVES), masks(QUARTER), Fraction(1, 3)),
        (masks(HALVES), masks(HALVES, label="dog"), 1),
        (masks(HALVES), masks([8, 4, 4], QUARTER), 0),  # all masks of a label together
        (masks(HALVES), masks(HALVES, QUARTER), 0),  # one over the other covers no more
        (masks(HALVES), masks([0, 0, 8, 4, 0, 4]), 0),
        (masks(HALVES), masks(HALVES, [16]), 0),  # a mask without a pixel is none
        (masks([16]), masks(), 0),
        (masks(HALVES), masks([8, 8], size=(2, 8)), 1),  # of another size
        (masks(HALVES), masks([8, 7]), 1),
        (masks(HALVES), masks([8, 8.0]), 1),  # type: ignore[list-item]
        (masks(HALVES), masks([True, 15]), 1),
        (masks(HALVES), masks([-1, 17]), 1),
        (masks(HALVES), "no masks", 1),
        (masks(HALVES), "[" * 100_000, 1),
        (masks(HALVES), '[{"label":"cat","size":[4,4],"counts":[8,8],"x":1}]', 1),
        (masks(HALVES), '[{"label":"cat","size":[4,4],"counts":"88"}]', 1),
    ],
)
def test_it_is_one_less_the_mean_dice_of_the_labels(
    label: str, prediction: str, loss: Fraction | int
) -> None:
    assert make_loss("mask_dice")(label, prediction) == float(loss)
    right, same = make_loss("masks_right", {"least_dice": "0.66"}), same_masks({"least_dice": "0.66"})
    assert right(label, prediction) == float(loss > Fraction(34, 100))
    assert same is not None
    assert same(label, prediction) == (loss <= Fraction(34, 100))


def test_the_mean_is_over_labels_and_each_has_to_be_right() -> None:
    two = json.loads(masks(HALVES)) + json.loads(masks(HALVES, label="dog"))
    assert make_loss("mask_dice")(json.dumps(two), masks(HALVES)) == 0.5
    assert make_loss("masks_right", {"least_dice": "0.5"})(json.dumps(two), masks(HALVES)) == 1


def test_a_dice_that_is_just_enough_is_enough() -> None:
    """2 * 4 / (4 + 8) is 2/3, and not 0.667."""
    for least, right in (("0.666", True), ("0.667", False)):
        assert (make_loss("masks_right", {"least_dice": least})(masks(HALVES), masks(QUARTER)) == 0) is right
        same = same_masks({"least_dice": least})
        assert same is not None
        assert same(masks(HALVES), masks(QUARTER)) is right


def test_people_are_alike_by_the_loss_that_says_right_or_wrong() -> None:
    assert alike_by(make_loss("mask_dice")) == make_loss("masks_right")
    own = make_loss("masks_right", {"least_dice": "0.5"})
    assert alike_by(own) is own


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("mask_dice", {"least_dice": "0.5"}),
        ("masks_right", {"least_dice": 0}),
        ("masks_right", {"least_dice": "1.1"}),
        ("masks_right", {"least_dice": "0.5555"}),
        ("masks_right", {"least_dice": True}),
        ("masks_right", {"iou": "0.5"}),
    ],
)
def test_parameters_out_of_their_range_are_refused(name: str, params: dict[str, Any]) -> None:
    with pytest.raises(LossError, match="parameter"):
        make_loss(name, params)
    assert same_masks(params) is None or name == "mask_dice"


WRONG = [
    masks(HALVES, [8, 8, 0], size=(4, 4))[:-1] + ',{"label":"cat","size":[2,8],"counts":[8,8]}]',
    '[{"label":"cat","size":[4,4],"size":[4,4],"counts":[8,8]}]',
    '[{"label":"\\ud800","size":[4,4],"counts":[8,8]}]',
    '[{"label":"cat","size":[4,4,1],"counts":[8,8]}]',
    '[{"label":"cat","size":[0,4],"counts":[]}]',
    '[{"label":"cat","size":[65536,1],"counts":[65536]}]',
    '[{"label":"cat","size":[65535,65535],"counts":[4294836225]}]',
    f'[{{"label":"cat","size":[1,1],"counts":[{"9" * 5000}]}}]',
    masks(*[HALVES] * 501),
]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_list_of_masks_is_none_to_either_reader(text: str) -> None:
    same = same_masks({})
    assert same is not None
    assert read_masks(text) is None
    assert not same(masks(HALVES), text)
    with pytest.raises(LossError, match=r"row 0: .*masks"):
        losses_of(make_loss("masks_right"), [text], [masks(HALVES)])
    with pytest.raises(ValueError, match="no list of masks"):
        same(text, masks(HALVES))


Drawn = list[tuple[str, list[bool]]]
PIXELS = st.lists(st.booleans(), min_size=24, max_size=24)
SOME = st.lists(st.tuples(st.sampled_from(["cat", "dog"]), PIXELS), max_size=4)


def written(some: Drawn) -> str:
    found = []
    for label, pixels in some:
        places = [0, *(np.flatnonzero(np.diff([False, *pixels])).tolist()), len(pixels)]
        found.append({"label": label, "size": [4, 6], "counts": np.diff(places).tolist()})
    return json.dumps(found)


def by_pixels(first: Drawn, second: Drawn) -> dict[str, Fraction]:
    found = {}
    for label in ("cat", "dog"):
        one, other = (
            np.any([pixels for name, pixels in some if name == label] or [[False] * 24], axis=0)
            for some in (first, second)
        )
        if size := int(one.sum() + other.sum()):
            found[label] = Fraction(2 * int((one & other).sum()), size)
    return found


@settings(max_examples=150, deadline=None)
@given(SOME, SOME, st.sampled_from(["0.3", "0.5", "0.667", "0.8", "1"]))
def test_run_lengths_say_the_same_as_pixels_and_so_does_the_verifier(
    first: Drawn, second: Drawn, least: str
) -> None:
    truth, guess, known = written(first), written(second), by_pixels(first, second)
    assert dice(truth, guess) == known
    mean = sum(known.values(), Fraction(0)) / len(known) if known else Fraction(1)
    assert make_loss("mask_dice")(truth, guess) == float(1 - mean) == make_loss("mask_dice")(guess, truth)
    right = all(one >= Fraction(least) for one in known.values())
    same = same_masks({"least_dice": least})
    assert same is not None
    assert same(truth, guess) == right == (make_loss("masks_right", {"least_dice": least})(truth, guess) == 0)


def test_an_image_of_a_billion_pixels_costs_its_runs() -> None:
    large, size = [500_000_000, 500_000_000], (31_250, 32_000)
    began = time.perf_counter()
    half, whole = masks(large, size=size), masks([0, 10**9], size=size)
    assert make_loss("mask_dice")(half, whole) == pytest.approx(1 / 3)
    same = same_masks({"least_dice": "0.667"})
    assert same is not None
    assert not same(half, whole)
    assert time.perf_counter() - began < 0.2


def test_many_runs_are_compared_in_a_moment_by_both() -> None:
    stripes = masks([0, *[1] * 100_000], size=(1000, 100))
    began = time.perf_counter()
    assert make_loss("masks_right")(stripes, stripes) == 0
    same = same_masks({})
    assert same is not None
    assert same(stripes, stripes)
    assert time.perf_counter() - began < 3
