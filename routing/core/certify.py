"""From a labelled calibration set to certified thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from routing.core.bins import Bins
from routing.core.bounds.hypergeometric import Hypergeometric
from routing.core.calibration import Calibration, ObservedLosses, observed_losses
from routing.core.calibration_rows import CalibrationRow
from routing.core.chain import Chain, Policy
from routing.core.compare import Comparison, compare
from routing.core.keys import Thresholds, pack_thresholds
from routing.core.messages import Message, declare, gettext_noop, say, sentences
from routing.core.outlook import smallest_n
from routing.core.plan import Plan, validate
from routing.core.region import Region, feasible_region
from routing.core.rules.fixed_sequence import Verdict, cheapest
from routing.core.sample_split import ChainTest, SampleSplit, split_sample
from routing.core.savings import Expected, expected
from routing.core.targets import Guarantee

__all__ = [
    "Calibration",
    "CalibrationRow",
    "Certification",
    "ChainTest",
    "Comparison",
    "Region",
    "RiskPoint",
    "Selection",
    "certify",
    "certify_losses",
    "compare",
    "feasible_region",
    "risk_path",
    "select",
    "select_in",
]


DEARER = "people_only_is_cheaper"
"""Code of what a certificate says at its end where the run costs more than it saves."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What an analysis under any rule comes to.

    Attributes
    ----------
    asked, unanswered : int
        n, and how many of these nobody could label.
    allowed_errors, required_errors, observed_errors
        Most errors with which the chosen policy would still have passed, the least it had to show, and what
        it showed (K+); the first is None for a loss that is no count.  Without a certificate: of the safest
        step of its chain.
    pointwise_upper_bound : float or None
        Upper bound on the target of the chosen policy as if it were the only one looked at: shown, not
        certified.
    expected
        Expected cost and savings of the outcome.
    smallest_n : int
        Least number of calibration labels with which anything at all could be certified.
    why_nothing : message or None
        Why nothing is certified.
    said : messages
        What is certified, or what is not and why, in plain words.
    """

    asked: int
    unanswered: int
    allowed_errors: int | None
    required_errors: int
    observed_errors: float
    pointwise_upper_bound: float | None
    expected: Expected
    smallest_n: int
    why_nothing: Message | None
    said: tuple[Message, ...]

    @property
    def reason(self) -> str:
        """Why nothing is certified, in English, or ''."""
        return "" if self.why_nothing is None else str(self.why_nothing)

    @property
    def sentence(self) -> str:
        """What is certified or not, in English: what the certificate holds."""
        return sentences(self.said)


@dataclass(frozen=True, kw_only=True)
class Certification(Outcome):
    """The outcome of one analysis along chains of thresholds on the first model's score.

    Attributes
    ----------
    certified : bool
        Whether thresholds beyond people alone are certified.
    thresholds : S - 1 keys or None
        All None where nothing is certified: people label everything.
    chain, index
        Name of the chosen chain ('' where nothing is certified) and place of the policy in it.
    prefix_lengths : mapping
        Per chain, the length of each rejected prefix, people alone included.
    tests : one per chain
    chains : the chains that were tested, with `split_fixed_sequence` the one that was learnt
    """

    certified: bool
    thresholds: Thresholds
    chain: str
    index: int
    prefix_lengths: Mapping[str, Mapping[str, int]]
    tests: tuple[ChainTest, ...]
    chains: tuple[Chain, ...]


@dataclass(frozen=True)
class Selection:
    """The tests of one analysis and its choice: policy ``index`` of chain ``number``, 0 for people alone."""

    split: SampleSplit
    chains: tuple[Chain, ...]
    tests: tuple[ChainTest, ...]
    number: int
    index: int

    @property
    def policy(self) -> Policy:
        return self.chains[self.number].policies[self.index]


@dataclass(frozen=True)
class RiskPoint:
    """One policy for a figure: place in its chain, estimate of the pool's mean loss, pointwise bound."""

    index: int
    expected_cost: float
    observed_errors: float
    estimate: float
    upper_bound: float
    certified: bool


def certify(
    plan: Plan, chains: Sequence[Chain], calibration: Calibration, *, slices: Bins | None = None
) -> Certification:
    """Test the chains on the labelled calibration set and choose the cheapest certified policy.

    Every asked row must have been answered, or tried by people without success (label None), before this is
    called.

    Parameters
    ----------
    chains
        From `build_chains`; empty for the rule `split_fixed_sequence`.
    slices
        Only for that rule, which learns its chain along them from the first asked items: the pool (target
        "population": the items outside the calibration set), from `cut_slices` before the draw was labelled.

    Raises
    ------
    PlanError, CalibrationError, ValueError
        The plan cannot certify, the rows do not fit it, or a chain does not.
    """
    validate(plan)
    calibration.check(plan)
    losses = observed_losses(calibration, loss=plan.loss_function(), sources=plan.sources)
    return certify_losses(plan, chains, losses, unanswered=calibration.unanswered, slices=slices)


def certify_losses(
    plan: Plan,
    chains: Sequence[Chain],
    losses: ObservedLosses,
    *,
    unanswered: int = 0,
    slices: Bins | None = None,
) -> Certification:
    """`certify` on losses that are already computed; the plan is taken as valid."""
    selection = select(plan, chains, losses, slices=slices)
    split, chains, tests, index = selection.split, selection.chains, selection.tests, selection.index
    policy, test = selection.policy, tests[selection.number]
    outlay = expected(plan, policy, asked=split.asked)
    least = smallest_n(plan, chains=len(chains))
    shown = max(index, 1) if len(test.upper) > 1 else 0
    allowed = test.verdict.allowed[shown]
    why_nothing = None if index else why_nothing_of(plan, tests, split.asked, least)
    chosen = pack_thresholds([policy.thresholds])
    return Certification(
        certified=index > 0,
        thresholds=policy.thresholds,
        chain=test.name if index else "",
        index=index,
        asked=split.asked,
        unanswered=unanswered,
        allowed_errors=None if np.isnan(allowed) else int(allowed),
        required_errors=required_of(test.verdict, index),
        observed_errors=float(test.upper[shown]),
        pointwise_upper_bound=float(split.upper_bounds(chosen)[0]) if index else None,
        prefix_lengths={test.name: dict(test.verdict.prefixes) for test in tests},
        tests=tests,
        chains=chains,
        expected=outlay,
        smallest_n=least,
        why_nothing=why_nothing,
        said=outcome_messages(plan, why_nothing, unanswered, outlay),
    )


def outcome_messages(
    plan: Plan, why_nothing: Message | None, unanswered: int, outlay: Expected
) -> tuple[Message, ...]:
    """What is certified, or what is not and why, in plain words."""
    outcome = (
        plan.target_rule().promises(guarantee(plan))
        if why_nothing is None
        else [say("nothing", reason=why_nothing)]
    )
    return (*outcome, *_blanks(unanswered), *_dearer(outlay))


def select(
    plan: Plan, chains: Sequence[Chain], losses: ObservedLosses, *, slices: Bins | None = None
) -> Selection:
    """The tests along the chains and the choice among what they certify, without words or further figures."""
    return select_in(*split_sample(plan, chains, losses, slices))


def select_in(split: SampleSplit, chains: tuple[Chain, ...]) -> Selection:
    """`select` on labels that are split already, its chain learnt where the rule learns one."""
    _check_chains(split.plan, chains)
    level = split.plan.exact_alpha / len(chains)
    tests = tuple(split.test(chain, level) for chain in chains)
    number, index = _choose(chains, tests)
    return Selection(split, chains, tests, number, index)


def guarantee(plan: Plan) -> Guarantee:
    """What the words of a certificate of ``plan`` depend on."""
    loss = plan.loss_function()
    return Guarantee(
        epsilon=plan.epsilon,
        alpha=plan.alpha,
        spent=plan.alpha_spent,
        binary=loss.binary,
        loss=loss.name,
        through_pool=plan.bound_rule().name != Hypergeometric.name,
        whole_size=plan.data_set_size,
        labelled_before=plan.whole_size - plan.pool_size,
    )


def _check_chains(plan: Plan, chains: Sequence[Chain]) -> None:
    if not chains:
        raise ValueError("there is no chain to test; build the chains first")
    if len({chain.name for chain in chains}) != len(chains):
        raise ValueError("two chains have the same name")
    for chain in chains:
        fault = chain.fault(plan.sources)
        if fault:
            raise ValueError(f"chain {chain.name!r}: {fault}")


def _choose(chains: Sequence[Chain], tests: Sequence[ChainTest]) -> tuple[int, int]:
    """Chain and place of the certified policy of least expected cost; (0, 0) where that is people alone.

    The net cost of a run grows with the expected cost of its policy, the rest being the same for all; so this
    is also the least net cost.  Any choice among certified policies is valid.
    """
    number, index, least = 0, 0, float(chains[0].expected_costs[0])
    for candidate, (chain, test) in enumerate(zip(chains, tests, strict=True)):
        cost = chain.expected_costs
        best = cheapest(test.verdict.eligible, cost)
        if cost[best] < least:
            number, index, least = candidate, best, float(cost[best])
    return number, index


def required_of(verdict: Verdict, index: int) -> int:
    """Errors the policy had to show: those of the wide test, unless the narrow one admits it anyway."""
    return verdict.required if index >= verdict.prefixes.get("narrow", index + 1) else 0


def why_nothing_of(plan: Plan, tests: Sequence[ChainTest], asked: int, least: int) -> Message:
    """Why none of ``tests`` certifies anything, where ``least`` labels are the least that could."""
    if asked < least:
        return say("nothing.too_few", asked=asked, least=least)
    if all(len(test.upper) < 2 for test in tests):
        return say("nothing.no_step")
    binary = plan.loss_function().binary
    steps = tuple(_safest_step(test, binary) for test in tests if len(test.upper) > 1)
    return say("nothing.errors" if binary else "nothing.loss", steps=steps, least=least)


def _safest_step(test: ChainTest, binary: bool) -> Message:
    total = f"{test.upper[1]:g}"
    seen = say("nothing.seen_errors", errors=total) if binary else say("nothing.seen_loss", loss=total)
    if test.taught is not None:
        seen = say("nothing.seen_taught", seen=seen, more=f"{test.taught.upper[1]:g}")
    allowed = test.verdict.allowed[1]
    if not np.isnan(allowed):
        seen = say("nothing.seen_limit", seen=seen, allowed=int(allowed))
    return say("nothing.step", chain=test.name, seen=seen)


def _blanks(unanswered: int) -> list[Message]:
    if not unanswered:
        return []
    return [say("blank_item") if unanswered == 1 else say("blank_items", blanks=unanswered)]


def _dearer(outlay: Expected) -> list[Message]:
    return [] if outlay.net_saving >= 0 else [say(DEARER)]


def risk_path(plan: Plan, chain: Chain, calibration: Calibration, *, chains: int = 1) -> list[RiskPoint]:
    """Observed risk and pointwise upper bound of every policy of a chain, for a figure.

    ``chains`` is how many the run tests, each at alpha / chains.  Under `split_fixed_sequence` pass the chain
    of the certification; the items that taught it are left out.
    """
    losses = observed_losses(calibration, loss=plan.loss_function(), sources=plan.sources)
    split = SampleSplit.of(plan, losses)
    thresholds = pack_thresholds(policy.thresholds for policy in chain.policies)
    evidence = split.evidence(thresholds)
    estimates = evidence.mean if plan.constant_p else evidence.weighted_mean
    bounds = split.upper_bounds(thresholds)
    verdict = split.test(chain, plan.exact_alpha / chains).verdict
    return [
        RiskPoint(index, policy.expected_cost, float(total), float(estimate), float(bound), bool(good))
        for index, (policy, total, estimate, bound, good) in enumerate(
            zip(chain.policies, evidence.total, estimates, bounds, verdict.eligible, strict=True)
        )
    ]


SAYS = {
    "nothing": gettext_noop("Nothing could be certified, so people label everything: %(reason)s."),
    "nothing.too_few": gettext_noop(
        "people were asked about %(asked)s items, and at least %(least)s are needed to certify anything"
    ),
    "nothing.no_step": gettext_noop("no step of a chain would save anything at these costs"),
    "nothing.errors": gettext_noop(
        "%(steps)s (with no error at all, %(least)s labels would have been enough)"
    ),
    "nothing.loss": gettext_noop("%(steps)s (with no loss at all, %(least)s labels would have been enough)"),
    "nothing.step": gettext_noop("the safest step of the chain '%(chain)s' already showed %(seen)s"),
    "nothing.seen_errors": gettext_noop("%(errors)s errors"),
    "nothing.seen_loss": gettext_noop("a total loss of %(loss)s"),
    "nothing.seen_taught": gettext_noop("%(seen)s, and %(more)s more among those that taught it"),
    "nothing.seen_limit": gettext_noop("%(seen)s, and at most %(allowed)s would have passed"),
    "blank_item": gettext_noop(
        "Nobody could label 1 item of the calibration set; each counted as an error wherever a model "
        "labels it, and is delivered blank where people should."
    ),
    "blank_items": gettext_noop(
        "Nobody could label %(blanks)s items of the calibration set; each counted as an error wherever a "
        "model labels it, and is delivered blank where people should."
    ),
    "people_only_is_cheaper": gettext_noop(
        "People only is cheaper: this run is expected to cost more than having people label every item."
    ),
}
declare(SAYS)
