"""Certificates whose reference is an expert, and their final audits (docs/statistics.md, "Who is right")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from hypac_verify import every_score, words
from hypac_verify.draw import Same, entropy_of, salt_of, whose
from hypac_verify.expert_labels import (
    ALL,
    EXPERT,
    LARGEST_EFFORT,
    MODELS,
    NO_PERSON,
    WHERE,
    Labels,
    Run,
    Slices,
    models_part,
    people_of,
    read_final,
    read_run,
    read_shares,
    read_slices,
)
from hypac_verify.first_score import Policy, Verdict, judge, least_right
from hypac_verify.reading import (
    Document,
    Plan,
    Report,
    Row,
    compare,
    fraction_text,
    part,
)
from hypac_verify.score_chains import Chain, items_of
from hypac_verify.score_tests import by_target


@dataclass(frozen=True)
class Outcome:
    """What was found again: by the final audit and the delivered file it is read."""

    run: Run
    labels: Labels
    chains: list[Slices]
    number: int
    index: int
    policy: Policy


def check(document: Document, plan: Plan, rows: list[Row], same: Same, report: Report) -> Outcome | None:
    """All of ``chains``, ``scores`` and ``result`` anew; None where nothing can be tested.

    Raises
    ------
    TooCloseError
        A chance and its level cannot be told apart by floats.
    """
    run = read_run(document, plan)
    if plan.target != "dataset" or plan.data_set_size is not None or plan.rule != "fixed_sequence":
        report.fault(
            "certificate.json, plan: an expert is the reference of one data set alone, by her own rule"
        )
        return None
    asked = sum(row.asked for row in rows)
    if run.effort(asked) > LARGEST_EFFORT:
        report.unchecked.append("the tests of the chains: the limits of Q would take hours")
        return None
    _check_reference(document, run, asked, report)
    _check_rows(document, run, rows, report)
    chains, labels = read_slices(document, plan), Labels(run, rows, same)
    report.notes.append(
        f"That {run.replaced} items were labelled by others than their annotators, as it says, is on trust."
    )
    scored = "scores" in document
    names = [chain.name for chain in chains] + ([MODELS] if scored else [])
    if names != [ALL, NO_PERSON, MODELS]:
        report.fault("certificate.json: its chains are not the three of the rule")
        return None
    for row, seen in zip(labels.rows, labels.seen, strict=True):
        if row.label is not None and not seen:
            report.fault(f"draw.jsonl, item {row.item_id!r}: a label of the expert, who was not to label it")
    limits, verdicts, uppers, lowers = run.limits(asked, run.level), list[Verdict](), [], []
    weighted = [labels.weighted(place) for place in range(asked)]
    none = (0,) * (plan.models + 3)
    kinds = [
        [row if alike is wanted else none for row, alike in zip(labels.upper, labels.alike, strict=True)]
        for wanted in (False, True)
    ]
    for number, (chain, stated) in enumerate(zip(chains, document["chains"], strict=True)):
        where = f"certificate.json, chains[{number}]"
        upper, lower = chain.totals(labels.keys, weighted), chain.totals(labels.keys, labels.lower)
        unlike, alike = (chain.totals(labels.keys, kind) for kind in kinds)
        verdict = judge(upper, lower, limits)
        found = {
            "name": chain.name,
            "level": fraction_text(run.level),
            "limits": verdict.limits,
            "prefixes": verdict.prefixes,
            "policies": [
                {
                    "move": policy["move"],
                    "unlike": unlike[j],
                    "alike": alike[j],
                    "observed": upper[j],
                    "observed_low": lower[j],
                    "certified": verdict.eligible[j],
                    "cost": part(policy, "cost", float, where),
                }
                for j, policy in enumerate(stated["policies"])
            ],
        }
        compare(stated, found, where, report)
        verdicts.append(verdict)
        uppers.append(upper)
        lowers.append(lower)
    number, index, least = _choice(document, verdicts)
    if run.final is not None:
        parts = [models_part(run, labels, chain).eligible for chain in chains]
        both = [
            replace(verdict, eligible=[a and b for a, b in zip(verdict.eligible, other, strict=True)])
            for verdict, other in zip(verdicts, parts, strict=True)
        ]
        if any(any(verdict.eligible[1:]) for verdict in both):
            number, index, least = _choice(document, both)
    chosen = _Chosen(
        verdicts[number], uppers[number], lowers[number], chains[number].name, index,
        lambda j, place: chains[number].sources(j)[chains[number].slice_of(labels.keys[place])],
        Policy("slices", (), (), chains[number].ends, tuple(chains[number].sources(index))), {},
        _spent(document, plan, chains[number], number, index),
    )  # fmt: skip
    eligible = any(any(verdict.eligible[1:]) for verdict in verdicts)
    if scored:
        other, any_more = _by_scores(document, run, rows, labels, same, least, report)
        chosen, eligible = other or chosen, eligible or any_more
    _check_result(document, run, labels, chosen, chains, verdicts, report, saves=not eligible)
    return Outcome(
        run, labels, chains, number if chosen.policy.shape == "slices" else -1, chosen.index, chosen.policy
    )


@dataclass(frozen=True)
class _Chosen:
    """The chosen policy: the counts of its chain, the source of an asked item under any policy of it, and
    what an item is foretold to cost by it: for later models, for people, and on how many items of the pilot
    the former is paid already.
    """

    verdict: Verdict
    upper: Sequence[float | None]
    lower: Sequence[float | None]
    chain: str
    index: int
    source: Callable[[int, int], int]
    policy: Policy
    told: Document
    spent: tuple[float, float, float]


def _spent(
    document: Document, plan: Plan, chain: Slices, number: int, index: int
) -> tuple[float, float, float]:
    """From what models cost in each slice, and what the policy costs as stated."""
    slices, size, asked = document["slices"], plan.pool_size, document["draw"]["asked"]
    best = float(plan.costs[-2]) if plan.models > 1 else 0.0
    at: list[list[float]] = [*slices["models_cost"], *([cost] * len(chain.ends) for cost in (0.0, best, 0.0))]
    models = sum(
        at[source][place] * count / size
        for place, (source, count) in enumerate(zip(chain.sources(index), slices["sizes"], strict=True))
    )
    whole = document["chains"][number]["policies"][index]["cost"]
    return models, whole - models, plan.pilot_size * (size - asked) / size


def _net_cost(run: Run, labels: Labels, chosen: _Chosen) -> float:
    """Everything the run pays; nothing twice ("Costs and savings")."""
    plan, asked, (models, people, outside) = run.plan, len(labels.rows), chosen.spent
    prices, rest, expert = [float(cost) for cost in plan.costs], plan.pool_size - asked, plan.models + EXPERT
    by_her = sum(seen or chosen.source(chosen.index, i) == expert for i, seen in enumerate(labels.seen))
    return (
        plan.pool_size * prices[0]
        + (outside + asked) * sum(prices[1:-1])
        + asked * prices[-1]
        + float(run.cost) * by_her
        + (rest - outside) * models
        + rest * people
    )


def _choice(document: Document, verdicts: Sequence[Verdict]) -> tuple[int, int, float]:
    """Chain and policy of least stated cost among those that are certified."""
    costs = [[policy["cost"] for policy in chain["policies"]] for chain in document["chains"]]
    number, index, least = 0, 0, costs[0][0]
    for candidate, verdict in enumerate(verdicts):
        cost, best = min((cost, j) for j, cost in enumerate(costs[candidate]) if verdict.eligible[j])
        if cost < least:
            number, index, least = candidate, best, cost
    return number, index, least


def _by_scores(
    document: Document,
    run: Run,
    rows: Sequence[Row],
    labels: Labels,
    same: Same,
    least: float,
    report: Report,
) -> tuple[_Chosen | None, bool]:
    """What `every_score` chose among models and expert, None where another chain costs less; and whether it
    certified anything.
    """
    where = "certificate.json, scores"
    scores = part(document, "scores", dict, "certificate.json")
    plan = run.models_and_expert
    items = items_of(rows, plan.models, every_score.scored_of(scores, plan, where), same)
    judged, asked = by_target(plan, items), len(items)
    if run.share < 1:
        items = [
            replace(
                item, upper=labels.weighted(place)[: plan.models], lower=labels.lower[place][: plan.models]
            )
            for place, item in enumerate(items)
        ]

        def by_weight(
            chain: Chain, upper: list[float], lower: list[float], level: Fraction
        ) -> tuple[Verdict, Fraction]:
            return judge(upper, lower, run.limits(asked, level)), level

        judged = by_weight
    try:
        found = every_score.select(scores, plan, items, judged, where, report)
    except every_score.StoppedError:
        return None, False
    every = [chain["name"] for chain in document["chains"]] + [test.chain.name for test in found.tests]
    if len(set(every)) < len(every) or scores.keys() != {"scored", "lazy", "pilot", "chains"}:
        report.fault(f"{where}: two chains have the same name, or there are other entries")
    certified = any(any(test.verdict.eligible[1:]) for test in found.tests)
    if not found.index or not found.least < least:
        return None, certified
    test, index, expert = found.tests[found.number], found.index, plan.models + EXPERT

    def source(j: int, place: int) -> int:
        by = test.chain.source(j, items[place], items[place].usable)[0]
        return expert if by == plan.models else by

    limits = test.chain.policies[index]
    told = {
        "shape": test.chain.shape,
        "models": [model + 1 for model in test.chain.models],
        "thresholds": [None if limit is None else list(limit) for limit in limits],
    }
    policy, models = Policy(test.chain.shape, test.chain.models, limits), found.models_cost(plan, items)
    outside = scores["pilot"]["items"] or plan.pilot_size * (plan.pool_size - asked) / plan.pool_size
    return _Chosen(
        test.verdict, test.upper, test.lower, test.chain.name, index, source, policy, told,
        (models, found.least - models, outside),
    ), certified  # fmt: skip


def _check_reference(document: Document, run: Run, asked: int, report: Report) -> None:
    """Weight, n_B and roster are those that were fixed."""
    stated, salt = document["reference"], salt_of(entropy_of(document))
    roster = part(stated, "roster", dict, WHERE)
    found = {
        "kind": "expert",
        **({"experts": stated["experts"]} if "experts" in stated else {"expert": stated.get("expert")}),
        "expert_cost": stated["expert_cost"],
        "recheck_share": stated["recheck_share"],
        "rechecked": run.recheck(asked).rechecked,
        "weight": 1 if run.share == 1 else floor(Fraction(17, 10) / run.share + Fraction(1, 2)),
        "replaced": run.replaced,
        "roster": {"salt": salt, "shares": roster.get("shares")},
    }
    if run.final is not None:
        found["final_audit"] = stated["final_audit"]
        read_final(run.final, run.plan)
    compare(stated, found, WHERE, report)


def _check_rows(document: Document, run: Run, rows: Sequence[Row], report: Report) -> None:
    shares = read_shares(document["reference"]["roster"].get("shares"))
    salt = salt_of(entropy_of(document))
    if {name for name, _ in shares} & set(run.names):
        report.fault("certificate.json, reference: the expert annotates herself")
    for row in rows:
        where = f"draw.jsonl, item {row.item_id!r}"
        if row.asked and row.annotator != whose(salt, "annotator", shares, row.item_id):
            report.fault(f"{where}: it is not this annotator's by the roster")
        if row.called or (row.own and "scores" not in document):
            report.fault(f"{where}: scores or calls that no chain looks at")


def _check_result(
    document: Document,
    run: Run,
    labels: Labels,
    chosen: _Chosen,
    chains: Sequence[Slices],
    verdicts: Sequence[Verdict],
    report: Report,
    *,
    saves: bool,
) -> None:
    stated, plan, asked = part(document, "result", dict, "certificate.json"), run.plan, len(labels.rows)
    index, size = chosen.index, len(chosen.upper)
    shown = max(index, 1) if size > 1 else 0
    by = [chosen.source(shown, place) for place in range(asked)]
    unlike, alike = (
        sum(labels.upper[place][by[place]] for place in range(asked) if labels.alike[place] is wanted)
        for wanted in (False, True)
    )
    unlabelled = sum(seen and row.label is None for row, seen in zip(labels.rows, labels.seen, strict=True))
    # Q = 0 is likeliest where all items that differ are in B, as fewer look at these.
    again = least_right(plan.pool_size, plan.budget + 1, run.level)
    enough = min(ceil((again - Fraction(1, 2)) / run.share), plan.pool_size) if run.share < 1 else again
    money = {
        name: part(stated, name, float, "certificate.json, result")
        for name in ("expected_net_cost", "expected_net_saving")
    }
    net = _net_cost(run, labels, chosen)
    for name, value in zip(money, (net, 1 - net / (plan.pool_size * float(run.cost))), strict=True):
        compare(money[name], value, f"certificate.json, result.{name}", report, figure=True)
    reason = "" if index else _why_nothing(asked, enough, chains, verdicts, saves=saves)
    who = words.one_of(run.names)
    said = words.expert_promise(plan, run.names, run.replaced) if index else [
        f"Nothing could be certified, so {who} labels everything: {reason}."
    ]  # fmt: skip
    if unlabelled:
        said.append(
            f"Asked items that {who} could not label: {unlabelled}. Each counted as an error wherever "
            "somebody else "
            "labels it."
        )
    if money["expected_net_saving"] < 0:
        said.append(
            f"{who} alone is cheaper: this run is expected to cost more than having {who} label every item."
        )
    found = {
        "certified": index > 0,
        "chain": chosen.chain if index else "",
        "policy": index,
        **chosen.told,
        "budget": plan.budget,
        "seen": sum(labels.seen),
        "unlabelled": unlabelled,
        "unlike_errors": unlike,
        "alike_errors": alike,
        "observed_errors": chosen.upper[shown],
        "allowed_errors": chosen.verdict.allowed[shown],
        "seen_errors": chosen.lower[shown],
        "required_errors": chosen.verdict.required_of(index),
        "people": stated.get("people"),
        **money,
        "smallest_n": enough,
        "reason": reason,
        "sentence": " ".join(said),
    }
    compare(stated, found, "certificate.json, result", report)
    compare(
        stated.get("people"), people_of(run, labels), "certificate.json, result.people", report, figure=True
    )
    missing = sum(row.person is None for row in labels.rows)
    compare(document["draw"]["unanswered"], missing, "certificate.json, draw.unanswered", report)


def _why_nothing(
    asked: int, least: int, chains: Sequence[Slices], verdicts: Sequence[Verdict], *, saves: bool
) -> str:
    steps = [(chain, verdict) for chain, verdict in zip(chains, verdicts, strict=True) if chain.moves]
    if not steps or not saves:
        return "no step of a chain would save anything at these costs"
    if asked < least:
        few = f"with fewer than {least} not even a step without an error passes"
        return f"{asked} items were asked about, and {few}"
    told = []
    for chain, verdict in steps:
        allowed = max(verdict.limits.get("c_s", -1), verdict.limits.get("errors", -1))
        told.append(
            f"{max(verdict.prefixes.values()) - 1} of the {len(chain.moves)} of '{chain.name}' showed at "
            "most the "
            f"{allowed} errors, each by its weight, that may be seen"
            + (f", and none of these the {verdict.required} that must be" if verdict.required else "")
        )
    return f"of the steps of the chains, tested in order, {'; '.join(told)}"
