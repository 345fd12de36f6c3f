"""The tests along frozen chains and the choice of the cheapest certified policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from routing.core.arrays import Bools, Floats, Ints, Keys
from routing.core.bounds import Evidence
from routing.core.every_score.chain import ScoreChain
from routing.core.every_score.items import ScoredItems
from routing.core.every_score.losses import AskedItems
from routing.core.every_score.select import Judge, PilotCosts, ScoreSelection, select_every_score
from routing.core.pilot_losses import LEARNT_DIGITS, half_isotonic_half_logistic
from routing.core.reference.audit import FinalAudit
from routing.core.reference.chain import ReferenceChains, SliceChain
from routing.core.reference.forecast import SourceCosts
from routing.core.reference.plan import CHAINS, ExpertPlan
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
    unlike, alike : (J,)
        K_A+ and K_B+.
    weight : int
        w.
    lower : (J,)
        K_A- + K_B-.
    verdict
        Which policies are certified.
    spent : SourceCosts
        Estimated cost per item of the policies, (J,) each: of later models, and of people and expert.
    """

    chain: SliceChain
    unlike: Floats
    alike: Floats
    weight: int
    lower: Floats
    verdict: Verdict
    spent: SourceCosts

    @cached_property
    def upper(self) -> Floats:
        """Q+ = K_A+ + w K_B+, (J,)."""
        return self.unlike + self.weight * self.alike

    @cached_property
    def costs(self) -> Floats:
        """Estimated cost per item, (J,)."""
        return self.spent.total


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
    models_costs : SourceCosts
        What the models were taken to cost, (K, b) each.
    """

    tests: tuple[SliceTest, ...]
    scores: ScoreSelection | None
    number: int
    index: int
    models_costs: SourceCosts

    @property
    def by_scores(self) -> ScoreSelection | None:
        """``scores``, if the chosen policy is one of it."""
        return self.scores if self.number == len(self.tests) else None

    @property
    def chain(self) -> str:
        """Name of the chosen chain."""
        return self.by_scores.chain.name if self.by_scores else self.tests[self.number].chain.name

    def sources(self, keys: Keys, items: ScoredItems | None = None) -> Ints:
        """The source of each item (n,), 0 .. K + 2, under the chosen policy.

        Parameters
        ----------
        keys : (n,)
            The first model's.
        items
            Every model's, which a policy on every score reads.

        Raises
        ------
        ValueError
            There are no ``items`` for such a policy.
        """
        return self.sources_of(self.index, keys, items)

    def sources_of(self, index: int, keys: Keys, items: ScoredItems | None = None) -> Ints:
        """The same under another policy of the chosen chain."""
        if self.by_scores:
            if items is None:
                raise ValueError("the chosen policy is on every score: give the scores of all models")
            found = self.by_scores.chain.only(index).delivers(items)[0].astype(np.int64)
            return np.where(found == items.models, items.models + EXPERT, found)
        chain = self.tests[self.number].chain
        return np.asarray(chain.sources(index)[chain.slice_of(keys)], dtype=np.int64)


def select_with_expert(
    run: ExpertPlan,
    chains: ReferenceChains,
    labels: AskedLabels,
    models_costs: SourceCosts,
    *,
    scored: AskedItems | None = None,
    pilot_costs: PilotCosts | None = None,
) -> ReferenceSelection:
    """The tests along all chains, each at alpha / 3, and the choice of least estimated cost.

    What second looks cost is estimated from the asked items; any choice among certified policies is valid.
    Where a final audit is planned it is among those of which models' part is certified, too, so that the
    audit may succeed; unless there is none.

    Parameters
    ----------
    models_costs
        As from `forecast.model_costs`.
    scored
        The asked items as `every_score` reads them, with losses against the expert's labels; needed where a
        chain is on every score.
    """
    slices = chains.slices
    looks = looks_of(chains, labels)
    spent, part = models_costs.with_people(run, looks), slices.sizes / run.plan.pool_size
    costs = SourceCosts(spent.models * part, spent.people * part)
    tests = tuple(_test(run, chain, labels, costs) for chain in chains.chains)
    number, index, least = _chosen(tests, [test.verdict.eligible for test in tests])
    if run.final is not None:
        audit = run.final.audit(run.plan.pool_size)
        parts = [models_verdict(run, chain, labels, audit).eligible for chain in chains.chains]
        both = [test.verdict.eligible & part for test, part in zip(tests, parts, strict=True)]
        if any(row[1:].any() for row in both):
            number, index, least = _chosen(tests, both)
    if chains.scores is None:
        return ReferenceSelection(tests, None, number, index, models_costs)
    if scored is None:
        raise ValueError("a chain is on every score: the asked items' own scores are needed")
    by_scores = select_every_score(
        run.models_and_expert,
        chains.scores,
        weighted_asked(run, labels, scored),
        pilot_costs,
        judge=judge_for(run, labels),
    )
    if by_scores.index and by_scores.costs[by_scores.number][by_scores.index] < least:
        number, index = len(tests), by_scores.index
    return ReferenceSelection(tests, by_scores, number, index, models_costs)


def weighted_asked(run: ExpertPlan, labels: AskedLabels, scored: AskedItems) -> AskedItems:
    """The asked items with the models' losses as they add up to Q+ and to K_A- + K_B-: nothing is known of
    those that the expert was not to label.
    """
    if run.all_rechecked:
        return scored
    models = scored.upper.shape[1]
    return replace(
        scored, upper=labels.weighted(run.weight)[:, :models], lower=labels.lower[:, :models].copy()
    )


def judge_for(run: ExpertPlan, labels: AskedLabels) -> Judge | None:
    """How chains on every score are tested: in order by Q, as the simultaneous test along a nested chain is
    about counts of which every asked item is seen; None where each is, r = 1.
    """
    if run.all_rechecked:
        return None

    def judge(
        chain: ScoreChain, *, evidence: Evidence, lower: Floats, level: Fraction
    ) -> tuple[Verdict, Fraction]:
        levels = run.levels(labels.asked, level)
        return judge_weighted(np.rint(evidence.total), np.rint(lower), levels), level

    return judge


def _chosen(tests: Sequence[SliceTest], eligible: Sequence[Bools]) -> tuple[int, int, float]:
    """Chain and policy of least cost among those that are eligible, (J,) of each chain, and that cost."""
    number, index, least = 0, 0, float(tests[0].costs[0])
    for candidate, (test, among) in enumerate(zip(tests, eligible, strict=True)):
        best = cheapest(among, test.costs)
        if test.costs[best] < least:
            number, index, least = candidate, best, float(test.costs[best])
    return number, index, least


@dataclass(frozen=True)
class ModelsPart:
    """Whether models alone leave at most E_M wrong labels under a policy, by the calibration.

    Attributes
    ----------
    observed, allowed : int
        The errors of models on the asked items, each by its weight, and the most that may be seen.
    holds : bool
        Whether this policy and all before it on its chain pass.
    """

    observed: int
    allowed: int
    holds: bool


def models_part(
    run: ExpertPlan, chosen: ReferenceSelection, labels: AskedLabels, audit: FinalAudit
) -> ModelsPart:
    """Whether the calibration certifies at alpha_1 that models leave at most E_M wrong labels under the
    chosen policy, which is one over slices.
    """
    chain, place = chosen.tests[chosen.number].chain, chosen.index
    verdict = models_verdict(run, chain, labels, audit)
    upper = totals(chain, labels.keys, labels.of_models_only(chain.models).weighted(run.weight), _all(labels))
    return ModelsPart(int(upper[place]), int(verdict.allowed[place]), bool(verdict.eligible[place]))


def models_verdict(run: ExpertPlan, chain: SliceChain, labels: AskedLabels, audit: FinalAudit) -> Verdict:
    """Of which policies of a chain models leave at most E_M wrong labels: it is tested once more, with no
    loss for people's labels.

    The policy is chosen by the same labels; so each chain is tested at alpha_1 / 3, in order, and whichever
    policy is chosen, it is one of those that are certified together.
    """
    of_models, rechecked = labels.of_models_only(chain.models), labels.rechecked
    limit = largest_weighted_count(
        pool_size=run.plan.pool_size,
        asked=labels.asked,
        rechecked=rechecked,
        weight=run.weight if rechecked < labels.asked else 1,
        wrong=audit.models_budget + 1,
        level=float(audit.models_level / CHAINS),
    )
    upper, lower = (
        totals(chain, labels.keys, losses, _all(labels))
        for losses in (of_models.weighted(run.weight), of_models.lower)
    )
    # One level: what a policy sends to models may show fewer errors than two levels ask for.
    return judge_weighted(upper, lower, Levels(0, limit, limit))


def _all(labels: AskedLabels) -> Bools:
    return np.ones_like(labels.alike)


def looks_of(chains: ReferenceChains, labels: AskedLabels) -> Floats:
    """On which share of each slice (b,) annotator and best model differ, by regression on the asked items.

    As of what a chain is learnt from, only the slices' ends and ranks are read and the result is rounded, so
    that whoever holds these and the asked items finds the same on any machine.
    """
    rho = chains.slices.rho
    if not labels.asked:
        return np.ones_like(rho)
    at = chains.chains[0].slice_of(labels.keys)
    looks = half_isotonic_half_logistic(rho[at], labels.looks.astype(np.float64), rho, 1.0)
    return np.round(looks, LEARNT_DIGITS)


def totals(chain: SliceChain, keys: Keys, losses: Floats, counted: Bools) -> Floats:
    """What the items ``counted`` (n,) add to the losses (n, K + 3) of every policy of a chain, (J,)."""
    # Whole numbers, summed up as floats.
    return np.rint(chain.totals(keys[counted], losses[counted]))


def _test(run: ExpertPlan, chain: SliceChain, labels: AskedLabels, costs: SourceCosts) -> SliceTest:
    unlike = totals(chain, labels.keys, labels.upper, ~labels.alike)
    alike = totals(chain, labels.keys, labels.upper, labels.alike)
    lower = totals(chain, labels.keys, labels.lower, np.ones_like(labels.alike))
    verdict = judge_weighted(unlike + run.weight * alike, lower, run.levels(labels.asked))
    spent = SourceCosts(chain.along(costs.models), chain.along(costs.people))
    return SliceTest(chain, unlike, alike, run.weight, lower, verdict, spent)
