"""The baselines on the labels of one run, against small cases by hand."""

from decimal import Decimal

import numpy as np
import pytest

from routing.core.baselines import BASELINES
from routing.core.baselines.observed import Observed, Sample, compare_baselines
from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationRow
from routing.core.plan import Plan


def make(
    answers: list[tuple[str | None, ...]],
    labels: list[str | None],
    *,
    costs: tuple[int, ...] = (1, 8),
    own: list[tuple[float, ...]] | None = None,
    p: list[str] | None = None,
    asked: list[bool] | None = None,
    **fields: object,
) -> Sample:
    """Items with rising uncertainty; everybody is asked unless `asked` says otherwise."""
    size = len(labels)
    who = asked or [True] * size
    share = [Decimal(text) for text in p] if p else [Decimal(1)] * size
    rows = [
        CalibrationRow(
            item_id=f"i{index}",
            position=index,
            order=index,
            asked=who[index],
            p=share[index],
            u=index / size,
            v=index,
            label=labels[index] if who[index] else None,
            answers=answers[index] if who[index] else (),
        )
        for index in range(size)
    ]
    plan = Plan(
        **{
            "epsilon": Decimal("0.2"),
            "alpha": Decimal("0.1"),
            "target": "pool",
            "m": size,
            "p": sum(share) / size,
            "p_min": min(share) if p else None,
            "pool_size": 10 * size,
            "costs": costs,
            **fields,
        }
    )
    scores = np.array(own) if own else np.full((size, len(costs) - 1), np.nan)
    return Sample.of(plan, Calibration.from_rows(rows), scores)


def found(sample: Sample) -> dict[str, Observed]:
    return {row.rule: row for row in compare_baselines(sample)}


RIGHT_THEN_WRONG = [("a",)] * 6 + [("b",)] * 4


def test_every_baseline_has_a_row_and_only_people_alone_hold_the_level():
    rows = found(make(RIGHT_THEN_WRONG, ["a"] * 10))
    assert list(rows) == list(BASELINES.names())
    assert [name for name, row in rows.items() if row.holds_level] == ["people_only"]
    assert all(row.sentence for row in rows.values() if not row.refusal)


def test_people_alone_and_a_model_alone():
    rows = found(make(RIGHT_THEN_WRONG, ["a"] * 10))
    people, model = rows["people_only"], rows["best_single_model"]
    assert (people.observed_errors, people.routing_saving, people.upper_bound) == (0, 0, 0)
    assert (model.observed_errors, model.everything, model.upper_bound) == (4, 0, None)
    assert model.routing_saving == pytest.approx(7 / 8)


def test_coannotating_takes_the_furthest_limit_whose_observed_share_is_small_enough():
    row = found(make(RIGHT_THEN_WRONG, ["a"] * 10))["coannotating"]
    assert row.limits == (0.7,)  # two of ten are wrong
    assert row.observed_errors == 2
    assert row.routing_saving == pytest.approx(1 - (8 * 1 + 2 * 8) / 80)


def test_an_answer_that_cannot_be_used_is_paid_for_and_mended_by_people():
    answers = [(None,)] * 2 + [("a",)] * 6 + [("b",)] * 2
    row = found(make(answers, ["a"] * 10))["best_single_model"]
    assert row.observed_errors == 2
    assert row.routing_saving == pytest.approx(7 / 8)


def test_what_nobody_could_label_is_an_error_of_a_model_and_none_of_people():
    rows = found(make([("a",)] * 10, [None, *["a"] * 9]))
    assert rows["best_single_model"].observed_errors == 1
    assert rows["people_only"].observed_errors == 0


def test_a_later_model_is_limited_on_its_own_score():
    answers = [("b", "a")] * 10
    own = [(index / 10, (9 - index) / 10) for index in range(10)]
    rows = found(make(answers, ["a"] * 10, costs=(1, 2, 8), own=own, epsilon=Decimal("0.4")))
    second = rows["pac_labeling_2"]
    assert second.own_scores
    assert second.limits[0] is None
    # As printed, what lies strictly below the limit: the item at 0.9 is left to people.
    assert second.limits[1] == 0.9
    assert second.observed_errors == 0
    assert second.routing_saving == pytest.approx(1 - (9 * 2 + 8) / 80)
    assert rows["best_single_model"].everything == 1


def test_without_own_scores_of_later_models_some_are_refused():
    rows = found(make([("b", "a")] * 10, ["a"] * 10, costs=(1, 2, 8)))
    needy = {"pac_labeling_2", "cse", "bargain_2", "lotus_2"}
    assert {name for name, row in rows.items() if row.refusal} == needy
    assert "own score" in rows["cse"].refusal


def test_where_probabilities_vary_errors_are_weighted():
    p = ["1", "0.5"] * 20
    asked = [index % 4 != 3 for index in range(40)]
    answers = [("b",) if index == 1 else ("a",) for index in range(40)]
    sample = make(answers, ["a"] * 40, p=p, asked=asked, epsilon=Decimal("0.3"))
    row = found(sample)["pac_labeling_1"]
    assert row.observed_errors == 1
    # Eq. (7) by hand: 40 terms Z l / p of which one is 2.
    mean, variance = 2 / 40, (4 / 40) - (2 / 40) ** 2
    assert mean < row.upper_bound < mean + 2.2 * np.sqrt(variance / 39)
    assert found(sample)["cse"].refusal


def test_what_would_choose_its_own_labels_makes_do_with_those_of_the_run():
    right = found(make([("a",)] * 50, ["a"] * 50))["bargain_1"]
    assert right.limits == (0.98,)  # the last of fifty
    assert "for which that promise does not hold" in right.sentence
    assert not right.holds_level
    assert right.upper_bound is not None
    assert 0 < right.upper_bound < 0.2
    assert found(make([("b",)] * 50, ["a"] * 50))["bargain_1"].limits == (None,)
    assert found(make([("a",)] * 6, ["a"] * 6))["bargain_1"].limits == (None,)  # labels run out
