"""From frozen chains and the labels of annotators and expert to a certified policy, in one call."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from routing.core.arrays import Ints
from routing.core.calibration import Calibration
from routing.core.certify import required_of
from routing.core.every_score.certify import asked_of
from routing.core.every_score.items import ScoredItems
from routing.core.every_score.losses import AskedItems
from routing.core.every_score.select import PilotCosts
from routing.core.keys import pack
from routing.core.messages import Message, sentences
from routing.core.pilot import PilotData
from routing.core.reference.chain import ReferenceChains
from routing.core.reference.estimate import PeopleEstimate, people_estimate
from routing.core.reference.forecast import SourceCosts, model_costs
from routing.core.reference.plan import ExpertPlan, validate_expert_plan
from routing.core.reference.recheck import least_asked
from routing.core.reference.select import ReferenceSelection, select_with_expert
from routing.core.reference.sources import EXPERT, AskedLabels
from routing.core.reference.words import Step, expert_says, why_nothing_of


@dataclass(frozen=True)
class Counts:
    """What the asked items showed of one policy, and what it is tested by.

    Attributes
    ----------
    unlike, alike : int
        K_A+ and K_B+.
    observed, allowed : int
        Q+ and the largest that passes.
    seen : int
        K_A- + K_B-.
    required : int
        The least of ``seen``, s; 0 where the narrow test admits the policy anyway.
    """

    unlike: int
    alike: int
    observed: int
    allowed: int
    seen: int
    required: int


@dataclass(frozen=True)
class ReferenceCertification:
    """The outcome of an analysis with the reference `expert`.

    Attributes
    ----------
    selection : ReferenceSelection
    asked, rechecked, seen : int
        n, n_B, and how many of the asked items the expert was to label.
    unanswered, unlabelled : int
        Asked items whose annotator did not answer, and those that the expert could not label.
    counts : Counts
        Of the chosen policy; of the first after "everything to the expert" where nothing is certified.
    people : PeopleEstimate
        People's error on the pool.
    expected_net_cost : float
        Everything the run pays, the first model on every item and the pilot included; no audit.
    expected_net_saving : float
        1 - that / (N c_e): against the expert labelling everything.  May be negative.
    smallest_n : int
        Least n with which a step without an error passes.
    replaced : int
        X, delivered items whose annotator left and that somebody else than the expert labelled.
    pilot_costs : PilotCosts or None
        What policies on every score cost on the pilot, as it was given.
    why_nothing : message or None
        Why nothing is certified.
    said : messages
        What is certified, or what is not and why.
    """

    selection: ReferenceSelection
    asked: int
    rechecked: int
    seen: int
    unanswered: int
    unlabelled: int
    counts: Counts
    people: PeopleEstimate
    expected_net_cost: float
    expected_net_saving: float
    smallest_n: int
    replaced: int
    pilot_costs: PilotCosts | None
    why_nothing: Message | None
    said: tuple[Message, ...]

    @property
    def certified(self) -> bool:
        """Whether anything but "everything to the expert" may be done."""
        return self.selection.index > 0

    @property
    def reason(self) -> str:
        """Why nothing is certified, in English, or ''."""
        return "" if self.why_nothing is None else str(self.why_nothing)

    @property
    def sentence(self) -> str:
        """What is certified or not, in English: what the certificate holds."""
        return sentences(self.said)

    def sources(self, u: ArrayLike, v: ArrayLike, items: ScoredItems | None = None) -> Ints:
        """The source of each item (n,), 0 .. K + 2, from its uncertainty and tie-break; see
        `ReferenceSelection.sources`.
        """
        return self.selection.sources(pack(u, v), items)


def certify_with_expert(
    run: ExpertPlan,
    chains: ReferenceChains,
    calibration: Calibration,
    *,
    pilot: PilotData | None = None,
    pilot_costs: PilotCosts | None = None,
    models_costs: SourceCosts | None = None,
    replaced: int = 0,
) -> ReferenceCertification:
    """Test the frozen chains and choose the cheapest certified policy.

    Parameters
    ----------
    calibration
        The rows of the draw; ``label`` of an asked row is the expert's, None where she was not to label the
        item or could not, ``annotator`` and ``person`` whose it is and what she said.  Every model has
        answered every asked item.
    pilot
        As the chains were built from: what unusable answers and the best model cost.
    pilot_costs
        What the policies on every score cost on the pilot items outside the asked ones.
    models_costs
        In place of ``pilot``, what `forecast.model_costs` made of it.
    replaced
        X, delivered items whose annotator left and that somebody else than the expert labelled: each may be
        wrong, and (E + X) / N is promised.

    Raises
    ------
    PlanError, CalibrationError, ValueError
        The plan cannot certify, the rows do not fit it, or the chains are not those of the plan.
    """
    validate_expert_plan(run)
    calibration.check(run.plan)
    if fault := chains.fault(run) or _fault(run, chains, pilot_costs, replaced):
        raise ValueError(fault)
    labels = AskedLabels.of_calibration(run, calibration)
    scored = asked_of(run.models_and_expert, chains.scores, calibration) if chains.scores else None
    spent = models_costs or model_costs(run, chains.slices, pilot)
    chosen = select_with_expert(run, chains, labels, spent, scored=scored, pilot_costs=pilot_costs)
    counts = _counts(chosen, labels, scored)
    least = least_asked(
        pool_size=run.plan.pool_size, share=run.recheck_share, budget=run.plan.budget, level=run.level
    )
    net = net_cost(run, chosen, labels, scored, pilot_costs)
    saving = 1 - net / (run.plan.pool_size * float(run.expert_cost))
    verdicts = [test.verdict for test in chosen.tests]
    verdicts += [test.verdict for test in chosen.scores.tests] if chosen.scores else []
    saves = not any(verdict.eligible[1:].any() for verdict in verdicts)
    why = None if chosen.index else why_nothing_of(labels.asked, least, _steps(chosen), saves=saves)
    unlabelled = int(np.count_nonzero(labels.seen & ~labels.labelled))
    return ReferenceCertification(
        selection=chosen,
        asked=labels.asked,
        rechecked=labels.rechecked,
        seen=int(np.count_nonzero(labels.seen)),
        unanswered=int(np.count_nonzero(~labels.answered)),
        unlabelled=unlabelled,
        counts=counts,
        people=people_estimate(labels, pool_size=run.plan.pool_size),
        expected_net_cost=net,
        expected_net_saving=saving,
        smallest_n=least,
        replaced=replaced,
        pilot_costs=pilot_costs,
        why_nothing=why,
        said=expert_says(run, why, unlabelled=unlabelled, replaced=replaced, dearer=saving < 0),
    )


def _fault(run: ExpertPlan, chains: ReferenceChains, pilot_costs: PilotCosts | None, replaced: int) -> str:
    if pilot_costs is not None:
        if chains.scores is None:
            return "no chain is on every score, so none has costs on the pilot"
        if fault := pilot_costs.fault(run.models_and_expert):
            return fault
    if not 0 <= replaced <= run.plan.pool_size - run.plan.budget:
        return f"{replaced} items cannot have been labelled in others' places"
    return ""


def _counts(chosen: ReferenceSelection, labels: AskedLabels, scored: AskedItems | None) -> Counts:
    """Of the chosen policy, or of the first one of its chain."""
    if chosen.by_scores:
        test = chosen.by_scores.tests[chosen.by_scores.number]
        verdict, size, lower, observed = test.verdict, test.chain.size, test.lower, test.upper
    else:
        found = chosen.tests[chosen.number]
        verdict, size, lower, observed = found.verdict, found.chain.size, found.lower, found.upper
    shown = max(chosen.index, 1) if size > 1 else 0
    sources = chosen.sources_of(shown, labels.keys, scored.items if scored else None)
    losses = labels.upper[np.arange(labels.asked), sources]
    return Counts(
        unlike=int(losses[~labels.alike].sum()),
        alike=int(losses[labels.alike].sum()),
        observed=int(observed[shown]),
        allowed=int(verdict.allowed[shown]),
        seen=int(lower[shown]),
        required=required_of(verdict, chosen.index),
    )


def _steps(chosen: ReferenceSelection) -> list[Step]:
    """How far the tests along the chains over slices came."""
    return [
        Step(
            chain=test.chain.name,
            passed=max(test.verdict.prefixes.values()) - 1,
            steps=test.chain.size - 1,
            allowed=max(test.verdict.limits.get("c_s", -1), test.verdict.limits.get("errors", -1)),
            required=test.verdict.required,
        )
        for test in chosen.tests
        if test.chain.size > 1
    ]


def net_cost(
    run: ExpertPlan,
    chosen: ReferenceSelection,
    labels: AskedLabels,
    scored: AskedItems | None,
    pilot_costs: PilotCosts | None,
) -> float:
    """Everything the run pays: the first model on every item, all models on pilot and asked items, the
    annotators on the asked ones, the expert on those that she was to label or that the policy sends to her,
    and what the policy is estimated to cost on the rest.
    """
    plan, asked = run.plan, labels.asked
    prices, rest = [float(cost) for cost in plan.costs], plan.pool_size - labels.asked
    later, expert = sum(prices[1:-1]), float(run.expert_cost)
    sources = chosen.sources(labels.keys, scored.items if scored else None)
    at_expert = labels.seen | (sources == plan.sources - 1 + EXPERT)
    outside = plan.pilot * float(Fraction(rest, plan.pool_size))
    if chosen.by_scores and scored is not None:
        outside = float(pilot_costs.items) if pilot_costs and pilot_costs.items else outside
        policy = chosen.by_scores.chain.only(chosen.index)
        whole = float(chosen.by_scores.costs[chosen.by_scores.number][chosen.index])
        models = float(policy.paid(scored.items, [*prices[:-1], 0.0])[0]) / max(asked, 1)
        people = whole - models
    else:
        spent = chosen.tests[chosen.number].spent
        models, people = float(spent.models[chosen.index]), float(spent.people[chosen.index])
    # Nothing is paid twice: on a pilot item the policy's calls have been made already.
    return (
        plan.pool_size * prices[0]
        + (outside + asked) * later
        + asked * prices[-1]
        + expert * int(np.count_nonzero(at_expert))
        + (rest - outside) * models
        + rest * people
    )
