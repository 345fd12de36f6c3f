"""From frozen chains and the labels of annotators and expert to a certified policy, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from routing.core.arrays import Floats, Ints, Keys
from routing.core.calibration import Calibration
from routing.core.certify import required_of
from routing.core.every_score.certify import asked_of
from routing.core.every_score.items import ScoredItems
from routing.core.every_score.losses import AskedItems
from routing.core.every_score.select import PilotCosts, ScoreSelection, select_every_score
from routing.core.pilot import PilotData
from routing.core.pilot_losses import half_isotonic_half_logistic
from routing.core.reference.audit import FinalAudit
from routing.core.reference.chain import ReferenceChains, SliceChain
from routing.core.reference.estimate import PeopleEstimate, people_estimate
from routing.core.reference.forecast import source_costs
from routing.core.reference.plan import CHAINS, ExpertPlan, validate_expert_plan
from routing.core.reference.recheck import judge_weighted, largest_weighted_count
from routing.core.reference.sources import EXPERT, AskedLabels
from routing.core.rules.fixed_sequence import Verdict, cheapest
from routing.core.targets.dataset import Levels


@dataclass(frozen=True)
class SliceTest:
    """How the tests along one chain over slices came out.

    Attributes
    ----------
    chain : SliceChain
    upper, lower : (J,)
        Q+ = K_A+ + w K_B+, and K_A- + K_B-.
    verdict
        Which policies are certified.
    costs : (J,)
        Estimated cost per item of later models, people and expert.
    """

    chain: SliceChain
    upper: Floats
    lower: Floats
    verdict: Verdict
    costs: Floats


@dataclass(frozen=True)
class ReferenceSelection:
    """The tests of one analysis and its choice.

    Attributes
    ----------
    tests : one per chain over slices
    scores : ScoreSelection or None
        What `every_score` chose among models and expert, where it stands for the third chain.
    number, index : int
        Of the chosen chain and policy; ``number`` is ``len(tests)`` for the choice of ``scores``, and (0, 0)
        everything at the expert.
    """

    tests: tuple[SliceTest, ...]
    scores: ScoreSelection | None
    number: int
    index: int

    @property
    def by_scores(self) -> bool:
        """Whether the chosen policy is one of ``scores``."""
        return self.number == len(self.tests)

    @property
    def chain(self) -> str:
        """Name of the chosen chain."""
        if self.by_scores and self.scores is not None:
            return self.scores.chain.name
        return self.tests[self.number].chain.name

    def sources(self, keys: Keys, items: ScoredItems | None = None) -> Ints:
        """The source of each item (n,), 0 .. K + 2, under the chosen policy.

        ``keys`` are the first model's; ``items``, every model's, are read where a policy on every score was
        chosen.
        """
        if self.by_scores and self.scores is not None and items is not None:
            found = self.scores.chain.only(self.scores.index).delivers(items)[0].astype(np.int64)
            return np.where(found == items.models, items.models + EXPERT, found)
        chain = self.tests[self.number].chain
        return np.asarray(chain.sources(self.index)[chain.slice_of(keys)], dtype=np.int64)


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
    observed, allowed : float, int
        Q+ of the chosen policy and the largest that passes; of the first policy where nothing is certified.
    required : int
        Errors that had to be seen, K_A- + K_B- >= s; 0 where the narrow test admits the policy anyway.
    people : PeopleEstimate
        People's error on the pool.
    """

    selection: ReferenceSelection
    asked: int
    rechecked: int
    seen: int
    unanswered: int
    unlabelled: int
    observed: float
    allowed: int
    required: int
    people: PeopleEstimate

    @property
    def certified(self) -> bool:
        """Whether anything but "everything to the expert" may be done."""
        return self.selection.index > 0


def certify_with_expert(
    run: ExpertPlan,
    chains: ReferenceChains,
    calibration: Calibration,
    annotators: Mapping[str, str | None],
    *,
    pilot: PilotData | None = None,
    pilot_costs: PilotCosts | None = None,
) -> ReferenceCertification:
    """Test the frozen chains and choose the cheapest certified policy.

    Parameters
    ----------
    calibration
        The rows of the draw; ``label`` of an asked row is the expert's, None where she was not to label the
        item or could not.  Every model has answered every asked item.
    annotators
        By item id, what the annotator of each asked item said; None where she did not answer.
    pilot
        As the chains were built from: what unusable answers and the best model cost.
    pilot_costs
        What the policies on every score cost on the pilot items outside the asked ones.

    Raises
    ------
    PlanError, CalibrationError, ValueError
        The plan cannot certify, the rows do not fit it, or the chains are not those of the plan.
    KeyError
        An asked item has no entry in ``annotators``.
    """
    validate_expert_plan(run)
    calibration.check(run.plan)
    if fault := chains.fault(run):
        raise ValueError(fault)
    labels = AskedLabels.of_calibration(run, calibration, annotators)
    scored = asked_of(run.models_and_expert, chains.scores, calibration) if chains.scores else None
    chosen = select_with_expert(run, chains, labels, pilot=pilot, scored=scored, pilot_costs=pilot_costs)
    observed, allowed, required = _evidence(chosen)
    return ReferenceCertification(
        selection=chosen,
        asked=labels.asked,
        rechecked=labels.rechecked,
        seen=int(np.count_nonzero(labels.seen)),
        unanswered=int(np.count_nonzero(~labels.answered)),
        unlabelled=int(np.count_nonzero(labels.seen & ~labels.labelled)),
        observed=observed,
        allowed=allowed,
        required=required,
        people=people_estimate(labels, pool_size=run.plan.pool_size),
    )


def select_with_expert(
    run: ExpertPlan,
    chains: ReferenceChains,
    labels: AskedLabels,
    *,
    pilot: PilotData | None = None,
    scored: AskedItems | None = None,
    pilot_costs: PilotCosts | None = None,
) -> ReferenceSelection:
    """The tests along all chains, each at alpha / 3, and the choice of least estimated cost.

    What second looks cost is estimated from the asked items; any choice among certified policies is valid.

    Parameters
    ----------
    scored
        The asked items as `every_score` reads them, with losses against the expert's labels; needed where a
        chain is on every score.
    """
    looks = half_isotonic_half_logistic(
        chains.slices.ranks(labels.keys.real), labels.looks.astype(np.float64), chains.slices.rho, 1.0
    )
    costs = source_costs(run, chains.slices, pilot, looks) * chains.slices.sizes / run.plan.pool_size
    tests = tuple(_test(run, chain, labels, costs) for chain in chains.chains)
    number, index, least = 0, 0, float(tests[0].costs[0])
    for candidate, test in enumerate(tests):
        best = cheapest(test.verdict.eligible, test.costs)
        if test.costs[best] < least:
            number, index, least = candidate, best, float(test.costs[best])
    if chains.scores is None:
        return ReferenceSelection(tests, None, number, index)
    if scored is None:
        raise ValueError("a chain is on every score: the asked items' own scores are needed")
    by_scores = select_every_score(run.models_and_expert, chains.scores, scored, pilot_costs)
    if by_scores.index and by_scores.costs[by_scores.number][by_scores.index] < least:
        number, index = len(tests), by_scores.index
    return ReferenceSelection(tests, by_scores, number, index)


def models_part_holds(
    run: ExpertPlan,
    chosen: ReferenceSelection,
    labels: AskedLabels,
    audit: FinalAudit,
    *,
    chains: ReferenceChains,
    scored: AskedItems | None = None,
) -> bool:
    """Whether the calibration certifies at alpha_1 that models leave at most E_M wrong labels under the
    chosen policy: its chain is tested once more, with no loss for people's labels.
    """
    level = audit.models_level / CHAINS
    if chosen.by_scores and chosen.scores is not None:
        if scored is None or chains.scores is None:
            raise ValueError("the policy is on every score: the asked items' own scores are needed")
        plan = replace(
            run.models_and_expert,
            epsilon=Decimal(2 * audit.models_budget + 1) / (2 * run.plan.pool_size),
            alpha=Decimal(int(level * 10**12)) / 10**12,
        )
        again = select_every_score(plan, chains.scores, scored)
        return bool(again.tests[chosen.scores.number].verdict.eligible[chosen.index])
    chain = chosen.tests[chosen.number].chain
    of_models = labels.of_models_only(chain.models)
    limit = largest_weighted_count(
        pool_size=run.plan.pool_size,
        asked=labels.asked,
        rechecked=labels.rechecked,
        weight=run.weight,
        wrong=audit.models_budget + 1,
        level=float(level),
    )
    # One level: what a policy sends to models may show fewer errors than two levels ask for.
    upper, lower = _totals(run, chain, of_models)
    return bool(judge_weighted(upper, lower, Levels(0, limit, limit)).eligible[chosen.index])


def _test(run: ExpertPlan, chain: SliceChain, labels: AskedLabels, costs: Floats) -> SliceTest:
    upper, lower = _totals(run, chain, labels)
    verdict = judge_weighted(upper, lower, run.levels(labels.asked))
    return SliceTest(chain, upper, lower, verdict, chain.along(costs))


def _totals(run: ExpertPlan, chain: SliceChain, labels: AskedLabels) -> tuple[Floats, Floats]:
    """Q+ and K- of every policy of a chain: whole numbers, summed up as floats."""
    upper = np.rint(chain.totals(labels.keys, labels.weighted(run.weight)))
    return upper, np.rint(chain.totals(labels.keys, labels.lower))


def _evidence(chosen: ReferenceSelection) -> tuple[float, int, int]:
    """Q+ of the chosen policy, the largest that passes, and the errors that had to be seen."""
    if chosen.by_scores and chosen.scores is not None:
        test = chosen.scores.tests[chosen.scores.number]
        required = required_of(test.verdict, chosen.index)
        return float(test.upper[chosen.index]), int(test.verdict.allowed[chosen.index]), required
    found = chosen.tests[chosen.number]
    shown = max(chosen.index, 1) if found.chain.size > 1 else 0
    return (
        float(found.upper[shown]),
        int(found.verdict.allowed[shown]),
        required_of(found.verdict, chosen.index),
    )
