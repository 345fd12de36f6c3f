"""Sources beside an expert: losses against her labels, what is missing, and what is delivered."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationRow
from routing.core.losses import make_loss
from routing.core.plan import Plan, PlanError
from routing.core.reference.plan import ExpertPlan, validate_expert_plan
from routing.core.reference.sources import (
    ASKED,
    NO_ANSWER,
    RECHECK,
    ROUTED,
    SECOND_LOOK,
    AskedLabels,
    deliver,
    label_table,
    source_losses,
    source_name,
    unanimous,
)
from testbed.settings import plan_of

ZERO_ONE = make_loss("zero_one", {})
MODEL_1, MODEL_2, PERSON, CHECKED, EXPERT = range(5)


def run_of(plan: Plan | None = None, **changes: object) -> ExpertPlan:
    settings = {"expert_cost": Decimal(98304), **changes}
    return ExpertPlan(plan or plan_of(40, 6, p=1, epsilon="0.2"), **settings)  # type: ignore[arg-type]


ITEMS = [
    # answers, annotator, expert
    (("a", "a"), "a", "a"),  # all say the same, rechecked
    (("a", "b"), "b", "b"),  # the first model errs
    (("a", "a"), "b", "a"),  # the annotator errs, and a second look finds it
    (("b", "b"), "b", "a"),  # all err: in the recheck set
    (("c", "a"), "a", "c"),  # annotator and best model err alike
    (("b", "b"), "b", None),  # all say the same, not rechecked
]


def labels_of(
    items: list[tuple[tuple[str | None, ...], str | None, str | None]], **changes: object
) -> AskedLabels:
    """The asked items in draw order, with the first models' scores rising."""
    run = run_of(plan_of(40, len(items), p=1, epsilon="0.2"), **changes)
    rows = [
        CalibrationRow(
            f"item {i}", i, i, True, Decimal(1), i / 10, i, expert, answers, annotator="Ada", person=human
        )
        for i, (answers, human, expert) in enumerate(items)
    ]
    return AskedLabels.of_calibration(run, Calibration(tuple(rows)))


def test_every_source_is_judged_by_the_experts_label() -> None:
    labels = labels_of(ITEMS, recheck_share="0.7")  # n_B = floor(4.2 + .5) = 4
    assert labels.rechecked == 4
    assert labels.alike.tolist() == [True, False, False, True, False, True]
    assert labels.seen.tolist() == [True, True, True, True, True, False]
    assert labels.looks.tolist() == [False, False, True, False, False, False]
    expected = [
        [0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [1, 1, 1, 1, 0],
        [0, 1, 1, 1, 0],
        [0, 0, 0, 0, 0],  # nobody looked
    ]
    assert labels.upper.tolist() == labels.lower.tolist() == expected
    weighted = labels.weighted(3)
    assert weighted[3].tolist() == [3, 3, 3, 3, 0]
    assert weighted[4].tolist() == [0, 1, 1, 1, 0]
    assert labels.of_models_only(2).upper[4].tolist() == [0, 1, 0, 0, 0]


def test_nobody_replaces_an_annotator_who_did_not_answer() -> None:
    """Her label counts as wrong in K+ and as right in K-, where it would have been delivered."""
    labels = labels_of([(("a", "a"), None, "a"), (("a", "b"), None, "a")], recheck_share="0.5")
    assert not labels.alike.any()
    assert labels.seen.all()
    assert labels.upper.tolist() == [[0, 0, 1, 1, 0], [0, 1, 1, 1, 0]]
    assert labels.lower.tolist() == [[0, 0, 0, 0, 0], [0, 1, 0, 0, 0]]


def test_what_the_expert_cannot_label_counts_wherever_somebody_else_does() -> None:
    labels = labels_of([(("a", "a"), "a", None), (("a", "b"), "a", None)], recheck_share="0.5")
    assert labels.rechecked == 1
    # The first is of the recheck set, and counts w; on the second a look of hers would be delivered blank.
    assert labels.weighted(3).tolist() == [[3, 3, 3, 3, 0], [1, 1, 1, 0, 0]]
    assert not labels.lower.any()


def test_a_model_without_an_answer_passes_on_to_the_next_and_at_last_to_the_expert() -> None:
    one = np.ones(3, dtype=np.bool_)
    upper, _ = source_losses(
        models=np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]]),
        usable=np.array([[True, False], [False, False], [False, True]]),
        person=np.zeros(3),
        answered=one,
        looks=one,
        labelled=one,
    )
    assert upper[:, :2].tolist() == [[1, 0], [0, 0], [1, 1]]


def test_agreement_is_that_of_the_loss() -> None:
    numbers = make_loss("numeric", {})
    answers = label_table([("1.0", "1"), ("2", "1"), (None, "1")], 2)
    human = label_table([("1",), ("1",), ("1",)], 1)[:, 0]
    assert unanimous(answers, human, numbers).tolist() == [True, False, False]
    assert unanimous(answers, human, ZERO_ONE).tolist() == [False, False, False]


@pytest.mark.parametrize(
    ("source", "answers", "human", "expert", "seen", "label", "by", "why"),
    [
        (MODEL_1, ("a", "b"), "b", None, "", "a", MODEL_1, ""),
        (MODEL_1, (None, "b"), "c", None, "", "b", MODEL_2, ""),
        (MODEL_1, (None, None), "c", "d", "", "d", EXPERT, ROUTED),
        (PERSON, ("a", "b"), "c", None, "", "c", PERSON, ""),
        (PERSON, ("a", "b"), None, "d", "", "d", EXPERT, NO_ANSWER),
        (CHECKED, ("a", "b"), "b", None, "", "b", PERSON, ""),
        (CHECKED, ("a", "b"), "a", "d", "", "d", EXPERT, SECOND_LOOK),
        (CHECKED, ("a", None), "a", "d", "", "d", EXPERT, SECOND_LOOK),
        (EXPERT, ("a", "b"), "b", "d", "", "d", EXPERT, ROUTED),
        # Asked and seen: the expert's label, whatever the policy says; if there is one.
        (MODEL_1, ("a", "b"), "b", "d", ASKED, "d", EXPERT, ASKED),
        (PERSON, ("a", "a"), "a", "d", RECHECK, "d", EXPERT, RECHECK),
        (MODEL_2, ("a", "b"), "b", None, ASKED, "b", MODEL_2, ASKED),
        (EXPERT, ("a", "b"), "b", None, ASKED, None, EXPERT, ASKED),
        # Asked and not seen: all say the same, or the expert's where the policy sends it to her.
        (MODEL_1, ("a", "a"), "a", None, "", "a", MODEL_1, ""),
        (CHECKED, ("a", "a"), "a", None, "", "a", PERSON, ""),
        (EXPERT, ("a", "a"), "a", "d", "", "d", EXPERT, ROUTED),
    ],
)
def test_what_is_delivered(
    source: int,
    answers: tuple[str | None, ...],
    human: str | None,
    expert: str | None,
    seen: str,
    label: str | None,
    by: int,
    why: str,
) -> None:
    found = deliver(source, answers=answers, annotator=human, expert=expert, loss=ZERO_ONE, seen=seen)
    assert (found.label, found.source, found.by, found.why) == (label, source, by, why)


def test_sources_have_names() -> None:
    assert [source_name(source, 2) for source in range(5)] == [
        "model 1",
        "model 2",
        "person",
        "checked",
        "expert",
    ]


def test_a_plan_is_checked_before_money_is_spent() -> None:
    good = run_of()
    validate_expert_plan(good)
    assert (good.weight, good.rechecked(6)) == (3, 3)
    assert run_of(recheck_share=1).weight == 1
    assert good.models_and_expert.costs[-1] == good.expert_cost
    assert good.models_and_expert.exact_alpha <= good.level
    for field, wrong in (
        ("recheck_share", {"recheck_share": 0}),
        ("recheck_share", {"recheck_share": "1.1"}),
        ("recheck_share", {"recheck_share": "0.05"}),
        ("expert_cost", {"expert_cost": 0}),
        ("expert_cost", {"expert_cost": "dear"}),
        ("weight", {"recheck_share": 1, "weight": 3}),
        ("target", {"plan": plan_of(40, 6, p=1, target="pool")}),
        ("target", {"plan": plan_of(40, 6, p=1, loss="jaccard")}),
        ("target", {"plan": plan_of(40, 6, p=1, data_set_size=50)}),
    ):
        with pytest.raises(PlanError) as refused:
            validate_expert_plan(run_of(**wrong))  # type: ignore[arg-type]
        assert refused.value.field == field
