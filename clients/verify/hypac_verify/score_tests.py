"""The tests along chains on each model's own score (docs/statistics.md, "every_score")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hypac_verify.bets import BETTING
from hypac_verify.first_score import (
    Verdict,
    attained,
    by_bets,
    judge,
    limits_of,
    prefix,
    rounded_up,
    together,
)
from hypac_verify.reading import Plan, Report
from hypac_verify.score_chains import OWN, Chain, Item

Judge = Callable[[Chain, list[float], list[float], Fraction], tuple[Verdict, Fraction]]
"""From K+ and K- of a chain's policies, and a level: the verdict, and what it uses up of that."""


@dataclass
class Test:
    """How the tests along one chain came out; counts of policies that were not reached are None. ``paid``:
    by policy, on how many asked items people (K) and each model beside the deciding one have to be paid;
    ``called``: the asked items that each model was called on for that.
    """

    chain: Chain
    level: Fraction
    attained: Fraction
    reached: int
    upper: list[float | None]
    lower: list[float | None]
    verdict: Verdict
    paid: list[Counter[int]]
    called: dict[int, set[int]]


def by_target(plan: Plan, items: Sequence[Item]) -> Judge:
    """The tests of the plan's target; along a nested chain, for a data set, those of all policies at once."""
    asked = len(items)

    def judged(
        chain: Chain, upper: list[float], lower: list[float], level: Fraction
    ) -> tuple[Verdict, Fraction]:
        if plan.bound == BETTING:
            verdict = by_bets(plan, (chain.losses(j, items) for j in range(len(upper))), len(upper), level)
        elif chain.shape == OWN and plan.target == "dataset":
            c, narrow = together(plan, asked, level)
            at_once = [not j or (upper[j] <= c and upper[j] == lower[j]) for j in range(len(upper))]
            length = prefix([count <= narrow for count in upper])
            verdict = Verdict(
                [good or j < length for j, good in enumerate(at_once)],
                {"together": sum(at_once), "narrow": length},
                [c if upper[j] == lower[j] else narrow for j in range(len(upper))],
                0,
                {"c": c, "c_0": narrow},
            )
        else:
            verdict = judge(upper, lower, limits_of(plan, asked, level))
        return verdict, rounded_up(attained(plan, asked, verdict.limits), level)

    return judged


def _needed(chain: Chain, items: Sequence[Item]) -> int:
    """The first policy for which an answer is needed that is not there; J where none is."""
    first = len(chain.policies)
    for item in items:
        if not item.known[chain.models[0]]:
            return min(1, first)
        if all(item.known[model] for model in chain.models):
            continue
        usable = [good or not there for good, there in zip(item.usable, item.known, strict=True)]
        for j in range(first):
            if any(not item.known[model] for model in chain.source(j, item, usable)[1]):
                first = j
                break
    return first


def run_test(
    chain: Chain, level: Fraction, items: Sequence[Item], judged: Judge, report: Report, *, tried: bool
) -> Test:
    """The tests along a chain, as far as answers are there; where it is not ``tried``, its level alone."""
    size = len(chain.policies)
    known = min(_needed(chain, items), size) if tried else 1
    upper, lower = list[float]([0] * known), list[float]([0] * known)
    paid = [Counter[int]() for _ in range(known)]
    first: list[dict[int, int]] = [{} for _ in (items[0].keys if items else ())]
    for j in range(known):
        for place, item in enumerate(items):
            source, needed = chain.source(j, item, item.usable)
            if source < len(item.keys):
                upper[j] += item.upper[source]
                lower[j] += item.lower[source]
            else:
                paid[j][source] += 1
            for model in needed:
                paid[j][model] += 1
                first[model].setdefault(place, j)
    verdict, used = judged(chain, upper, lower, level)
    passed = max(verdict.prefixes.values())
    if chain.shape != OWN and passed < known:
        known = passed + 1
    elif tried and known < size:
        report.fault(f"draw.jsonl: the tests along the chain {chain.name!r} need answers that are not there")
    called = {model: {place for place, j in since.items() if j < known} for model, since in enumerate(first)}
    called[chain.models[0]] = set(range(len(items)))
    rest: list[float | None] = [None] * (size - known)
    eligible = [*verdict.eligible[:known], *[False] * (size - known)]
    done = Verdict(eligible, verdict.prefixes, verdict.allowed, verdict.required, verdict.limits)
    found = [*upper[:known], *rest], [*lower[:known], *rest]
    return Test(chain, level, used, known, *found, done, paid, called if tried else {})


def run_tests(
    plan: Plan,
    chains: Sequence[Chain],
    items: Sequence[Item],
    judged: Judge,
    report: Report,
    *,
    reserve: int | None,
    tried: bool,
) -> list[Test]:
    """Each chain at its part of alpha: the main one gets what the others leave, and what it leaves goes back
    to them, the one in reserve first. Whether that one is ``tried`` may depend on anything: its
    share is spent.
    """
    left, tests = plan.alpha, list[Test]()

    def test(number: int, level: Fraction) -> Test:
        return run_test(chains[number], level, items, judged, report, tried=tried or number != reserve)

    for number in range(1, len(chains)):
        tests.append(test(number, (chains[number].share or Fraction(0)) * plan.alpha))
        left -= tests[-1].attained
    tests.insert(0, test(0, left))
    left -= tests[0].attained
    for number in sorted(range(1, len(tests)), key=lambda number: number != reserve):
        if left <= 0:
            break
        before = tests[number]
        tests[number] = test(number, before.attained + left)
        left -= tests[number].attained - before.attained
    return tests
