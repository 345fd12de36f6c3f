"""Certificates whose reference is an expert, and their final audits (docs/statistics.md, "Who is right")."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from math import floor

from hypac_verify import every_score, words
from hypac_verify.draw import Same, drawn, entropy_of, salt_of, whose
from hypac_verify.first_score import Policy, Verdict, judge, least_right
from hypac_verify.reading import (
    Document,
    Key,
    Plan,
    Report,
    Row,
    UnusableError,
    compare,
    decimal,
    fraction,
    fraction_text,
    part,
    threshold,
)
from hypac_verify.tails import (
    Limits,
    Recheck,
    largest_count,
    last_true,
    smallest_wrong,
    tail,
    weighted_levels,
)

WHERE = "certificate.json, reference"
ALL, NO_PERSON, MODELS = "all sources", "without people alone", "models and expert"
CHAINS = 3
PERSON, CHECKED, EXPERT = range(3)
"""Places of the sources after the models."""
LARGEST_EFFORT = 10**8
"""Of `Run.effort`: some minutes."""


@dataclass(frozen=True)
class Run:
    """What the certificate says about its reference."""

    plan: Plan
    cost: Fraction
    share: Fraction
    weight: int
    replaced: int
    names: tuple[str, ...]
    final: Document | None

    def recheck(self, asked: int) -> Recheck:
        """The test for n asked items."""
        again = floor(self.share * asked + Fraction(1, 2))
        return Recheck(
            self.plan.pool_size, asked, again, self.weight if again < asked else 1, self.plan.budget
        )

    def limits(self, asked: int, level: Fraction) -> Limits:
        return weighted_levels(self.recheck(asked), level)

    @property
    def level(self) -> Fraction:
        """Of each chain."""
        return self.plan.alpha / CHAINS

    def effort(self, asked: int) -> int:
        """About how many steps the limits take; 0 where every asked item is seen."""
        test = self.recheck(asked)
        if test.rechecked >= asked:
            return 0
        most = min(asked, -(-asked * (test.budget + 1) // test.size))
        return (test.budget + most + 2) * (most + 1) ** 2 * (most // test.weight + 1)


def read_run(document: Document, plan: Plan) -> Run:
    """Raises UnusableError."""
    stated = part(document, "reference", dict, "certificate.json")
    share, weight, replaced = (
        decimal(stated, "recheck_share", WHERE),
        part(stated, "weight", int, WHERE),
        part(stated, "replaced", int, WHERE),
    )
    if not 0 < share <= 1 or not 1 <= weight <= 10**6 or not 0 <= replaced <= plan.pool_size - plan.budget:
        raise UnusableError(f"{WHERE}: a number is outside its range")
    if "experts" in stated:
        names = tuple(name for name, _ in read_shares(stated["experts"]))
    else:
        names = (part(stated, "expert", str, WHERE),)
    final = part(stated, "final_audit", dict, WHERE) if "final_audit" in stated else None
    return Run(plan, decimal(stated, "expert_cost", WHERE), share, weight, replaced, names, final)


def read_shares(stated: object) -> list[tuple[str, Fraction]]:
    """Shares of the work by name, in the order of the names."""
    if not isinstance(stated, dict) or not 1 <= len(stated) <= 1000:
        raise UnusableError(f"{WHERE}: shares of the work are missing, or of over 1,000 people")
    shares = sorted((name, fraction(share, WHERE)) for name, share in stated.items())
    if min(share for _, share in shares) <= 0 or sum(share for _, share in shares) != 1:
        raise UnusableError(f"{WHERE}: the shares of the work are not above 0 and together 1")
    return shares


class Labels:
    """What models, annotators and expert say about the n asked items, in draw order."""

    def __init__(self, run: Run, rows: Sequence[Row], same: Same) -> None:
        self.rows = [row for row in rows if row.asked]
        self.run, models = run, run.plan.models
        again = run.recheck(len(self.rows)).rechecked
        self.keys = [(row.u, row.v) for row in self.rows]
        self.alike = [
            all(a is not None and row.person is not None and same(row.person, a) for a in row.answers)
            for row in self.rows
        ]
        self.seen = [not alike or place < again for place, alike in enumerate(self.alike)]
        self.again = [place < again for place in range(len(self.rows))]
        # Whether annotator and dearest model differ, so that the expert labels what goes to `checked`.
        self.looks = [
            row.person is None or row.answers[-1] is None or not same(row.answers[-1], row.person)
            for row in self.rows
        ]
        none = (0,) * (models + 3)
        self.upper = [
            self._losses(row, place, same, 1) if self.seen[place] else none
            for place, row in enumerate(self.rows)
        ]
        self.lower = [
            self._losses(row, place, same, 0) if self.seen[place] else none
            for place, row in enumerate(self.rows)
        ]

    def _losses(self, row: Row, place: int, same: Same, unknown: int) -> tuple[int, ...]:
        """Of every source, with ``unknown`` where a label is missing ("Sources and losses")."""

        def of(answer: str | None) -> int:
            return unknown if row.label is None else int(not same(row.label, answer or ""))

        losses, below = list[int](), 0
        for answer in reversed(row.answers):
            below = of(answer) if answer is not None else below
            losses.insert(0, below)
        human = unknown if row.person is None else of(row.person)
        return (*losses, human, 0 if row.person is not None and self.looks[place] else human, 0)

    def weighted(self, place: int) -> tuple[int, ...]:
        """Upper losses as they add up to Q+."""
        weight = self.run.weight if self.alike[place] else 1
        return tuple(weight * loss for loss in self.upper[place])


@dataclass(frozen=True)
class Slices:
    """A chain over slices of the first model's key: each move sends one slice to another source."""

    name: str
    ends: tuple[Key, ...]
    moves: tuple[tuple[int, int], ...]
    models: int

    def slice_of(self, key: Key) -> int:
        return min(bisect_left(self.ends, key), len(self.ends) - 1)

    def sources(self, index: int) -> list[int]:
        """The source of each slice under one policy."""
        found = [self.models + EXPERT] * len(self.ends)
        for where, source in self.moves[:index]:
            found[where] = source
        return found

    def totals(self, keys: Sequence[Key], losses: Sequence[Sequence[int]]) -> list[int]:
        """Summed losses of each policy."""
        table = [[0] * (self.models + 3) for _ in self.ends]
        for key, row in zip(keys, losses, strict=True):
            if any(row):
                here = table[self.slice_of(key)]
                for source, loss in enumerate(row):
                    here[source] += loss
        return list(self._along(table))

    def _along(self, table: list[list[int]]) -> Iterator[int]:
        place = [self.models + EXPERT] * len(self.ends)
        total = sum(row[-1] for row in table)
        yield total
        for where, source in self.moves:
            total += table[where][source] - table[where][place[where]]
            place[where] = source
            yield total


def read_slices(document: Document, plan: Plan) -> list[Slices]:
    """The chains over slices. Raises UnusableError."""
    where = "certificate.json, slices"
    slices = part(document, "slices", dict, "certificate.json")
    ends = [threshold(end, where) for end in part(slices, "ends", list, where)]
    sizes, rho = part(slices, "sizes", list, where), part(slices, "rho", list, where)
    keys = [end for end in ends if end is not None]
    rising = all(one < two for one, two in pairwise(keys))
    if not keys or not len(keys) == len(ends) == len(sizes) == len(rho) or not rising:
        raise UnusableError(f"{where}: their ends, sizes and ranks do not fit")
    if not all(type(size) is int and size > 0 for size in sizes) or sum(sizes) != plan.pool_size:
        raise UnusableError(f"{where}: they do not hold as many items as the pool")
    if not all(type(rank) is float and 0 < rank < 1 for rank in rho):
        raise UnusableError(f"{where}: a rank is not between 0 and 1")
    _refuse_costs(slices, plan.models, len(keys), where)
    found = []
    for number, stated in enumerate(part(document, "chains", list, "certificate.json")):
        at = f"certificate.json, chains[{number}]"
        moves = [
            part({"": policy}, "", dict, at).get("move", 0)
            for policy in part(part({"": stated}, "", dict, at), "policies", list, at)
        ]
        pairs = [move for move in moves[1:] if isinstance(move, list) and len(move) == 2]
        if not moves or moves[0] is not None or len(pairs) < len(moves) - 1:
            raise UnusableError(f"{at}: its moves cannot be read")
        for slice_, source in pairs:
            if type(slice_) is not int or type(source) is not int:
                raise UnusableError(f"{at}: its moves cannot be read")
            if not 0 <= slice_ < len(keys) or not 0 <= source < plan.models + 3:
                raise UnusableError(f"{at}: it moves a slice or a source that there is not")
        found.append(
            Slices(part(stated, "name", str, at), tuple(keys), tuple((w, s) for w, s in pairs), plan.models)
        )
    return found


def _refuse_costs(slices: Document, models: int, width: int, where: str) -> None:
    if slices.keys() != {"ends", "sizes", "rho", "models_cost", "people_cost"}:
        raise UnusableError(f"{where}: entries are missing, or there are others")
    for name in ("models_cost", "people_cost"):
        table = part(slices, name, list, where)
        if len(table) != models or not all(isinstance(row, list) and len(row) == width for row in table):
            raise UnusableError(f"{where}: {name!r} is no cost of each model in each slice")
        if not all(type(cost) is float and 0 <= cost <= 1e40 for row in table for cost in row):
            raise UnusableError(f"{where}: {name!r} is no cost of each model in each slice")


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
    """All of ``chains``, ``scores`` and ``result`` anew, but for money; None where nothing can be tested.

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
    """The chosen policy: the counts of its chain, and the source of an asked item under any policy of it."""

    verdict: Verdict
    upper: Sequence[int | None]
    lower: Sequence[int | None]
    chain: str
    index: int
    source: Callable[[int, int], int]
    policy: Policy
    told: Document


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
    third = Context(prec=28, rounding=ROUND_FLOOR).divide(Decimal(run.plan.words["alpha"]), Decimal(CHAINS))
    plan = replace(
        run.plan, costs=(*run.plan.costs[:-1], run.cost), alpha=Fraction(third), rule="every_score"
    )
    items = every_score.items_of(rows, plan.models, every_score.scored_of(scores, plan, where), same)
    judged, asked = every_score.by_target(plan, len(items)), len(items)
    if run.share < 1:
        items = [
            replace(
                item, upper=labels.weighted(place)[: plan.models], lower=labels.lower[place][: plan.models]
            )
            for place, item in enumerate(items)
        ]

        def by_weight(
            chain: every_score.Chain, upper: list[int], lower: list[int], level: Fraction
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
        by = test.chain.source(test.chain.policies[j], items[place], items[place].usable)[0]
        return expert if by == plan.models else by

    limits = test.chain.policies[index]
    told = {
        "shape": test.chain.shape,
        "models": [model + 1 for model in test.chain.models],
        "thresholds": [None if limit is None else list(limit) for limit in limits],
    }
    policy = Policy(test.chain.shape, test.chain.models, limits)
    return _Chosen(
        test.verdict, test.upper, test.lower, test.chain.name, index, source, policy, told
    ), certified


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
        _read_final(run.final, run.plan)
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
    enough = last_true(
        lambda n: tail(plan.pool_size, plan.budget + 1, floor(run.share * n + Fraction(1, 2)), 0) > run.level,
        0, plan.pool_size,
    ) + 1 if run.share < 1 else least_right(plan.pool_size, plan.budget + 1, run.level)  # fmt: skip
    money = {
        name: part(stated, name, float, "certificate.json, result")
        for name in ("expected_net_cost", "expected_net_saving")
    }
    saving = 1 - money["expected_net_cost"] / (plan.pool_size * float(run.cost))
    compare(
        money["expected_net_saving"],
        saving,
        "certificate.json, result.expected_net_saving",
        report,
        figure=True,
    )
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
        stated.get("people"), _people(run, labels), "certificate.json, result.people", report, figure=True
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


def _people(run: Run, labels: Labels) -> Document:
    """People's error on the pool, with its exact interval ("People's error")."""
    models, n = run.plan.models, len(labels.rows)
    upper, lower = ([row[models + PERSON] for row in losses] for losses in (labels.upper, labels.lower))
    wrong, shared = sum(lower), sum(row[models + CHECKED] for row in labels.lower)
    if all(labels.seen):
        parts = [(n, wrong, sum(upper), Fraction(1, 40))]
    else:
        again = [a and b for a, b in zip(labels.again, labels.alike, strict=True)]
        parts = [
            (n, _where(lower, labels.alike, False), _where(upper, labels.alike, False), Fraction(1, 80)),
            (sum(labels.again), _where(lower, again, True), _where(upper, again, True), Fraction(1, 80)),
        ]
    size = run.plan.pool_size
    ends = [_interval(size, *one) for one in parts]
    return {
        "wrong": wrong,
        "asked": n,
        "estimate": sum(seen / count for count, seen, _, _ in parts)
        if all(one[0] for one in parts)
        else None,
        "low": sum(low for low, _ in ends),
        "high": min(1.0, sum(high for _, high in ends)),
        "caught": wrong - shared,
        "shared": shared,
    }


def _where(values: Sequence[int], marks: Sequence[bool], wanted: bool) -> int:
    return sum(value for value, mark in zip(values, marks, strict=True) if mark is wanted)


def _interval(size: int, asked: int, least: int, most: int, level: Fraction) -> tuple[float, float]:
    """All shares T / N with both tails of what was seen above the level; all of them where nothing was."""
    if not asked:
        return 0.0, 1.0
    high = smallest_wrong(size, asked, most, level) - 1
    low = size - (smallest_wrong(size, asked, asked - least, level) - 1)
    return max(low, least) / size, min(high, size - (asked - most)) / size


def models_part(run: Run, labels: Labels, chain: Slices) -> Verdict:
    """Of which policies models alone leave at most E_M wrong labels, at alpha_1 / 3 ("The final audit")."""
    sample = _read_final(run.final or {}, run.plan)
    test, models = run.recheck(len(labels.rows)), run.plan.models
    level = sample[2] / CHAINS
    wrong = floor(sample[1] * run.plan.pool_size) + 1
    exact = test.rechecked >= test.asked
    limit = largest_count(test.size, wrong, test.asked, level) if exact else test.limit(wrong, level)
    losses = [(*labels.weighted(place)[:models], 0, 0, 0) for place in range(test.asked)]
    upper = chain.totals(labels.keys, losses)
    return judge(upper, upper, Limits(0, limit, limit))


def _read_final(stated: Document, plan: Plan) -> tuple[int, Fraction, Fraction, Fraction]:
    """n_F, the models' share, alpha_1 and alpha_2 of a final audit. Raises UnusableError."""
    where = "the plan of the final audit"
    names = ("models_error", "models_alpha", "people_alpha")
    error, one, two = (decimal(stated, name, where) for name in names)
    sample = part(stated, "sample", int, where)
    if (
        not 1 <= sample <= 10**8
        or min(one, two) <= 0
        or one + two > plan.alpha
        or floor(error * plan.pool_size) > plan.budget
    ):
        raise UnusableError(f"{where}: a number is outside its range")
    return sample, error, one, two


AUDIT = "final_audit.json"


def check_final(audit: Document, certificate: str, outcome: Outcome, same: Same, report: Report) -> None:
    """The certificate of a final audit: its draw, both parts of its test, and its words.

    Parameters
    ----------
    certificate
        SHA-256 of the run's own.
    """
    run, plan = outcome.run, outcome.run.plan
    if run.final is None or outcome.number < 0:
        report.fault(f"{AUDIT}: the run's certificate names no final audit, or asks no annotator")
        return
    sample, error, _, two = _read_final(run.final, plan)
    frame = part(audit, "frame", dict, AUDIT)
    size = part(frame, "size", int, f"{AUDIT}, frame")
    rows = [part({"": row}, "", dict, AUDIT) for row in part(audit, "rows", list, AUDIT)]
    if not 1 <= size <= plan.pool_size:
        raise UnusableError(f"{AUDIT}, frame: its size is none")
    for row in rows:
        if row.keys() != {"place", "item_id", "label", "expert"} or type(row["place"]) is not int:
            raise UnusableError(f"{AUDIT}: a row is no drawn label")
        part(row, "item_id", str, AUDIT)
        part(row, "label", str, AUDIT)
        part(row, "expert", (str, type(None)), AUDIT)
    places, _ = drawn(entropy_of({"draw": frame}), size, min(sample, size), Fraction(1))
    if [row["place"] for row in rows] != places or len({row["item_id"] for row in rows}) < len(rows):
        report.fault(f"{AUDIT}: its rows are not those that the entropy draws, each item once")
    unanswered = sum(row["expert"] is None for row in rows)
    differ = sum(row["expert"] is not None and not same(row["expert"], row["label"]) for row in rows)
    budget = floor(error * plan.pool_size)
    chain = outcome.chains[outcome.number]
    verdict = models_part(run, outcome.labels, chain)
    losses = [(*outcome.labels.weighted(p)[: plan.models], 0, 0, 0) for p in range(len(outcome.labels.rows))]
    observed = chain.totals(outcome.labels.keys, losses)[outcome.index]
    left, most = plan.budget - budget, len(rows) - unanswered + 1
    allowed = last_true(lambda d: tail(size, left + d + 1, len(rows), d + unanswered) <= two, -1, most)
    holds = (verdict.eligible[outcome.index], differ <= allowed)
    numbers = {"observed": observed, "allowed": verdict.allowed[outcome.index], "budget": budget}
    people = {
        "budget": left,
        "sampled": len(rows),
        "differ": differ,
        "unanswered": unanswered,
        "allowed": allowed,
    }
    if audit.get("kind") != "final_audit" or type(audit.get("version")) is not int:
        raise UnusableError(f"{AUDIT}: no certificate of a final audit")
    found = {
        "kind": "final_audit",
        "version": 1,
        "certificate": certificate,
        "plan": {**run.final, "epsilon": plan.words["epsilon"], "pool_size": plan.pool_size},
        "frame": {"size": size, "hash": part(frame, "hash", str, AUDIT), "entropy": frame["entropy"]},
        "rows": rows,
        "result": {
            "certified": all(holds),
            "budget": plan.budget,
            "models": {**numbers, "holds": holds[0]},
            "people": {**people, "holds": holds[1]},
            "sentence": " ".join(_said(run, people, budget, size, holds)),
        },
    }
    before = len(report.faults)
    compare(audit, found, AUDIT, report)
    if len(report.faults) == before:
        report.checked.append(
            f"the final audit: its draw of {len(rows)}, both parts of its test, and its sentence"
        )
        report.notes.append(f"Final audit: {found['result']['sentence']}")  # type: ignore[index]


def _said(run: Run, people: Document, budget: int, size: int, holds: tuple[bool, bool]) -> list[str]:
    plan, who, final = run.plan, words.one_of(run.names), run.final or {}
    numbers = words.odds(plan)
    seen = (
        f"Of {size:,} delivered labels by people that {who} had not given, {people['sampled']:,} were drawn: "
        f"{people['differ']} differ from hers, and {people['unanswered']} she could not tell, which count "
        "as wrong."
    )
    if all(holds):
        alpha = Decimal(final["models_alpha"]) + Decimal(final["people_alpha"])
        return [
            f"At most {numbers['share']} of the delivered labels of the run's {plan.pool_size:,} items "
            "differ from "
            f"what {who} would give, blind, with probability at least {words.percent(1 - alpha)} over the "
            "random "
            f"draws (alpha = {words.plain(alpha)}).",
            "This holds however often people err on the items that were routed to them: labels of theirs "
            "were drawn "
            "once all of them were given.",
            seen,
        ]
    said = [
        f"That at most {numbers['share']} of the labels are wrong could not be certified without the "
        "assumption "
        "that people label later items as they labelled the calibration set.",
        seen,
    ]
    if not holds[0]:
        said.append(f"The calibration set does not show that models get at most {budget:,} items wrong.")
    if not holds[1]:
        said.append(
            f"The sample does not show that people leave at most {plan.budget - budget:,} items wrong: at "
            "most "
            f"{max(people['allowed'], 0)} labels might have differed."
        )
    return [*said, "The run's own certificate stands as it is."]
