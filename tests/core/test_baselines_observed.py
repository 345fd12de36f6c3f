"""The baselines on the labels of one run, against plain loops over its rows."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from numpy.typing import NDArray

from routing.core.baselines import BASELINES
from routing.core.baselines.observed import Observed, Sample, compare_baselines
from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationRow
from routing.core.plan import Plan
from tests.core.certificates import DRAWN, SIZE, make_run
from tests.core.worlds import plan_of

Floats = NDArray[np.float64]
COSTS = (1000.0, 6000.0, 32768.0)


def calibration_of(plan: Plan) -> Calibration:
    """A labelled draw with one item that nobody could label and answers that cannot be used."""
    rows = list(make_run(plan)[2].rows)
    for place in range(0, len(rows), 17):
        row = rows[place]
        if row.asked:
            rows[place] = replace(
                row, answers=(None, row.answers[1]) if place % 2 else (row.answers[0], None)
            )
    return Calibration.from_rows(rows)


def scores_of(calibration: Calibration, *, second: bool) -> Floats:
    """Own scores (m, 2); of the second model only where it ran, or nowhere."""
    own = np.full((len(calibration.rows), 2), np.nan)
    own[:, 0] = calibration.u
    if second:
        noise = np.random.default_rng(1).random(len(calibration.rows))
        own[:, 1] = np.where(calibration.asked, (calibration.u + noise) / 2, np.nan)
    return own


def observed(plan: Plan, *, second: bool = True) -> tuple[Calibration, Floats, dict[str, Observed]]:
    calibration = calibration_of(plan)
    own = scores_of(calibration, second=second)
    found = {row.rule: row for row in compare_baselines(Sample.of(plan, calibration, own))}
    assert list(found) == list(BASELINES.names())
    return calibration, own, found


def loss_of(row: CalibrationRow, model: int, *, later: bool) -> float:
    """Loss where the model is the nominal source, and later models step in or people do."""
    if model == 2 or not row.asked:
        return 0.0
    answer = row.answers[model]
    if answer is None:
        return loss_of(row, model + 1, later=later) if later else 0.0
    return 1.0 if row.label is None else float(answer != row.label)


@pytest.mark.parametrize("p", ["1", "0.9"])
def test_every_baseline_shows_what_a_loop_over_the_rows_shows(p: str) -> None:
    calibration, own, found = observed(plan_of(SIZE, DRAWN, p=p, epsilon="0.1"))
    asked = [(row, own[place]) for place, row in enumerate(calibration.rows) if row.asked]
    for one in found.values():
        errors = paid = 0.0
        cascade = one.rule in {"cse", "coannotating"}
        for row, scores in asked:
            source = 2
            for model in (1, 0):
                limit = one.limits[model] if one.limits else None
                if limit is None:
                    continue
                score = scores[model if one.own_scores else 0]
                if score < limit or (score == limit and not one.rule.startswith("pac_labeling")):
                    source = model
            if source == 2 and one.everything is not None:
                source = one.everything
            errors += loss_of(row, source, later=cascade)
            paid += COSTS[source]
        assert not one.refusal
        assert one.observed_errors == errors, one.rule
        assert one.routing_saving == pytest.approx(1 - paid / (len(asked) * COSTS[-1])), one.rule
    assert found["pac_labeling_2"].own_scores
    assert not found["pac_labeling_1"].own_scores
    assert found["pac_labeling_1"].observed_errors > 0
    assert found["best_single_model"].everything in {0, 1}


def test_only_people_alone_hold_the_level() -> None:
    calibration, _, found = observed(plan_of(SIZE, DRAWN))
    assert [name for name, one in found.items() if one.holds_level] == ["people_only"]
    people = found["people_only"]
    assert (people.routing_saving, people.observed_errors, people.upper_bound) == (0.0, 0.0, 0.0)
    assert "does not hold" not in people.sentence
    said = {
        True: "Here it was given the labels of this run, for which that promise does not hold.",
        False: "It does not hold the stated level for the error of what is delivered.",
    }
    for name, one in found.items():
        if name != "people_only":
            assert one.sentence.endswith(said[BASELINES.get(name).own_sample])
    bounded = {name for name, one in found.items() if one.upper_bound is not None}
    assert bounded == set(found) - {"coannotating", "best_single_model"}
    asked = int(calibration.asked.sum())
    for name in bounded:
        share = found[name].observed_errors / asked
        assert (found[name].upper_bound or 0) > share or share == 0


def test_without_a_score_of_the_second_model_those_that_need_it_say_so() -> None:
    found = observed(plan_of(SIZE, DRAWN), second=False)[2]
    for name, one in found.items():
        if name in {"pac_labeling_2", "cse", "bargain_2", "lotus_2"}:
            assert "own score of a later model" in one.refusal
            assert one.refusal.endswith("there is none")
            assert (one.limits, one.sentence, one.upper_bound) == ((), "", None)
        else:
            assert not one.refusal, name


def test_varying_probabilities_weigh_the_losses_of_all_drawn_items() -> None:
    plan = plan_of(SIZE, DRAWN, p="0.9", p_min="0.85", target="population", epsilon="0.1")
    calibration, _, found = observed(plan)
    for name in ("cse", "bargain_1", "lotus_1"):
        assert "one probability of asking" in found[name].refusal
    assert "own score of a later model" in found["pac_labeling_2"].refusal
    assert "where the probabilities of asking vary" in found["pac_labeling_2"].refusal
    assert "there is none" in observed(plan, second=False)[2]["pac_labeling_2"].refusal
    one = found["pac_labeling_1"]
    limit = one.limits[0]
    assert limit is not None
    assert one.upper_bound is not None
    losses = [
        loss_of(row, 0, later=False) / float(row.p) if row.u < limit else 0.0 for row in calibration.rows
    ]
    assert one.upper_bound > np.mean(losses) > 0
    weights = {row.p for row in calibration.rows}
    assert weights == {Decimal("0.95"), Decimal("0.85")}
    saved = np.mean([row.u < limit for row in calibration.rows]) * (1 - COSTS[0] / COSTS[-1])
    assert one.routing_saving == pytest.approx(saved)


def test_losses_that_are_no_counts_rule_out_the_exact_test_only() -> None:
    plan = plan_of(SIZE, DRAWN, loss="jaccard", bound="hoeffding", target="pool", epsilon="0.2")
    calibration = calibration_of(replace(plan, loss="zero_one", bound=""))
    rows = [
        replace(
            row,
            label=None if row.label is None else '["0"]',
            answers=tuple(None if answer is None else f'["{answer}"]' for answer in row.answers),
        )
        for row in calibration.rows
    ]
    own = scores_of(calibration, second=True)
    found = {row.rule: row for row in compare_baselines(Sample.of(plan, Calibration.from_rows(rows), own))}
    assert "exact binomial test" in found["cse"].refusal
    assert "right and wrong answers" in found["bargain_1"].refusal
    assert not found["pac_labeling_1"].refusal
