"""Policies on every model's own score: keys, quantiles, what is delivered and who is called."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from routing.core.every_score.chain import CASCADE, FIRST_SCORE, OWN, ScoreChain
from routing.core.every_score.items import EVERYTHING, ScoredItems
from routing.core.every_score.kept import kept_of
from routing.core.every_score.losses import AskedItems
from routing.core.every_score.quantiles import PilotQuantiles, PoolQuantiles
from routing.core.keys import V_MAX, Key, Threshold, Thresholds, pack, pack_thresholds, unpack
from routing.core.messages import sentences

PEOPLE = 2


def items_of(rng: np.random.Generator, size: int, *, models: int = 2, unusable: float = 0.2) -> ScoredItems:
    """Few distinct scores, so that ties are split by V."""
    u = rng.integers(0, 5, (size, models)) / 4
    return ScoredItems.of(u, rng.integers(0, V_MAX, (size, models)), rng.random((size, models)) >= unusable)


def some_key(rng: np.random.Generator) -> Threshold:
    return [None, EVERYTHING, Key(rng.integers(0, 5) / 4, int(rng.integers(0, V_MAX)))][rng.integers(0, 3)]


def at_most(key: complex, threshold: Threshold) -> bool:
    return threshold is not None and tuple(unpack(key)) <= tuple(threshold)


def test_an_answer_that_cannot_be_used_has_the_last_key_of_all() -> None:
    u = np.array([[0.3, 0.2], [0.1, np.nan], [0.5, 1.0]])
    items = ScoredItems.of(u, np.full((3, 2), 7), [[False, True], [True, True], [True, True]])
    assert [unpack(key) for key in items.keys[:, 0]] == [EVERYTHING, (0.1, 7), (0.5, 7)]
    assert [unpack(key) for key in items.keys[:, 1]] == [(0.2, 7), EVERYTHING, (1.0, 7)]
    assert items.usable.tolist() == [[False, True], [True, False], [True, True]]


def test_a_model_without_any_score_has_usable_answers_and_no_order() -> None:
    u = np.column_stack([[0.3, 0.2], [np.nan, np.nan]])
    items = ScoredItems.of(u, np.zeros((2, 2), dtype=np.int64))
    assert items.usable.all()
    assert [unpack(key) for key in items.keys[:, 1]] == [EVERYTHING, EVERYTHING]
    told = ScoredItems.of(u, np.zeros((2, 2), dtype=np.int64), scored=(True, True))
    assert not told.usable[:, 1].any(), "its pilot showed scores, so these two are missing"


def test_scores_outside_the_unit_interval_are_refused() -> None:
    with pytest.raises(ValueError, match="outside"):
        ScoredItems.of([[1.5]], [[0]])
    with pytest.raises(ValueError, match="shapes"):
        ScoredItems.of([[0.5, 0.5]], [[0]])


def test_own_keeps_the_label_of_the_model_up_to_its_threshold_else_people() -> None:
    rng = np.random.default_rng(0)
    items = items_of(rng, 60)
    limits: list[Threshold] = [None, Key(0.25, V_MAX // 2), Key(0.5, V_MAX), EVERYTHING]
    chain = ScoreChain.of("x", OWN, (1,), [(limit,) for limit in limits])
    expected = [
        [1 if items.usable[i, 1] and at_most(items.keys[i, 1], limit) else PEOPLE for i in range(60)]
        for limit in limits
    ]
    assert chain.delivers(items).tolist() == expected
    assert chain.calls(items) == {}
    assert (chain.delivers(items)[-1] == PEOPLE).sum() == (~items.usable[:, 1]).sum()


def cascaded(items: ScoredItems, i: int, t1: Threshold, th: Threshold, t2: Threshold) -> tuple[int, bool]:
    """Who labels item i, and whether the last model is called: the definition word by word."""
    if items.usable[i, 0]:
        if at_most(items.keys[i, 0], t1):
            return 0, False
        if not at_most(items.keys[i, 0], th):
            return PEOPLE, False
    elif th != EVERYTHING:
        return PEOPLE, False
    return (1 if items.usable[i, 1] and at_most(items.keys[i, 1], t2) else PEOPLE), True


def test_a_cascade_follows_its_definition_item_by_item() -> None:
    rng = np.random.default_rng(1)
    items = items_of(rng, 40)
    policies = []
    while len(policies) < 60:
        t1, th, t2 = (some_key(rng) for _ in range(3))
        if pack_thresholds([(t1,)])[0, 0] <= pack_thresholds([(th,)])[0, 0]:
            policies.append((t1, th, t2))
    chain = ScoreChain.of("x", CASCADE, (0, 1), policies)
    expected = [[cascaded(items, i, *policy) for i in range(40)] for policy in policies]
    assert chain.delivers(items).tolist() == [[who for who, _ in row] for row in expected]
    assert chain.calls(items)[1].tolist() == [[called for _, called in row] for row in expected]


def test_where_the_last_model_has_no_score_items_pass_from_one_source_to_the_next() -> None:
    rng = np.random.default_rng(2)
    items = items_of(rng, 50, models=3, unusable=0.4)
    chain = ScoreChain.of(
        "x", FIRST_SCORE, (0, 1, 2), [(None,) * 3, (Key(0.25, 5), Key(0.5, V_MAX), EVERYTHING)]
    )
    for i, who in enumerate(chain.delivers(items)[1]):
        limits = chain.policy(1)
        nominal = next(k for k in range(4) if k == 3 or at_most(items.keys[i, 0], limits[k]))
        tried = list(range(nominal, 3))
        expected = next((k for k in tried if items.usable[i, k]), 3)
        assert who == expected
        for model in (1, 2):
            assert chain.calls(items)[model][1, i] == (model in tried and model <= expected)


def test_a_chain_that_makes_no_sense_is_named() -> None:
    people = (None, None, None)
    good = ScoreChain.of("x", CASCADE, (0, 1), [people, (Key(0.1, 0), Key(0.2, 0), None)])
    assert good.fault(2) == ""
    assert "models" in good.fault(1)
    assert "people alone" in ScoreChain.of("x", OWN, (0,), [(Key(0.1, 0),)]).fault(2)
    assert "less" in ScoreChain.of("x", OWN, (0,), [(None,), (EVERYTHING,), (None,)]).fault(2)
    backwards = ScoreChain.of("x", CASCADE, (0, 1), [people, (Key(0.3, 0), Key(0.2, 0), None)])
    assert "calls the last model" in backwards.fault(2)
    assert "shape" in ScoreChain.of("x", OWN, (0,), [(None, None)]).fault(2)
    assert "fall" in ScoreChain.of("x", FIRST_SCORE, (0, 1), [(None, None), (EVERYTHING, None)]).fault(2)
    assert "unknown" in ScoreChain.of("x", "other", (0,), [(None,)]).fault(2)


def keys_of(scores: list[float]) -> NDArray[np.complex128]:
    return pack(scores, np.zeros(len(scores), dtype=np.int64))


def test_quantiles_of_a_pilot_stand_at_half_steps() -> None:
    """The pilot's order statistics at (i + 1/2) / g, linear between; nothing below, only everything above."""
    quantiles = PilotQuantiles(keys_of([0.8, 0.2, 0.4, 0.6]), whole_ties=False)
    found = [unpack(key) for key in quantiles.at(np.array([0.125, 0.25, 0.375, 0.5, 0.875, 0.99]))]
    assert [key.u for key in found] == pytest.approx([0.2, 0.3, 0.4, 0.5, 0.8, 0.8])
    edges = quantiles.at(np.array([0.0, 0.12, 1.0]))
    assert edges[0] == edges[1] == complex(-np.inf, 0)
    assert unpack(complex(edges[2])) == EVERYTHING


def test_inside_a_tied_block_the_share_goes_into_the_tie_break() -> None:
    constant = PilotQuantiles(keys_of([0.5] * 10), whole_ties=False)
    for share in (0.1, 0.25, 0.5, 0.95):
        assert unpack(constant.at(np.array([share]))[0]) == (0.5, int(share * 2**53))
    block = PilotQuantiles(keys_of([0.1, 0.3, 0.3, 0.3, 0.3, 0.9, 0.9, 0.95]), whole_ties=False)
    u, v = unpack(block.at(np.array([0.375]))[0])
    assert (u, v / 2**53) == (0.3, pytest.approx(0.5))


def test_for_new_items_a_threshold_is_a_score_alone() -> None:
    """All items of one score go the same way, so that the threshold means the same for items to come."""
    for kind in (PilotQuantiles, PoolQuantiles):
        keys = pack([0.5] * 10, np.arange(10) * 1000)
        found = kind(keys, whole_ties=True).at(np.array([0.0, 0.3, 0.7]))
        assert [unpack(key) for key in found[1:]] == [(0.5, V_MAX)] * 2
        assert found[0] == complex(-np.inf, 0)


def test_quantiles_of_the_pool_take_exactly_their_share() -> None:
    rng = np.random.default_rng(3)
    keys = pack(rng.integers(0, 4, 1000) / 3, rng.integers(0, V_MAX, 1000))
    shares = np.linspace(0, 1, 201)
    taken = [int((keys <= limit).sum()) for limit in PoolQuantiles(keys, whole_ties=False).at(shares)]
    assert taken == [round(1000 * share) for share in shares]


def asked_items(rng: np.random.Generator, size: int, known: NDArray[np.bool_] | None = None) -> AskedItems:
    items = items_of(rng, size)
    lower = np.where(items.usable, rng.integers(0, 2, (size, 2)), 0).astype(np.float64)
    upper = np.maximum(lower, np.where(items.usable & (rng.random(size) < 0.1)[:, None], 1.0, 0.0))
    return AskedItems.of(items, upper, lower, drawn=size, known=known)


def test_observed_losses_are_those_of_whoever_labels() -> None:
    rng = np.random.default_rng(4)
    asked = asked_items(rng, 70)
    chain = ScoreChain.of(
        "x", CASCADE, (0, 1), [(None,) * 3, (Key(0.25, 9), Key(0.5, V_MAX), Key(0.75, 3)), (EVERYTHING,) * 3]
    )
    source = chain.delivers(asked.items)
    upper, squares, lower = asked.totals(chain)
    for j in range(3):
        above = [asked.upper[i, who] if who < PEOPLE else 0.0 for i, who in enumerate(source[j])]
        below = [asked.lower[i, who] if who < PEOPLE else 0.0 for i, who in enumerate(source[j])]
        assert (upper[j], squares[j], lower[j]) == (sum(above), sum(above), sum(below))
    assert upper[0] == lower[0] == 0


def test_the_cost_of_a_policy_is_that_of_its_calls_and_of_people() -> None:
    items = items_of(np.random.default_rng(5), 80)
    policies = [(None,) * 3, (Key(0.25, 0), Key(0.75, V_MAX), Key(0.5, V_MAX))]
    chain = ScoreChain.of("x", CASCADE, (0, 1), policies)
    called, people = chain.calls(items)[1].sum(axis=1), (chain.delivers(items) == PEOPLE).sum(axis=1)
    assert chain.paid(items, [99.0, 2.0, 10.0]).tolist() == (2.0 * called + 10.0 * people).tolist()
    own = ScoreChain.of("x", OWN, (1,), [(None,), (EVERYTHING,)])
    alone = (own.delivers(items) == PEOPLE).sum(axis=1)
    # Where nothing goes to it, its key decides nothing, and it is not called.
    looked_at = np.array([0, 80])
    assert own.paid(items, [99.0, 2.0, 10.0]).tolist() == (2.0 * looked_at + 10.0 * alone).tolist()


A, B, LAST = Key(0.25, V_MAX), Key(0.5, V_MAX), EVERYTHING
CUT_A, CUT_B = Key(0.25, 7), Key(0.5, 7)
SMALL = "The answer of small is kept where it is at least 0.75 sure of it. "
LARGE = "The answer of large is kept where it is at least 0.75 sure of it. "
ALL, ALL_SMALL = "Every answer of large is kept. ", "Every answer of small is kept. "
REST, UNUSABLE = "People label what is left.", "People label only items without a usable answer."
BETWEEN = "Of the others large is asked about those on which small is at least 0.50 sure. "
ONLY_WHERE = "large is asked where small is at least 0.50 sure of its answer. "
PART = ", of those exactly so sure a part alone, chosen by a hash. "
ABOUT_PART = ", of those exactly so sure about a part alone, chosen by a hash. "


def test_only_a_threshold_that_takes_a_part_of_tied_items_says_so_by_v() -> None:
    rng = np.random.default_rng(3)
    u, v = np.repeat([0.1, 0.2, 0.3, 0.4], [1, 3, 1, 5]), rng.integers(0, V_MAX, 10)
    keys = pack(u, v)
    found = PoolQuantiles(keys, whole_ties=False).at(np.arange(1, 10) / 10)
    assert [int((keys <= limit).sum()) for limit in found] == list(range(1, 10))
    assert [limit.imag == V_MAX for limit in found] == [
        True, False, False, True, True, False, False, False, False
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "models", "thresholds", "said"),
    [
        (OWN, (1,), (A,), LARGE + REST),
        (OWN, (1,), (LAST,), ALL + UNUSABLE),
        (OWN, (1,), (None,), ""),
        (CASCADE, (0, 1), (A, B, A), SMALL + BETWEEN + LARGE + REST),
        (CASCADE, (0, 1), (A, LAST, LAST), SMALL + "large is asked about the others. " + ALL + UNUSABLE),
        (CASCADE, (0, 1), (None, LAST, LAST), ALL + UNUSABLE),
        (CASCADE, (0, 1), (None, B, LAST), ONLY_WHERE + ALL + REST),
        (CASCADE, (0, 1), (A, A, None), SMALL + REST),
        (OWN, (1,), (CUT_A,), LARGE[:-2] + PART + REST),
        (CASCADE, (0, 1), (CUT_A, CUT_B, A), SMALL[:-2] + PART + BETWEEN[:-2] + ABOUT_PART + LARGE + REST),
        (CASCADE, (0, 1), (None, CUT_B, LAST), ONLY_WHERE[:-2] + ABOUT_PART + ALL + REST),
        (
            OWN,
            (1,),
            (Key(0.0, 7),),
            "The answer of large is kept where it is at least 1 sure of it" + PART + REST,
        ),
        (OWN, (1,), (Key(0.997, V_MAX),), LARGE.replace("0.75", "0.0030") + REST),
        (CASCADE, (0, 1), (LAST, LAST, A), ALL_SMALL + "large is asked about the others. " + LARGE + REST),
    ],
)
def test_what_is_kept_is_said_of_each_model_by_how_sure_it_is(
    shape: str, models: tuple[int, ...], thresholds: Thresholds, said: str
) -> None:
    assert sentences(kept_of(shape, models, thresholds, ["small", "large"])) == said
