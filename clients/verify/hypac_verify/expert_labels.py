"""Where an expert is the reference: what was fixed, what everybody said, and chains over slices."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from math import floor

from hypac_verify.draw import Same
from hypac_verify.first_score import Verdict, judge
from hypac_verify.reading import (
    Document,
    Key,
    Plan,
    Row,
    UnusableError,
    decimal,
    fraction,
    object_of,
    part,
    threshold,
)
from hypac_verify.tails import Limits, Recheck, largest_count, smallest_wrong, weighted_levels

WHERE = "certificate.json, reference"
ALL, NO_PERSON, MODELS = "all sources", "without people alone", "models and expert"
CHAINS = 3
PERSON, CHECKED, EXPERT = range(3)
"""Places of the sources after the models."""
LARGEST_EFFORT = 5 * 10**9
"""Of `Run.effort`: half an hour or so."""


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

    @property
    def models_and_expert(self) -> Plan:
        """The plan of the chains on every score, in which the expert stands where people stand."""
        third = Context(prec=28, rounding=ROUND_FLOOR).divide(
            Decimal(self.plan.words["alpha"]), Decimal(CHAINS)
        )
        costs = (*self.plan.costs[:-1], self.cost)
        return replace(self.plan, costs=costs, alpha=Fraction(third), rule="every_score")

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
            object_of(policy, at).get("move", 0)
            for policy in part(object_of(stated, at), "policies", list, at)
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


def models_part(run: Run, labels: Labels, chain: Slices) -> Verdict:
    """Of which policies models alone leave at most E_M wrong labels, at alpha_1 / 3 ("The final audit")."""
    sample = read_final(run.final or {}, run.plan)
    test, models = run.recheck(len(labels.rows)), run.plan.models
    level = sample[2] / CHAINS
    wrong = floor(sample[1] * run.plan.pool_size) + 1
    exact = test.rechecked >= test.asked
    limit = largest_count(test.size, wrong, test.asked, level) if exact else test.limit(wrong, level)
    losses = [(*labels.weighted(place)[:models], 0, 0, 0) for place in range(test.asked)]
    upper = chain.totals(labels.keys, losses)
    return judge(upper, upper, Limits(0, limit, limit))


def read_final(stated: Document, plan: Plan) -> tuple[int, Fraction, Fraction, Fraction]:
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


def people_of(run: Run, labels: Labels) -> Document:
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
