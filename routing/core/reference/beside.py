"""What other references would have come to on the labels of a run with an expert: shown beside what it
certified, and certifying nothing.

Only what these labels tell: annotators and all models answered every asked item, the expert labelled those on
which they do not all agree, and the recheck set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from routing.core.arrays import Ints
from routing.core.calibration import Calibration
from routing.core.certify import certify
from routing.core.chain import Chain
from routing.core.every_score.certify import asked_of
from routing.core.every_score.losses import AskedItems
from routing.core.plan import Plan
from routing.core.reference.certify import ReferenceCertification, net_cost
from routing.core.reference.chain import MODELS, ReferenceChains
from routing.core.reference.plan import ExpertPlan
from routing.core.reference.sources import AskedLabels, answers_of, present
from routing.core.reference.ways import ALONE, EVERYTHING, PEOPLES_WORD, WITH_PEOPLE
from routing.core.route import first_usable_source, route
from routing.core.rules import fixed_sequence
from routing.core.rules.fixed_sequence import cheapest


@dataclass(frozen=True)
class Beside:
    """One reference on the labels of this run.

    Attributes
    ----------
    name : str
        As in `routing.core.reference.ways`.
    found : bool
        Whether its tests passed any policy but "everything to whose label is right".
    cost : float
        What it would be expected to cost in all, in the currency of the plan.
    wrong, seen : int
        Of the asked items that the expert labelled, those on which the label that its policy gives them is
        not hers, as if nobody had been asked about them.
    share : float
        The same of the pool, an estimate: each asked item on which not all agree counts 1 / n, each rechecked
        one on which they do 1 / n_B.
    """

    name: str
    found: bool
    cost: float
    wrong: int
    seen: int
    share: float


def beside(
    run: ExpertPlan,
    chains: ReferenceChains,
    calibration: Calibration,
    found: ReferenceCertification,
    *,
    peoples_chains: Sequence[Chain],
) -> tuple[Beside, ...]:
    """This run's choice; beside it people's word, the expert alone with the models, and her for everything.

    Parameters
    ----------
    chains, calibration
        As `certify_with_expert` had them; ``found`` is what it found.
    peoples_chains
        From `build_chains`, for the ordinary plan `peoples_plan`.

    Raises
    ------
    PlanError, CalibrationError, LossUnavailableError, ValueError
        As of `certify`.
    """
    labels = AskedLabels.of_calibration(run, calibration)
    scored = asked_of(run.models_and_expert, chains.scores, calibration) if chains.scores else None
    chosen = found.selection.sources(labels.keys, scored.items if scored else None)
    everything = run.plan.pool_size * float(run.expert_cost)
    return (
        _row(WITH_PEOPLE, labels, chosen, found=found.certified, cost=found.expected_net_cost),
        _peoples_word(run, labels, calibration, peoples_chains),
        _alone(run, labels, found, scored),
        Beside(EVERYTHING, True, everything, 0, int(np.count_nonzero(labels.labelled)), 0.0),
    )


def peoples_plan(run: ExpertPlan) -> Plan:
    """The ordinary plan in which one person's label is right, with all thresholds on the first score."""
    return replace(run.plan, rule=fixed_sequence.RULE.name)


def _row(name: str, labels: AskedLabels, sources: Ints, *, found: bool, cost: float) -> Beside:
    wrong = labels.lower[np.arange(labels.asked), sources]
    unlike, alike = float(wrong[~labels.alike].sum()), float(wrong[labels.alike].sum())
    share = unlike / max(labels.asked, 1) + alike / max(labels.rechecked, 1)
    seen = int(np.count_nonzero(labels.seen & labels.labelled))
    return Beside(name, found, cost, round(unlike + alike), seen, share)


def _peoples_word(
    run: ExpertPlan, labels: AskedLabels, calibration: Calibration, chains: Sequence[Chain]
) -> Beside:
    """The annotators' labels taken as right, as a run without an expert would."""
    plan = peoples_plan(run)
    said = [replace(row, label=row.person, annotator="", person=None, own=()) for row in calibration.rows]
    found = certify(plan, chains, Calibration.from_rows(said))
    rows = [row for row in calibration.rows if row.asked]
    nominal = route([row.u for row in rows], [row.v for row in rows], found.thresholds)
    # After the models comes the annotator, among the sources of a run with an expert as well.
    sources = first_usable_source(nominal, present(answers_of(rows, plan.sources - 1)))
    return _row(PEOPLES_WORD, labels, sources, found=found.certified, cost=found.expected.net_cost)


def _alone(
    run: ExpertPlan, labels: AskedLabels, found: ReferenceCertification, scored: AskedItems | None
) -> Beside:
    """The cheapest policy of models and expert that this run's own tests passed, at alpha / 3, with every
    asked item labelled by her and by nobody else.
    """
    selection = found.selection
    number = index = 0
    if selection.scores is not None:
        if selection.scores.index:
            number, index = len(selection.tests), selection.scores.index
    else:
        for place, test in enumerate(selection.tests):
            if test.chain.name == MODELS:
                number, index = place, cheapest(test.verdict.eligible, test.costs)
    alone = replace(selection, number=number, index=index)
    unpaid = replace(run, plan=replace(run.plan, costs=(*run.plan.costs[:-1], Decimal(0))))
    all_by_her = replace(labels, rechecked=labels.asked)
    cost = net_cost(unpaid, alone, all_by_her, scored, found.pilot_costs)
    sources = alone.sources(labels.keys, scored.items if scored else None)
    return _row(ALONE, labels, sources, found=index > 0, cost=cost)
