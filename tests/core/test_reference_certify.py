"""Chains with any source per slice, the tests along them, and the whole analysis with an expert."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest
from scipy import stats

from routing.core.bins import make_bins
from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationError, CalibrationRow
from routing.core.keys import pack
from routing.core.plan import PlanError
from routing.core.reference.audit import FinalAudit
from routing.core.reference.certify import certify_with_expert
from routing.core.reference.chain import (
    ALL,
    MODELS,
    NO_PERSON,
    ReferenceChains,
    SliceChain,
    build_reference_chains,
    hull_chain,
)
from routing.core.reference.estimate import by_annotator, people_estimate
from routing.core.reference.forecast import Foretold, PeopleForecast, foretell, model_costs
from routing.core.reference.plan import ExpertPlan, validate_expert_plan
from routing.core.reference.select import models_part, select_with_expert
from routing.core.reference.words import (
    expert_promises,
    settled_cost,
    settled_label,
    settled_promises,
)
from testbed.known_truth import SETTINGS
from testbed.people import INDEPENDENT, SHARED, HumanCount, HumanDraw
from testbed.people_enumeration import enumerate_people
from testbed.settings import plan_of
from tests.core.expert_runs import ExpertRun

pytestmark = pytest.mark.costly


def test_a_chain_walks_down_the_lower_hull_of_each_slice() -> None:
    slices = make_bins(np.arange(4) / 4, np.zeros(4, np.int64), count=2, whole_ties=False)
    # Model, person, checked and expert; checked lies above the line from the expert to the person.
    losses = np.array([[0.1, 0.4], [0.04, 0.04], [0.03, 0.01], [0.0, 0.0]])
    costs = np.array([[0.0, 0.0], [1.0, 1.0], [2.5, 1.2], [3.0, 3.0]])
    chain = hull_chain("all", slices, Foretold(losses, costs), range(4))
    # Slice 0: person (2 / .04), model (1 / .06); slice 1: checked (1.8 / .01), person (.2 / .03), model.
    assert chain.moves == ((1, 2), (0, 1), (0, 0), (1, 1), (1, 0))
    assert chain.models == 1
    assert chain.sources(0).tolist() == [3, 3]
    assert chain.sources(3).tolist() == [0, 2]
    keys = pack(np.array([0.1, 0.3, 0.6]), np.zeros(3))
    values = np.array([[1.0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]])
    assert chain.totals(keys, values).tolist() == [0, 1, 1, 2, 3, 3]
    assert chain.along(costs).tolist() == pytest.approx([6, 4.2, 2.2, 1.2, 1.0, 0.0])


def test_a_slice_among_others_has_the_moves_that_it_has_alone() -> None:
    rng = np.random.default_rng(3)
    for count in (1, 7, 30):
        together = make_bins(
            np.arange(count) / count, np.zeros(count, np.int64), count=count, whole_ties=False
        )
        losses, costs = (rng.integers(0, 5, (5, count)).astype(np.float64) for _ in range(2))
        losses[-1] = 0
        chain = hull_chain("all", together, Foretold(losses, costs), range(5))
        one = make_bins(np.zeros(1), np.zeros(1, np.int64), count=1, whole_ties=False)
        for where in range(count):
            column = slice(where, where + 1)
            alone = hull_chain("one", one, Foretold(losses[:, column], costs[:, column]), range(5))
            assert [to for at, to in chain.moves if at == where] == [to for _, to in alone.moves]


def test_what_costs_more_than_the_expert_is_left_out() -> None:
    slices = make_bins(np.arange(4) / 4, np.zeros(4, np.int64), count=1, whole_ties=False)
    losses, costs = np.array([[0.2], [0.0], [0.1], [0.0]]), np.array([[3.0], [1.0], [3.5], [3.0]])
    chain = hull_chain("all", slices, Foretold(losses, costs), range(4))
    assert chain.moves == ((0, 1),)


def test_the_forecast_is_that_of_section_13() -> None:
    draw = HumanDraw(SETTINGS["power"], 0.05, INDEPENDENT, np.random.default_rng(0))
    run = draw.expert_plan("0.5")
    slices = draw.chains(run).slices
    found = foretell(run, slices, draw.pilot_data(), PeopleForecast(error=0.04, shared=0.5))
    first, best, person, checked, expert = found.losses
    assert first == pytest.approx(best * 0.8 / 0.45)
    assert person == pytest.approx(0.04 * (0.6 + 0.8 * slices.rho))
    assert np.all(checked <= person)
    free = checked < person
    assert checked[free] == pytest.approx((0.5 * person.mean() * best / best.mean())[free])
    assert not expert.any()
    human, dear = float(run.plan.costs[-1]), float(run.expert_cost)
    assert found.costs[2] == pytest.approx(human)
    assert found.costs[3] == pytest.approx(human + 6000 + dear * np.minimum(best + person, 1))
    assert found.costs[4] == pytest.approx(dear)


def test_every_draw_of_small_pools_with_chains_that_go_back_and_forth() -> None:
    """False certificates at most alpha, errors anywhere and some labels missing, n_B <= n."""
    found = enumerate_people(1)
    assert found.worst <= 1
    assert found.passing > found.pools / 3


def rows_of(draw: HumanDraw) -> Calibration:
    """A draw as stored: the expert's label only where she was to give it."""
    seen = np.zeros(draw.setting.size, dtype=np.bool_)
    seen[draw.asked] = draw.labels(draw.expert_plan("0.5")).seen
    order = {int(item): place for place, item in enumerate(draw.asked)}
    rest = [i for i in range(draw.setting.size) if i not in order][: draw.setting.m - len(order)]
    rows = [
        CalibrationRow(
            item_id=str(i),
            position=i,
            order=place,
            asked=i in order,
            p=Decimal("0.9"),
            u=float(draw.world.u[i]),
            v=int(draw.world.v[i]),
            label=str(draw.expert[i]) if seen[i] else None,
            answers=tuple(draw.answers[i].astype(str)) if i in order else (),
            annotator="Ada" if i in order else "",
            person=str(draw.person[i]) if i in order else None,
        )
        for place, i in enumerate([*order, *rest])
    ]
    return Calibration(tuple(rows))


def test_one_call_certifies_a_run_and_tells_of_people() -> None:
    draw = HumanDraw(SETTINGS["power"], 0.05, INDEPENDENT, np.random.default_rng(4))
    run = draw.expert_plan("0.5")
    chains = draw.chains(run)
    assert [chain.name for chain in chains.chains] == [ALL, NO_PERSON, MODELS]
    found = certify_with_expert(run, chains, rows_of(draw), pilot=draw.pilot_data())
    spent = model_costs(run, chains.slices, draw.pilot_data())
    same = select_with_expert(run, chains, draw.labels(run), spent)
    assert found.certified
    assert (found.selection.number, found.selection.index) == (same.number, same.index)
    assert found.asked == len(draw.asked)
    assert found.rechecked == run.rechecked(found.asked)
    assert found.rechecked < found.seen < found.asked
    assert found.unanswered == found.unlabelled == 0
    assert found.counts.observed <= found.counts.allowed
    assert found.counts.observed == found.counts.unlike + 3 * found.counts.alike
    assert found.people.error.low < 0.05 < found.people.error.high
    assert found.people.caught > found.people.shared
    sources = found.selection.sources(pack(draw.world.u, draw.world.v))
    assert set(np.unique(sources)) <= set(range(5))
    # Wherever the chosen policy sends an item, the same is in the evidence.
    labels = draw.labels(run)
    of_asked = found.selection.sources(labels.keys)
    assert labels.weighted(3)[np.arange(labels.asked), of_asked].sum() == found.counts.observed


def test_chains_of_another_plan_are_refused() -> None:
    draw = HumanDraw(SETTINGS["power"], 0.05, INDEPENDENT, np.random.default_rng(4))
    run = draw.expert_plan("0.5")
    chains = draw.chains(run)
    assert chains.fault(run) == ""
    fewer = ReferenceChains(chains.slices, chains.chains[:2])
    assert "which chains" in fewer.fault(run)
    calibration = rows_of(draw)
    with pytest.raises(ValueError, match="which chains"):
        certify_with_expert(run, fewer, calibration)
    nobodys = Calibration(tuple(replace(row, annotator="", person=None) for row in calibration.rows))
    with pytest.raises(CalibrationError, match="whose item it is"):
        certify_with_expert(run, chains, nobodys)
    falling = SliceChain("all", chains.chains[0].ends[::-1], (), 2)
    assert falling.fault() == "its slices do not rise"


@pytest.mark.parametrize("share", ["1", "0.5"])
def test_where_later_models_have_scores_the_third_chain_is_on_every_score(share: str) -> None:
    draw = HumanDraw(SETTINGS["A"], 0.05, INDEPENDENT, np.random.default_rng(4))
    run = draw.expert_plan(share)
    chains = draw.chains(run)
    assert chains.scores is not None
    assert chains.fault(run) == ""
    scored = draw.scored(chains)
    assert scored is not None
    spent = model_costs(run, chains.slices, draw.pilot_data())
    with pytest.raises(ValueError, match="own scores"):
        select_with_expert(run, chains, draw.labels(run), spent)
    chosen = select_with_expert(run, chains, draw.labels(run), spent, scored=scored[1])
    assert chosen.scores is not None
    assert chosen.index > 0
    sources = chosen.sources(pack(draw.world.u, draw.world.v), scored[0])
    assert np.all((sources >= 0) & (sources < 5))


def test_of_items_seen_in_part_policies_on_every_score_are_tested_in_order_by_the_weighted_count() -> None:
    draw = HumanDraw(SETTINGS["B"], 0.05, SHARED, np.random.default_rng(4))
    run = draw.expert_plan("0.5")
    chains, labels = draw.chains(run), draw.labels(run)
    scored = draw.scored(chains)
    assert scored is not None
    spent = model_costs(run, chains.slices, draw.pilot_data())
    chosen = select_with_expert(run, chains, labels, spent, scored=scored[1])
    assert chosen.scores is not None
    assert sum(test.level for test in chosen.scores.tests) <= run.level
    weights = np.where(labels.alike, run.weight, 1) * labels.seen
    for test in chosen.scores.tests:
        asked = scored[1].items
        source = test.chain.delivers(asked)
        losses = np.column_stack([labels.upper[:, :2], np.zeros(labels.asked)])
        seen = (losses[np.arange(labels.asked), source] * weights).sum(axis=1)
        assert test.upper[: test.reached] == pytest.approx(seen[: test.reached])
        levels = run.levels(labels.asked, test.level)
        passed = np.cumprod(seen <= levels.wide).astype(bool)
        assert not test.verdict.eligible[1:][~passed[1:]].any()


class OnlyDear(ExpertRun):
    """The second model is right only where it is surest, on few items; nobody else ever is."""

    @cached_property
    def said(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        u = np.random.default_rng(self.seed).random((self.size, 2))
        answers = np.full((self.size, 2), "z", dtype=object)
        answers[u[:, 1] < 0.03, 1] = "y"
        return u, answers, np.full(self.size, "z", dtype=object), np.full(self.size, "y", dtype=object)


def test_what_only_a_dearer_policy_on_every_score_passes_is_told_as_no_saving() -> None:
    found = OnlyDear(
        "1", scored=True, epsilon="0.02", costs=("0.001", "0.14", "1"), seed=4, size=400, drawn=200
    ).found
    assert found.selection.scores is not None
    assert not any(test.verdict.eligible[1:].any() for test in found.selection.tests)
    assert any(test.verdict.eligible[1:].any() for test in found.selection.scores.tests)
    assert not found.certified
    assert found.reason == "no step of a chain would save anything at these costs"


def test_the_models_part_of_a_final_audit() -> None:
    draw = HumanDraw(SETTINGS["power"], 0.05, INDEPENDENT, np.random.default_rng(4))
    run = draw.expert_plan("0.5")
    chains, labels = draw.chains(run), draw.labels(run)
    chosen = select_with_expert(run, chains, labels, model_costs(run, chains.slices, None))
    most = FinalAudit(run.plan.budget, Fraction(1, 25), Fraction(1, 100))
    none = FinalAudit(0, Fraction(1, 25), Fraction(1, 100))
    assert models_part(run, chosen, labels, most).holds
    assert not models_part(run, chosen, labels, none).holds


def test_peoples_error_from_two_intervals_covers_and_is_told_by_annotator() -> None:
    rng = np.random.default_rng(9)
    outside = 0
    for _ in range(60):
        draw = HumanDraw(SETTINGS["tiny"], 0.08, SHARED, rng)
        labels = draw.labels(draw.expert_plan("0.5"))
        found = people_estimate(labels, pool_size=draw.setting.size)
        truth = np.mean(draw.person != draw.expert)
        outside += not found.error.low <= truth <= found.error.high
    assert stats.binomtest(outside, 60, 0.05, alternative="greater").pvalue > 0.001
    names = ["Ada" if number % 3 else "Bo" for number in range(labels.asked)]
    each = by_annotator(labels, names, {"Ada": 110, "Bo": 54})
    assert sum(one.error.observed for one in each.values()) == found.error.observed
    assert sum(one.error.asked for one in each.values()) == found.error.asked


@pytest.mark.parametrize(
    ("world", "kind", "share"),
    [("power", INDEPENDENT, "0.5"), ("power", SHARED, "1"), ("B", SHARED, "0.5")],
)
def test_false_certificates_stay_below_alpha_with_fallible_people(world: str, kind: str, share: str) -> None:
    rng, count = np.random.default_rng(5), HumanCount()
    for _ in range(25):
        count.add(HumanDraw(SETTINGS[world], 0.08, kind, rng).count(share))
    assert stats.binomtest(count.false, count.draws, 0.05, alternative="greater").pvalue > 0.001
    assert stats.binomtest(count.untrue, count.draws, 0.05, alternative="greater").pvalue > 0.001
    assert count.certified == count.draws


def test_one_persons_word_breaks_the_promise_where_people_err() -> None:
    rng, count = np.random.default_rng(5), HumanCount()
    for _ in range(15):
        count.add(HumanDraw(SETTINGS["power"], 0.08, SHARED, rng).count("person"))
    assert stats.binomtest(count.untrue, count.draws, 0.05, alternative="greater").pvalue < 1e-6


@pytest.mark.parametrize("share", ["0.999", "0.9", "0.5"])
def test_of_few_asked_items_that_are_all_rechecked_single_counts_decide(share: str) -> None:
    run = ExpertPlan(plan_of(3000, 500), Decimal(98304), Decimal(share))
    asked = 4 if share == "0.9" else 400 if share == "0.999" else 1
    assert run.rechecked(asked) == asked
    assert run.levels(asked) == replace(run, recheck_share=Decimal(1), weight=1).levels(asked)
    if share == "0.999":
        with pytest.raises(PlanError, match="write 1"):
            validate_expert_plan(run)


def test_what_certificates_say_about_who_is_right() -> None:
    run = ExpertPlan(plan_of(3000, 500), Decimal(98304), expert="Eve")
    first, holds = (str(said) for said in expert_promises(run))
    assert first.startswith(
        "At most 5 % of the delivered labels of the run's 3,000 items differ from what Eve would"
    )
    assert "at least 95 %" in first
    assert "route" in holds
    more = [str(said) for said in expert_promises(run, replaced=7)]
    assert more[0].startswith("At most 5.2334 %")  # 157 of 3,000, rounded up
    assert "7 items" in more[1]
    two = " ".join(str(said) for said in settled_promises(run.plan))
    assert "two of our people" in two
    assert two.endswith("A mistake that two people make alike is not counted.")
    assert settled_label("a", "a") == settled_label("b", "c", "a") == "a"
    assert settled_label("a", "b") is None
    assert settled_cost(Decimal(10), Decimal("0.1")) == Decimal(21)


def test_chains_need_scores_of_the_whole_pool() -> None:
    run = ExpertPlan(plan_of(3000, 500), Decimal(98304))
    with pytest.raises(ValueError, match="3000 items"):
        build_reference_chains(run, u=np.zeros(3), v=np.zeros(3, np.int64))
