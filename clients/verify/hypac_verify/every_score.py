"""Certificates of the rule `every_score`: chains on each model's own score (docs/statistics.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isclose
from typing import Any

from hypac_verify import words
from hypac_verify.draw import Same
from hypac_verify.first_score import (
    Verdict,
    attained,
    check_result,
    judge,
    limits_of,
    pointwise,
    prefix,
    rounded_up,
    smallest_n,
    together,
)
from hypac_verify.reading import (
    Document,
    Plan,
    Report,
    Row,
    UnusableError,
    compare,
    fraction_text,
    part,
)
from hypac_verify.score_chains import (
    CASCADE,
    DEAR,
    OWN,
    Chain,
    Item,
    chains_of_the_rule,
    fault_of,
    items_of,
    read_chains,
)

Judge = Callable[[Chain, list[int], list[int], Fraction], tuple[Verdict, Fraction]]
"""From K+ and K- of a chain's policies, and a level: the verdict, and what it uses up of that."""


@dataclass
class Test:
    """How the tests along one chain came out; counts of policies that were not reached are None. ``paid``:
    by policy, on how many asked items people (K) and each model beside the deciding one have to be paid.
    """

    chain: Chain
    level: Fraction
    attained: Fraction
    reached: int
    upper: list[int | None]
    lower: list[int | None]
    verdict: Verdict
    paid: list[Counter[int]]


def by_target(plan: Plan, asked: int) -> Judge:
    """The tests of the plan's target; along a nested chain, for a data set, those of all policies at once."""

    def judged(chain: Chain, upper: list[int], lower: list[int], level: Fraction) -> tuple[Verdict, Fraction]:
        if chain.shape == OWN and plan.target == "dataset":
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
    upper, lower, paid = [0] * known, [0] * known, [Counter[int]() for _ in range(known)]
    for j in range(known):
        for item in items:
            source, called = chain.source(j, item, item.usable)
            if source < len(item.keys):
                upper[j] += item.upper[source]
                lower[j] += item.lower[source]
            else:
                paid[j][source] += 1
            for model in called:
                paid[j][model] += 1
    verdict, used = judged(chain, upper, lower, level)
    passed = max(verdict.prefixes.values())
    if chain.shape != OWN and passed < known:
        known = passed + 1
    elif tried and known < size:
        report.fault(f"draw.jsonl: the tests along the chain {chain.name!r} need answers that are not there")
    rest: list[int | None] = [None] * (size - known)
    eligible = [*verdict.eligible[:known], *[False] * (size - known)]
    done = Verdict(eligible, verdict.prefixes, verdict.allowed, verdict.required, verdict.limits)
    return Test(chain, level, used, known, [*upper[:known], *rest], [*lower[:known], *rest], done, paid)


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


def costs_of(test: Test, plan: Plan, items: Sequence[Item], stated: Document, outside: int) -> list[float]:
    """Cost per item of later models and people of the reached policies, from asked and pilot items."""
    chain, prices = test.chain, [float(cost) for cost in plan.costs]
    costs = []
    for j in range(test.reached):
        total, limits, policy = 0.0, chain.policies[j], stated["policies"][j]
        if chain.models[0] and any(limit is not None for limit in limits):
            total += len(items) * prices[chain.models[0]]
        total += sum(number * prices[source] for source, number in sorted(test.paid[j].items(), reverse=True))
        costs.append((total + policy["pilot_paid"]) / max(len(items) + outside, 1))
    return costs


@dataclass(frozen=True)
class Selection:
    """The tests, and the cheapest certified policy: ``index`` of chain ``number``, at ``least`` per item."""

    tests: list[Test]
    number: int
    index: int
    least: float


def select(
    document: Document, plan: Plan, items: Sequence[Item], judged: Judge, where: str, report: Report
) -> Selection:
    """Test the chains of a certificate, or of its ``scores``, compare, and choose.

    Parameters
    ----------
    where
        Where these chains stand, for messages.
    """
    chains, scored = read_chains(document, where), scored_of(document, plan, where)
    lazy, pilot = part(document, "lazy", bool, where), part(document, "pilot", dict, where)
    outside = part(pilot, "items", int, f"{where}, pilot")
    dear = plan.models > 0 and plan.costs[-2] / plan.costs[-1] >= DEAR
    if lazy != dear or pilot.keys() != {"items"} or not 0 <= outside <= plan.pilot_size:
        report.fault(f"{where}: 'lazy' or 'pilot' does not follow from the plan")
    told = [(c.shape, c.models[1:] if c.shape == CASCADE else c.models, c.share) for c in chains]
    if told != chains_of_the_rule(plan, scored):
        report.fault(f"{where}: which chains there are and their shares of alpha are not those of the rule")
        raise StoppedError
    for chain in chains:
        if fault := fault_of(chain, plan.models, scored):
            report.fault(f"{where}, chain {chain.name!r}: {fault}")
            raise StoppedError
    last = plan.models - 1
    reserve = next((n for n, c in enumerate(chains) if n and c.models == (last,)), None) if lazy else None
    stated = document["chains"]
    tried = reserve is None or stated[reserve].get("reached") != 1
    tests = run_tests(plan, chains, items, judged, report, reserve=reserve, tried=tried)
    for number, (test, one) in enumerate(zip(tests, stated, strict=True)):
        compare(
            one,
            _chain_document(test, one, f"{where}, chains[{number}]"),
            f"{where}, chains[{number}]",
            report,
        )
        _check_paid(one, plan, outside, f"{where}, chains[{number}]", report)
    costs = [costs_of(test, plan, items, one, outside) for test, one in zip(tests, stated, strict=True)]
    number, index, least = 0, 0, costs[0][0]
    for candidate, test in enumerate(tests):
        cost, best = min((cost, j) for j, cost in enumerate(costs[candidate]) if test.verdict.eligible[j])
        if best and cost < least:
            number, index, least = candidate, best, cost
    return Selection(tests, number, index, least)


class StoppedError(Exception):
    """What was found leaves nothing to test."""


def scored_of(document: Document, plan: Plan, where: str) -> list[bool]:
    scored = part(document, "scored", list, where)
    if len(scored) != plan.models or not all(type(one) is bool for one in scored) or not scored[0]:
        raise UnusableError(f"{where}: 'scored' does not say of each model whether it has scores")
    return scored  # type: ignore[no-any-return]


def _chain_document(test: Test, stated: Document, where: str) -> Document:
    chain = test.chain
    return {
        "name": chain.name,
        "shape": chain.shape,
        "models": [model + 1 for model in chain.models],
        "share": None if chain.share is None else fraction_text(chain.share),
        "level": fraction_text(test.level),
        "attained": fraction_text(test.attained),
        "reached": test.reached,
        "limits": test.verdict.limits,
        "prefixes": test.verdict.prefixes,
        "policies": [
            {
                "thresholds": policy["thresholds"],
                "observed": test.upper[j],
                "observed_low": test.lower[j],
                "certified": test.verdict.eligible[j],
                "pilot_paid": part(policy, "pilot_paid", (int, float), where),
            }
            for j, policy in enumerate(stated["policies"])
        ],
    }


def _check_paid(stated: Document, plan: Plan, outside: int, where: str, report: Report) -> None:
    """What people alone cost on the pilot is known, and nobody costs more than everybody."""
    paid = [float(policy["pilot_paid"]) for policy in stated["policies"]]
    people, everybody = outside * float(plan.costs[-1]), outside * float(sum(plan.costs[1:]))
    if not isclose(paid[0], people, rel_tol=1e-9) or min(paid) < 0 or max(paid) > everybody * (1 + 1e-9):
        report.fault(f"{where}: no pilot can have cost what stands in 'pilot_paid'")


def check(document: Document, plan: Plan, rows: list[Row], same: Same, report: Report) -> None:
    """All of ``chains`` and ``result`` anew, but for money."""
    scored = scored_of(document, plan, "certificate.json")
    items = items_of(rows, plan.models, scored, same)
    if not all(row.called for row in rows if row.asked):
        report.fault("draw.jsonl: a line does not say which models were asked about its item")
    asked = len(items)
    try:
        found = select(document, plan, items, by_target(plan, asked), "certificate.json", report)
    except StoppedError:
        return
    test, index = found.tests[found.number], found.index
    shown = max(index, 1) if len(test.chain.policies) > 1 else 0
    alone = test.chain.shape == OWN or found.tests[0].chain.shape == OWN
    nested = found.tests[0].chain.shape == OWN and plan.target == "dataset" and alone
    enough = smallest_n(plan, plan.alpha * (Fraction(9, 10) if nested else 1))
    steps = [
        (
            one.chain.name,
            "nan" if one.upper[1] is None else str(one.upper[1]),
            one.verdict.allowed[1] if one.upper[1] is not None else None,
        )
        for one in found.tests
        if len(one.chain.policies) > 1
    ]
    reason = "" if index else words.why_nothing(steps, asked, enough, no_step=not steps)
    limits = test.chain.policies[index]
    result = {
        "certified": index > 0,
        "chain": test.chain.name if index else "",
        "shape": test.chain.shape,
        "models": [model + 1 for model in test.chain.models],
        "policy": index,
        "thresholds": document["chains"][found.number]["policies"][index]["thresholds"],
        "allowed_errors": test.verdict.allowed[shown] if test.upper[shown] is not None else None,
        "required_errors": test.verdict.required_of(index),
        "observed_errors": test.upper[shown],
        "smallest_n": enough,
        "reason": reason,
    }
    bound = pointwise(plan, asked, test.upper[index] or 0, test.lower[index] or 0) if index else None
    check_result(
        document, plan, result, report, bound=bound,
        unanswered=sum(row.asked and row.label is None for row in rows),
        said=words.kept(test.chain.shape, test.chain.models, limits, names_of(document, plan)),
    )  # fmt: skip


def names_of(document: Document, plan: Plan) -> list[str]:
    """Of the models, as the sentence calls them."""
    sources: Any = document["provenance"].get("sources", [])
    if not isinstance(sources, list) or not all(isinstance(one, dict) for one in sources):
        raise UnusableError("certificate.json, provenance.sources: no list of objects")
    if sources and len(sources) != plan.models:
        raise UnusableError("certificate.json, provenance.sources: not one for each model")
    return [str(one.get("name")) for one in sources] or [f"model {k + 1}" for k in range(plan.models)]
