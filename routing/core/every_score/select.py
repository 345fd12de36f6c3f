"""The tests of `every_score` and its choice: shares of alpha, calls that are still missing, least cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, isclose, isinf
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from routing.core.arrays import Bools, Floats, Ints
from routing.core.bounds import Evidence
from routing.core.every_score.build import ScoreChains, likely_errors
from routing.core.every_score.chain import OWN, ScoreChain
from routing.core.every_score.items import ScoredItems
from routing.core.every_score.losses import AskedItems
from routing.core.every_score.reserve import Reserve
from routing.core.keys import Thresholds
from routing.core.plan import Plan
from routing.core.rules.fixed_sequence import Verdict, cheapest

T = TypeVar("T", bound=np.generic)

TOGETHER = 0.025
"""Part of the answers to the asked items that are named at once, where some are missing: a server that thinks
for long is asked about several together, for a few calls that may turn out not to be needed."""
DECIMALS = 10**9
"""Probabilities that tests attain are rounded up to so many parts, the same on every machine."""
ROUNDING = 1 + 1e-9
"""By what factor a sum of costs may miss its largest value."""


@dataclass(frozen=True)
class ScoreTest:
    """How the tests along one chain came out.

    Attributes
    ----------
    chain : ScoreChain
    level : Fraction
    upper, lower : (J,)
        K+ and K-; NaN beyond the policies that were reached.
    reached : int
        Policies that could be looked at: all, or those up to the first that failed.
    verdict
        Which policies are certified; of length J.
    attained : Fraction
        What the tests use up of alpha.
    called : (n, K)
        The asked items that each model had to be called on.
    """

    chain: ScoreChain
    level: Fraction
    upper: Floats
    lower: Floats
    reached: int
    verdict: Verdict
    attained: Fraction
    called: Bools


@dataclass(frozen=True)
class MissingCalls:
    """Which answers have to be there before the tests can go on.

    Attributes
    ----------
    calls : pairs of a model and rows (c,)
        The place of the model, 0 .. K - 1, and the asked items to call it on, places among the n, in draw
        order: those of this policy, and of the next ones as far as they are few.
    chain, policy
        What needs them: the name of a chain and the place of its first policy that does.
    """

    calls: tuple[tuple[int, Ints], ...]
    chain: str
    policy: int


class AnswersMissingError(ValueError):
    """The tests need answers that are not there; ``missing`` says which."""

    def __init__(self, missing: MissingCalls) -> None:
        (model, rows), *_others = missing.calls
        super().__init__(
            f"chain {missing.chain!r}, policy {missing.policy}: model {model + 1} has not been asked "
            f"about {len(rows)} of the asked items; call it on them first"
        )
        self.missing = missing


@dataclass(frozen=True)
class ScoreSelection:
    """The tests of one analysis and its choice: policy ``index`` of chain ``number``.

    Attributes
    ----------
    tests : one per chain
        In the order of the chains.
    costs : one (J,) per chain
        Cost per item of later models and people, estimated from asked and pilot items; infinite where a
        policy was not reached.
    number, index : int
        Of the chosen chain and policy; (0, 0) for people alone.
    """

    tests: tuple[ScoreTest, ...]
    costs: tuple[Floats, ...]
    number: int
    index: int

    @property
    def chain(self) -> ScoreChain:
        return self.tests[self.number].chain

    @property
    def thresholds(self) -> Thresholds:
        return self.chain.policy(self.index)

    @property
    def called(self) -> Bools:
        """The asked items (n, K) that each model had to be called on, for any of the tests."""
        return np.asarray(np.any([test.called for test in self.tests], axis=0), dtype=np.bool_)


@dataclass(frozen=True)
class PilotCosts:
    """What the policies cost on the pilot items that people were not asked about.

    Attributes
    ----------
    items : int
    paid : one (J,) per chain
        Sum over these items of what later models and people cost.
    """

    items: int
    paid: tuple[Floats, ...]

    @classmethod
    def of(cls, plan: Plan, chains: ScoreChains, items: ScoredItems) -> PilotCosts:
        """From what the models said about these items."""
        prices = [float(cost) for cost in plan.costs]
        return cls(items.size, tuple(chain.paid(items, prices) for chain in chains.chains))

    def fault(self, plan: Plan) -> str:
        """Why no pilot of ``plan`` can have cost this; '' if one can."""
        people, all_of_them = (self.items * float(cost) for cost in (plan.costs[-1], sum(plan.costs[1:])))
        if self.items > plan.pilot:
            return f"the pilot has {plan.pilot} items, and {self.items} were not asked about"
        if not all(isclose(paid[0], people) and paid.max() <= all_of_them * ROUNDING for paid in self.paid):
            return "the costs on the pilot are not those of people alone, or above those of everybody"
        return ""


class Judge(Protocol):
    """How a chain is tested: which of its policies are certified at a level, and what that uses up of it."""

    def __call__(
        self, chain: ScoreChain, *, evidence: Evidence, lower: Floats, level: Fraction
    ) -> tuple[Verdict, Fraction]: ...


def judge_by_target(plan: Plan) -> Judge:
    """The tests of the plan's target with its bound; along a nested chain those of all policies at once."""
    target, bound, limit = plan.target_rule(), plan.bound_rule(), plan.risk_limit

    def judge(
        chain: ScoreChain, *, evidence: Evidence, lower: Floats, level: Fraction
    ) -> tuple[Verdict, Fraction]:
        test = target.judge_nested if chain.shape == OWN else target.judge
        verdict = test(bound=bound, evidence=evidence, lower=lower, epsilon=limit, level=level)
        attained = target.attained(bound=bound, evidence=evidence, epsilon=limit, verdict=verdict)
        return verdict, _rounded_up(attained, level)

    return judge


def select_every_score(
    plan: Plan,
    chains: ScoreChains,
    asked: AskedItems,
    pilot: PilotCosts | None = None,
    *,
    judge: Judge | None = None,
) -> ScoreSelection:
    """Test all chains and choose the certified policy of least estimated cost.

    Parameters
    ----------
    pilot
        The cost of a policy is estimated from asked and pilot items; without them from the asked ones alone.
        Any choice among certified policies is valid.
    judge
        In place of the tests of the plan's target.

    Raises
    ------
    AnswersMissingError
        A model has to be called on asked items first: its ``missing`` says on which.
    ValueError
        A chain does not fit the plan.
    """
    for chain in chains.chains:
        if fault := chain.fault(plan.sources - 1):
            raise ValueError(f"chain {chain.name!r}: {fault}")
    judge = judge or judge_by_target(plan)
    tests = _tests(plan, chains, asked, judge)
    costs = [_estimated_costs(plan, test, asked, pilot, number) for number, test in enumerate(tests)]
    if (kept := chains.reserve) is not None:
        tests[kept] = _with_reserve(plan, tests, costs, kept, asked, judge)
        costs[kept] = _estimated_costs(plan, tests[kept], asked, pilot, kept)
    number, index, least = 0, 0, float(costs[0][0])
    for candidate, (test, cost) in enumerate(zip(tests, costs, strict=True)):
        best = cheapest(test.verdict.eligible, cost)
        if best and cost[best] < least:
            number, index, least = candidate, best, float(cost[best])
    return ScoreSelection(tuple(tests), tuple(costs), number, index)


def _tests(plan: Plan, chains: ScoreChains, asked: AskedItems, judge: Judge) -> list[ScoreTest]:
    """Each chain tested at its part of alpha.

    The main chain gets what the others' whole numbers leave of their shares.  Where its own one leaves
    something in turn, the others get that, the one in reserve first: where few errors are allowed, half of
    alpha often allows as many.  All of it follows from sizes, before an error is looked at.
    """
    alpha = left = plan.exact_alpha
    tests: list[ScoreTest] = []
    for number, chain in enumerate(chains.chains[1:], start=1):
        level = (chain.share or Fraction(0)) * alpha
        tests.append(_test(plan, chain, level, asked, judge, tried=number != chains.reserve))
        left -= tests[-1].attained
    tests.insert(0, _test(plan, chains.main, left, asked, judge))
    left -= tests[0].attained
    others = range(1, len(tests))
    for number in sorted(others, key=lambda number: number != chains.reserve):
        if left <= 0:
            break
        before = tests[number]
        level, tried = before.attained + left, number != chains.reserve
        tests[number] = _test(plan, before.chain, level, asked, judge, tried=tried)
        left -= tests[number].attained - before.attained
    return tests


def missing_calls(plan: Plan, chains: ScoreChains, asked: AskedItems) -> MissingCalls | None:
    """The calls that `select_every_score` cannot do without, given the answers so far; None where it can.

    A run asks this after its labels are locked, calls the model on these items, and asks again: with lazy
    calls the last model so runs only on what the policies up to the first failure send to it.
    """
    try:
        select_every_score(plan, chains, asked)
    except AnswersMissingError as error:
        return error.missing
    return None


def _with_reserve(
    plan: Plan,
    tests: Sequence[ScoreTest],
    costs: Sequence[Floats],
    kept: int,
    asked: AskedItems,
    judge: Judge,
) -> ScoreTest:
    """The test of chain ``kept``, if it is worth its calls; else what was called to find that out."""
    chain, level, model = tests[kept].chain, tests[kept].level, tests[kept].chain.models[0]
    every = zip(tests, costs, strict=True)
    least = min(float(cost[test.verdict.eligible].min()) for test, cost in every)
    most = likely_errors(plan, asked.asked, level) * plan.loss_function().bound
    reserve = Reserve(plan, chain, most, least)
    called = np.any([test.called[:, model] for test in tests], axis=0)
    sample = reserve.sample(asked, called)
    missing = np.flatnonzero(sample & ~asked.known[:, model])
    if len(missing):
        raise AnswersMissingError(MissingCalls(((model, missing),), chain.name, 1))
    if reserve.pays(asked, called | sample):
        return _test(plan, chain, level, asked, judge)
    marks = tests[kept].called.copy()
    marks[:, model] = sample
    return replace(tests[kept], called=marks)


def _test(
    plan: Plan, chain: ScoreChain, level: Fraction, asked: AskedItems, judge: Judge, *, tried: bool = True
) -> ScoreTest:
    """The tests along ``chain``, as far as they go before answers are missing, if these are still needed;
    where it is not ``tried``, its level alone.
    """
    first = asked.missing(chain)
    known = min(int(needed.min(initial=chain.size)) for needed in first.values()) if tried else 1
    evidence, lower = asked.evidence(plan, chain.head(known))
    verdict, attained = judge(chain, evidence=evidence, lower=lower, level=level)
    passed = max(verdict.prefixes.values())
    if chain.shape != OWN and passed < known:
        known = passed + 1  # the first that failed was reached
    elif tried and known < chain.size:
        calls = _together(first, known, chain.size)
        raise AnswersMissingError(MissingCalls(calls, chain.name, known))
    return ScoreTest(
        chain=chain,
        level=level,
        upper=_padded(evidence.total[:known], chain.size, np.nan),
        lower=_padded(lower[:known], chain.size, np.nan),
        reached=known,
        verdict=replace(
            verdict,
            eligible=_padded(verdict.eligible[:known], chain.size, False),
            allowed=_padded(verdict.allowed[:known], chain.size, np.nan),
        ),
        attained=attained,
        called=asked.called(chain, known) if tried else np.zeros_like(asked.known),
    )


def _together(first: Mapping[int, Ints], known: int, policies: int) -> tuple[tuple[int, Ints], ...]:
    """The calls that policy ``known`` needs, and those of the next ones, about at most `TOGETHER`.

    ``first`` (n,) is by model the first policy that needs each item's answer; ``policies`` where none does.
    """
    missing = {model: needed for model, needed in first.items() if np.any(needed < policies)}
    calls = np.concatenate(list(missing.values()))
    most = min(ceil(TOGETHER * len(calls)), len(calls) - 1)
    too_far = max(min(int(np.partition(calls, most)[most]), policies), known + 1)
    rows = {model: np.flatnonzero(needed < too_far) for model, needed in missing.items()}
    return tuple((model, found) for model, found in rows.items() if len(found))


def _padded(values: NDArray[T], size: int, rest: object) -> NDArray[T]:
    """``values`` (j,) and ``rest`` up to ``size``."""
    padded = np.full(size, rest, dtype=values.dtype)
    padded[: len(values)] = values
    return padded


def _rounded_up(attained: float, level: Fraction) -> Fraction:
    """A probability as a fraction that is not below it, and not above the level that it was tested at."""
    return level if isinf(attained) else min(level, Fraction(ceil(attained * DECIMALS), DECIMALS))


def _estimated_costs(
    plan: Plan, test: ScoreTest, asked: AskedItems, pilot: PilotCosts | None, number: int
) -> Floats:
    """Cost per item of later models and people of each policy (J,) of chain ``number``."""
    total = test.chain.head(test.reached).paid(asked.items, [float(cost) for cost in plan.costs])
    items = asked.asked
    if pilot is not None:
        total, items = total + pilot.paid[number][: test.reached], items + pilot.items
    return _padded(total / max(items, 1), test.chain.size, np.inf)
