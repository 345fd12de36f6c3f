"""Slow losses where none may be computed: they are looked up, and what is not there is said not to be."""

from collections.abc import Sequence

import pytest

from routing.core.losses import (
    LossError,
    LossNotComputedError,
    alike_by,
    each_loss,
    is_quick,
    losses_of,
    make_loss,
)
from routing.core.losses.looked_up import Pair, looked_up

ASKED: list[Pair] = []


class Slow:
    bound, binary = 2.0, False

    def __call__(self, label: str, prediction: str) -> float:
        ASKED.append((label, prediction))
        return 1.0


class Quick(Slow):
    quick = True


SLOW, QUICK = (f"{__name__}:{name}" for name in ("Slow", "Quick"))


def kept(name: str, params: str, pairs: Sequence[Pair]) -> dict[Pair, float | None]:
    known: dict[Pair, float | None] = {("a", "b"): 0.5, ("a", "c"): None}
    return {pair: known[pair] for pair in pairs if pair in known}


@pytest.fixture(autouse=True)
def nobody_asked() -> None:
    ASKED.clear()


def test_a_slow_loss_is_looked_up_and_never_computed() -> None:
    with looked_up(kept):
        loss = make_loss(SLOW)
        assert (loss.name, loss.bound, loss.binary) == (SLOW, 2.0, False)
        assert losses_of(loss, ["a", "a"], ["b", "b"]).tolist() == [0.5, 0.5]
        with pytest.raises(LossNotComputedError, match="of 1 pairs"):
            losses_of(loss, ["a", "x"], ["b", "y"])
        with pytest.raises(LossError, match="could not be computed") as caught:
            loss("a", "c")
        assert not isinstance(caught.value, LossNotComputedError)
        found = each_loss(loss, [("a", "b"), ("a", "c"), ("x", "y")])
        assert found[0] == 0.5
        assert isinstance(found[2], LossNotComputedError)
    assert not ASKED
    assert make_loss(SLOW)("x", "y") == 1.0


def test_all_pairs_are_looked_up_together_and_once() -> None:
    calls: list[int] = []

    def counting(name: str, params: str, pairs: Sequence[Pair]) -> dict[Pair, float | None]:
        calls.append(len(pairs))
        return dict.fromkeys(pairs, 0.0)

    with looked_up(counting):
        each_loss(make_loss(SLOW), [("a", "b"), ("a", "b"), ("c", "d")])
    assert calls == [2]


def test_a_loss_that_declares_to_be_quick_is_computed() -> None:
    with looked_up(kept):
        assert make_loss(QUICK)("x", "y") == 1.0
        assert make_loss("zero_one")("x", "y") == 1.0
    assert ASKED == [("x", "y")]


@pytest.mark.parametrize("name", ["math_equivalence", "mask_dice", "masks_right", "box_f1", "boxes_right"])
def test_what_takes_longer_than_a_comparison_of_texts_is_not_quick(name: str) -> None:
    assert not is_quick(make_loss(name))


@pytest.mark.parametrize("name", ["zero_one", "exact_match", "numeric", "set_equal", "jaccard", "token_f1"])
def test_what_compares_texts_is_quick(name: str) -> None:
    assert is_quick(make_loss(name))


def test_the_other_loss_that_one_declares_is_found_behind_it() -> None:
    with looked_up(kept):
        assert alike_by(make_loss("mask_dice")).name == "masks_right"
