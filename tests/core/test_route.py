"""The threshold rule, its keys, and who steps in for an unusable answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from routing.core.keys import V_MAX, Key, count_at_or_below, increasing, pack, pack_thresholds, unpack
from routing.core.route import first_usable_source, route

scores = st.one_of(st.sampled_from([0.0, 0.1, 0.3, 1.0]), st.floats(0, 1))
breaks = st.one_of(st.sampled_from([0, 1, V_MAX]), st.integers(0, V_MAX))
keys = st.builds(Key, scores, breaks)


@settings(max_examples=200, deadline=None)
@given(st.lists(keys, min_size=1, max_size=20), st.lists(st.one_of(st.none(), keys), min_size=1, max_size=4))
def test_an_item_goes_to_the_first_source_whose_threshold_is_not_below_it(
    items: list[Key], limits: list[Key | None]
) -> None:
    thresholds = tuple(sorted(limits, key=lambda key: (-1.0, 0) if key is None else key))
    routed = route([k.u for k in items], [k.v for k in items], thresholds)
    for item, source in zip(items, routed.tolist(), strict=True):
        fits = [k for k, limit in enumerate(thresholds) if limit is not None and item <= limit]
        assert source == (fits[0] if fits else len(thresholds))


@settings(max_examples=100, deadline=None)
@given(st.lists(keys, min_size=1, max_size=30), st.one_of(st.none(), keys))
def test_counting_agrees_with_the_order_of_the_keys(items: list[Key], limit: Key | None) -> None:
    packed = np.sort(pack([k.u for k in items], [k.v for k in items]))
    assert [unpack(complex(key)) for key in packed] == sorted(items)
    count = count_at_or_below(packed, pack_thresholds([(limit,)]))[0, 0]
    assert count == (0 if limit is None else sum(item <= limit for item in items))


def test_nothing_goes_here_differs_from_a_threshold_of_zero() -> None:
    u, v = [0.0, 0.0], [0, 5]
    assert route(u, v, (None, None)).tolist() == [2, 2]
    assert route(u, v, (Key(0.0, 0), Key(0.0, V_MAX))).tolist() == [0, 1]


def test_negative_zero_is_zero() -> None:
    assert route([-0.0], [7], (Key(0.0, 7),)).tolist() == [0]


@pytest.mark.parametrize("bad", [float("nan"), -0.1, 1.1])
def test_an_uncertainty_outside_its_range_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="must lie in"):
        route([bad], [0], (None,))


def test_falling_thresholds_are_refused() -> None:
    assert increasing((None, Key(0.1, 3), Key(0.1, 3)))
    assert not increasing((Key(0.1, 3), Key(0.1, 2)))
    assert not increasing((Key(0.1, 3), None))
    with pytest.raises(ValueError, match="must not fall"):
        route([0.5], [0], (Key(0.5, 0), None))


def test_unusable_answers_are_passed_on_up_to_people() -> None:
    usable = np.array(
        [[False, True, True], [False, False, True], [False, False, False], [True, False, False]]
    )
    nominal = np.array([0, 0, 0, 0])
    assert first_usable_source(nominal, usable).tolist() == [1, 2, 3, 0]
    assert first_usable_source(np.array([1, 1, 2, 2]), usable).tolist() == [1, 2, 3, 3]
    assert first_usable_source(np.array([3, 3, 3, 3]), usable).tolist() == [3, 3, 3, 3]
    assert nominal.tolist() == [0, 0, 0, 0]
