"""Certificates of the rule `every_score`: chains on each model's own score (docs/statistics.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isclose
from typing import Any

from hypac_verify import words
from hypac_verify.bets import BETTING, upper
from hypac_verify.draw import Same
from hypac_verify.first_score import (
    MONEY,
    check_result,
    pointwise,
    smallest_n,
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
    Item,
    chains_of_the_rule,
    fault_of,
    item_said,
    items_of,
    read_chains,
)
from hypac_verify.score_tests import Judge, Test, by_target, run_tests

MOST_SOURCES = 10**8
SAMPLE = 60
"""Asked items on which the model of a chain in reserve is called first."""


def costs_of(test: Test, plan: Plan, items: Sequence[Item], stated: Document, outside: int) -> list[float]:
    """Cost per item of later models and people of the reached policies, from asked and pilot items."""
    chain, prices = test.chain, [float(cost) for cost in plan.costs]
    costs = []
    for j in range(test.reached):
        total = len(items) * prices[chain.models[0]] if chain.asks_all(j) else 0.0
        total += sum(number * prices[source] for source, number in sorted(test.paid[j].items(), reverse=True))
        costs.append((total + stated["policies"][j]["pilot_paid"]) / max(len(items) + outside, 1))
    return costs


@dataclass(frozen=True)
class Selection:
    """The tests, and the cheapest certified policy: ``index`` of chain ``number``, at ``least`` per item.
    ``reserve`` is the chain that was not tried, if one was not.
    """

    tests: list[Test]
    number: int
    index: int
    least: float
    reserve: int | None

    def models_cost(self, plan: Plan, items: Sequence[Item]) -> float:
        """Of the chosen policy, cost per item of later models."""
        prices = [*map(float, plan.costs[:-1]), 0.0]
        return self.tests[self.number].chain.paid(self.index, items, prices) / max(len(items), 1)

    def expected_costs(self, plan: Plan, items: Sequence[Item], outside: int) -> list[float]:
        """Everything the run pays; of a chain in reserve that was not tried nobody sees whether its model was
        called on some asked items first, so both costs.
        """
        if plan.measured:  # every answer was, so that every model was called
            everywhere = {k: sum(item.known[k] for item in items) for k in range(1, plan.models)}
            return [self._net(plan, items, outside, everywhere)]
        called = {model: set[int]() for model in range(1, plan.models)}
        for test in self.tests:
            for model in called:
                called[model] |= test.called.get(model, set())
        tried = [{model: len(places) for model, places in called.items()}]
        if self.reserve is not None and (model := self.tests[self.reserve].chain.models[0]):
            more = min(max(SAMPLE, tried[0][model]), len(items))
            tried.append({**tried[0], model: more})
        return [self._net(plan, items, outside, counts) for counts in tried]

    def _net(self, plan: Plan, items: Sequence[Item], outside: int, counts: Mapping[int, int]) -> float:
        """The same where each later model was called on so many asked items."""
        asked, prices = len(items), [float(cost) for cost in plan.costs]
        both, rest = plan.pilot_size - outside, plan.pool_size - asked
        return (
            plan.pool_size * prices[0]
            + outside * sum(prices[1:-1])
            + sum((n + both * (1 - n / max(asked, 1))) * prices[model] for model, n in counts.items())
            + asked * prices[-1]
            + rest * self.least
            - outside * self.models_cost(plan, items)
        )


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
            figure=plan.bound == BETTING,
        )
        _check_paid(one, plan, outside, f"{where}, chains[{number}]", report)
    costs = [costs_of(test, plan, items, one, outside) for test, one in zip(tests, stated, strict=True)]
    number, index, least = 0, 0, costs[0][0]
    for candidate, test in enumerate(tests):
        cost, best = min((cost, j) for j, cost in enumerate(costs[candidate]) if test.verdict.eligible[j])
        if best and cost < least:
            number, index, least = candidate, best, cost
    return Selection(tests, number, index, least, None if tried else reserve)


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


def check_pilot(
    document: Document,
    plan: Plan,
    pilot: Mapping[str, Sequence[tuple[str | None, float | None] | None]],
    salt: str,
    report: Report,
) -> None:
    """``pilot_paid`` from what models said of the pilot items that nobody was asked about; ``document`` is a
    certificate, or its ``scores``.
    """
    scored, prices = scored_of(document, plan, "certificate.json"), [float(cost) for cost in plan.costs]
    if any(said is None for answers in pilot.values() for said in answers):
        report.unchecked.append("what policies cost on the pilot: a model answered only later")
        return
    policies = sum(len(chain["policies"]) for chain in document["chains"])
    if len(pilot) * policies > MOST_SOURCES:
        report.unchecked.append("what policies cost on the pilot: it would take hours")
        return
    items = [item_said(name, answers, scored, salt) for name, answers in pilot.items()]
    faults = document["pilot"]["items"] != len(items)
    for chain, stated in zip(read_chains(document, "certificate.json"), document["chains"], strict=True):
        for j, policy in enumerate(stated["policies"]):
            paid = chain.paid(j, items, prices)
            faults += not isclose(policy["pilot_paid"], paid, rel_tol=1e-9, abs_tol=1e-12)
    if faults:
        report.fault("certificate.json: 'pilot_paid' is not what the policies cost on the pilot")
    else:
        report.pilot_costs = True
        report.checked.append(
            f"what each policy costs on the {len(items)} of {plan.pilot_size} items of the pilot that people "
            "were not asked about"
        )


def check(document: Document, plan: Plan, rows: list[Row], same: Same, report: Report) -> None:
    """All of ``chains`` and ``result`` anew."""
    scored = scored_of(document, plan, "certificate.json")
    items = items_of(rows, plan.models, scored, same)
    if not all(row.called for row in rows if row.asked):
        report.fault("draw.jsonl: a line does not say which models were asked about its item")
    asked = len(items)
    try:
        found = select(document, plan, items, by_target(plan, items), "certificate.json", report)
    except StoppedError:
        return
    test, index = found.tests[found.number], found.index
    shown = max(index, 1) if len(test.chain.policies) > 1 else 0
    alone = test.chain.shape == OWN or found.tests[0].chain.shape == OWN
    exact = plan.target == "dataset" and plan.bound != BETTING
    nested = found.tests[0].chain.shape == OWN and exact and alone
    enough = smallest_n(plan, plan.alpha * (Fraction(9, 10) if nested else 1))
    steps = [
        (
            one.chain.name,
            words.seen(plan, one.upper[1]),
            one.verdict.allowed[1] if one.upper[1] is not None else None,
        )
        for one in found.tests
        if len(one.chain.policies) > 1
    ]
    reason = "" if index else words.why_nothing(plan, steps, asked, enough, no_step=not steps)
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
    bound = None
    if index and plan.bound == BETTING:
        bound = upper(test.chain.losses(index, items), plan)
    elif index:
        bound = pointwise(plan, asked, test.upper[index] or 0, test.lower[index] or 0)
    check_result(
        document, plan, result, report, bound=bound,
        unanswered=sum(row.asked and row.label is None for row in rows),
        said=words.kept(test.chain.shape, test.chain.models, limits, names_of(document, plan)),
    )  # fmt: skip
    _check_money(document, plan, items, found, report)


def _check_money(
    document: Document, plan: Plan, items: Sequence[Item], found: Selection, report: Report
) -> None:
    """Expected costs from what the policies cost on the pilot as stated, and on the asked items."""
    stated, test, people = document["result"], found.tests[found.number], float(plan.costs[-1])
    told = stated["expected_net_cost"]
    nets = found.expected_costs(plan, items, document["pilot"]["items"])
    net = min(nets, key=lambda net: abs(net - told))
    routed = sum(
        float(plan.costs[test.chain.source(found.index, item, item.usable)[0]]) for item in items
    ) / max(len(items), 1)
    values = (net, 1 - net / (plan.pool_size * people), 1 - routed / people)
    for name, value in zip(MONEY, values, strict=True):
        compare(stated[name], value, f"certificate.json, result.{name}", report, figure=True)


def names_of(document: Document, plan: Plan) -> list[str]:
    """Of the models, as the sentence calls them."""
    sources: Any = document["provenance"].get("sources", [])
    if not isinstance(sources, list) or not all(isinstance(one, dict) for one in sources):
        raise UnusableError("certificate.json, provenance.sources: no list of objects")
    if sources and len(sources) != plan.models:
        raise UnusableError("certificate.json, provenance.sources: not one for each model")
    return [str(one.get("name")) for one in sources] or [f"model {k + 1}" for k in range(plan.models)]
