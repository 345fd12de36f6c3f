"""What the chains of a run are tested on: all asked items, or those that did not teach the chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from routing.core.arrays import Floats, Keys
from routing.core.bins import Bins
from routing.core.bounds import Evidence
from routing.core.bounds.hypergeometric import Hypergeometric
from routing.core.calibration import ObservedLosses
from routing.core.chain import Chain, Policy, learn_chain
from routing.core.plan import Plan
from routing.core.rules import split_fixed_sequence
from routing.core.rules.fixed_sequence import Verdict
from routing.core.targets import LearningSplit


@dataclass(frozen=True)
class ChainTest:
    """How the tests along one chain of J policies came out.

    Attributes
    ----------
    name : str
    level : Fraction
        alpha divided by the number of chains.
    upper, lower : (J,)
        Observed losses K+ and K- on the items that the tests were made on.
    verdict
        Which policies are certified, and with which limits.
    taught : LearningSplit or None
        The same of the items that taught the chain, where it was learnt from labels.
    weighted : (J,) or None
        Sum of Z l / p_i over the drawn items, where the p_i vary.
    """

    name: str
    level: Fraction
    upper: Floats
    lower: Floats
    verdict: Verdict
    taught: LearningSplit | None = None
    weighted: Floats | None = None


@dataclass(frozen=True)
class SampleSplit:
    """Asked items to test on, and what they are a simple random sample of.

    Attributes
    ----------
    plan : Plan
    tested : ObservedLosses
        All asked items; under `split_fixed_sequence` those that did not teach the chain.
    first : ObservedLosses or None
        Those that did.
    """

    plan: Plan
    tested: ObservedLosses
    first: ObservedLosses | None = None

    @classmethod
    def of(cls, plan: Plan, losses: ObservedLosses) -> SampleSplit:
        """All of ``losses``, or split into two parts where the rule learns its chain from the first."""
        if plan.rule != split_fixed_sequence.RULE.name:
            return cls(plan, losses)
        first, rest = losses.split(split_fixed_sequence.first_part(losses.asked, plan.split_share))
        return cls(plan, rest, first)

    @property
    def pool_size(self) -> int:
        """N, without the items that taught the chain."""
        return self.plan.pool_size - (self.first.asked if self.first else 0)

    @property
    def asked(self) -> int:
        """n, all asked items."""
        return self.tested.asked + (self.first.asked if self.first else 0)

    def evidence(self, thresholds: Keys) -> Evidence:
        """What the tested items say about policies with ``thresholds`` (J, S - 1)."""
        evidence = self.tested.evidence_of(self.plan, thresholds)
        if self.first is None:
            return evidence
        # Given the first part, the tested items are a simple random sample, all of which was asked.
        return replace(
            evidence, drawn=self.tested.asked, p=Fraction(1), pool_size=self.pool_size, places=None
        )

    def test(self, chain: Chain, level: Fraction) -> ChainTest:
        """The tests along ``chain``, each at ``level``."""
        thresholds = chain.thresholds
        taught, evidence = self._taught(thresholds), self.evidence(thresholds)
        lower = self.tested.totals(thresholds)[2]
        verdict = self.plan.target_rule().judge(
            bound=self.plan.bound_rule(),
            evidence=evidence,
            lower=lower,
            epsilon=self.plan.risk_limit,
            level=level,
            taught=taught,
        )
        return ChainTest(chain.name, level, evidence.total, lower, verdict, taught, evidence.weighted)

    def upper_bounds(self, thresholds: Keys) -> Floats:
        """Upper bounds (J,) on the target at level alpha, each as if its policy alone were looked at."""
        plan, taught, delivered = self.plan, self._taught(thresholds), self.plan.target == "dataset"
        bound, evidence = plan.bound_rule(), self.evidence(thresholds)
        bounds = bound.upper(evidence, float(plan.alpha), target=plan.target)
        if delivered and isinstance(bound, Hypergeometric):
            # It takes off all of K+, but errors that nobody could mend stay in the data set: put them back.
            lower = self.tested.totals(thresholds)[2]
            bounds = bounds + (evidence.total - lower) / evidence.pool_size
        if taught is not None and plan.target != "population":
            known = taught.upper - taught.lower if delivered else taught.upper
            bounds = (known + bounds * self.pool_size) / plan.pool_size
        return np.asarray(bounds * (plan.pool_size / plan.whole_size), dtype=np.float64)

    def _taught(self, thresholds: Keys) -> LearningSplit | None:
        if self.first is None:
            return None
        upper, _, lower = self.first.totals(thresholds)
        return LearningSplit(self.first.asked, upper, lower)


def split_sample(
    plan: Plan, chains: Sequence[Chain], losses: ObservedLosses, slices: Bins | None
) -> tuple[SampleSplit, tuple[Chain, ...]]:
    """The labels of a plan to test on and the chains to test, for `split_fixed_sequence` the one learnt now.

    Raises
    ------
    ValueError
        The rule needs ``slices`` and no chains, or the other way round.
    """
    split = SampleSplit.of(plan, losses)
    if split.first is None:
        if slices is not None:
            raise ValueError(f"the rule '{plan.rule}' learns no chain, so it takes no slices")
        return split, tuple(chains)
    if slices is None or chains:
        raise ValueError(
            f"the rule '{plan.rule}' learns its chain from the first labels: pass the slices of the pool and "
            "no chains"
        )
    if not split.first.asked:
        return split, (_people_alone(plan, slices),)
    return split, (learn_chain(plan, slices, split.first.keys, split.first.upper),)


def _people_alone(plan: Plan, slices: Bins) -> Chain:
    """The chain that nothing could be learnt for."""
    models = plan.sources - 1
    counts = (*(0 for _ in range(models)), int(slices.sizes.sum()))
    return Chain("learnt", (Policy((None,) * models, counts, 0.0, float(plan.costs[-1])),))
