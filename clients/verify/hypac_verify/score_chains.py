"""Chains on each model's own score: what their policies deliver, and which there are (docs/statistics.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import floor, inf

from hypac_verify.draw import Same, loss_of, tie_break
from hypac_verify.first_score import (
    chain_fault,
    limits_of,
)
from hypac_verify.reading import (
    EVERYTHING,
    Document,
    Key,
    Plan,
    Row,
    UnusableError,
    fraction,
    object_of,
    part,
    threshold,
)

OWN, CASCADE, FIRST = "own", "cascade", "first_score"
DEAR = Fraction(1, 20)
LONGEST = {OWN: 201, CASCADE: 403, FIRST: 201}
"""Policies of a chain, by its shape, of the last for each source: the rule makes no more, and each is gone
through once for every asked item.
"""
NOWHERE = (-inf, 0)
Planned = tuple[str, tuple[int, ...], Fraction | None]


@dataclass(frozen=True)
class Item:
    """An asked item: of each model its key, whether its answer is usable and known, and its losses."""

    keys: tuple[Key, ...]
    usable: tuple[bool, ...]
    known: tuple[bool, ...]
    upper: tuple[float, ...]
    lower: tuple[float, ...]


@dataclass(frozen=True)
class Chain:
    """Models are counted from 0; ``share`` of alpha is None for the chain that gets what the others leave."""

    name: str
    shape: str
    models: tuple[int, ...]
    share: Fraction | None
    policies: tuple[tuple[Key | None, ...], ...]

    @cached_property
    def _numbers(self) -> list[tuple[tuple[float, int], ...]]:
        return [tuple(limit or NOWHERE for limit in limits) for limits in self.policies]

    def source(self, index: int, item: Item, usable: Sequence[bool]) -> tuple[int, tuple[int, ...]]:
        """Who labels the item under a policy, K for people, and which models are called beside the deciding
        one.
        """
        people, t = len(item.keys), self._numbers[index]
        k = self.models[0]
        if self.shape == OWN:
            return (k if usable[k] and item.keys[k] <= t[0] else people), ()
        if self.shape == CASCADE:
            if usable[k] and item.keys[k] <= t[0]:
                return k, ()
            if not (item.keys[k] <= t[1] if usable[k] else t[1] == EVERYTHING):
                return people, ()
            last = self.models[1]
            return (last if usable[last] and item.keys[last] <= t[2] else people), (last,)
        nominal = sum(item.keys[0] > limit for limit in t)
        called = []
        while nominal < people and not usable[nominal]:
            called.append(nominal)
            nominal += 1
        called += [nominal] if nominal < people else []
        return nominal, tuple(model for model in called if model)

    def losses(self, index: int, items: Sequence[Item]) -> list[float]:
        """Of whoever labels each item under a policy, with 1 where it is unknown."""
        return [(*item.upper, 0)[self.source(index, item, item.usable)[0]] for item in items]

    def asks_all(self, index: int) -> bool:
        """Whether a later model decides by its own score, so that it is called on every item."""
        return self.models[0] > 0 and any(limit is not None for limit in self.policies[index])

    def paid(self, index: int, items: Sequence[Item], prices: Sequence[float]) -> float:
        """Cost of later models and people on these items under a policy; each model's and people's price."""
        total = len(items) * prices[self.models[0]] if self.asks_all(index) else 0.0
        for item in items:
            source, called = self.source(index, item, item.usable)
            total += sum(prices[model] for model in called)
            total += prices[source] if source == len(item.keys) else 0.0
        return total


def items_of(rows: Sequence[Row], models: int, scored: Sequence[bool], same: Same) -> list[Item]:
    """The asked items, in draw order."""
    items = []
    for row in rows:
        if not row.asked:
            continue
        known = row.called or (True,) * models
        if len(row.own) != models - 1 or len(known) != models:
            raise UnusableError(
                f"draw.jsonl, item {row.item_id!r}: not one score and one call for each model"
            )
        keys: list[Key | None] = [(row.u, row.v), *row.own]
        usable = tuple(
            row.answers[k] is not None and known[k] and not (scored[k] and keys[k] is None)
            for k in range(models)
        )
        wrong = [
            loss_of(row, k, same) if good and row.label is not None else 0 for k, good in enumerate(usable)
        ]
        items.append(
            Item(
                tuple(
                    keys[k] or EVERYTHING if usable[k] and scored[k] else EVERYTHING for k in range(models)
                ),
                usable,
                known,
                tuple(int(good) if row.label is None else wrong[k] for k, good in enumerate(usable)),
                tuple(wrong),
            )
        )
    return items


def item_said(
    name: str, answers: Sequence[tuple[str | None, float | None] | None], scored: Sequence[bool], salt: str
) -> Item:
    """An item from each model's answer and score, with keys and no losses."""
    keys, usable = [EVERYTHING] * len(answers), [False] * len(answers)
    for model, said in enumerate(answers):
        answer, score = said or (None, None)
        usable[model] = answer is not None and not (scored[model] and score is None)
        if usable[model] and scored[model]:
            keys[model] = (score or 0.0, tie_break(salt, name, model + 1))
    none = (0,) * len(answers)
    return Item(tuple(keys), tuple(usable), (True,) * len(answers), none, none)


def chains_of_the_rule(plan: Plan, scored: Sequence[bool]) -> list[Planned]:
    """Which chains there are and their shares of alpha ("Shares of α"); of a cascade its last model alone."""
    last = plan.models - 1
    prices = [cost / plan.costs[-1] for cost in plan.costs[:-1]]
    if last == 0:
        return [(OWN, (0,), None)]
    if not scored[last]:
        return [(FIRST, tuple(range(plan.models)), None)]
    before = [k for k in range(last) if scored[k]]
    if prices[last] >= DEAR:
        cheap = [k for k in before if prices[k] < DEAR][-1:]
        alone = [(OWN, (k,), Fraction(1, 5)) for k in cheap]
        return [(CASCADE, (last,), None), *alone, (OWN, (last,), Fraction(1, 10))]
    limits = limits_of(plan, floor(plan.m * plan.p), Fraction(3, 10) * plan.alpha)
    if max(limits.wide, limits.narrow) < 0:
        return [(CASCADE, (last,), None), (OWN, (last,), Fraction(3, 10))]
    beside = (OWN, (before[-1],), Fraction(3, 10))
    return [(OWN, (last,), None), beside, (CASCADE, (last,), Fraction(1, 5))]


def read_chains(document: Document, where: str) -> list[Chain]:
    """Raises UnusableError."""
    chains = []
    for number, stated in enumerate(part(document, "chains", list, where)):
        at = f"{where}, chains[{number}]"
        models = object_of(stated, at).get("models")
        if not isinstance(models, list) or not models or not all(type(model) is int for model in models):
            raise UnusableError(f"{at}: 'models' are no numbers")
        policies = tuple(
            tuple(threshold(entry, at) for entry in part(object_of(policy, at), "thresholds", list, at))
            for policy in part(stated, "policies", list, at)
        )
        share = None if stated.get("share") is None else fraction(stated["share"], at)
        shape = part(stated, "shape", str, at)
        width = {OWN: 1, CASCADE: 3, FIRST: len(models)}.get(shape)
        if not policies or any(len(policy) != width for policy in policies):
            raise UnusableError(f"{at}: an unknown shape, or a policy of another width")
        chains.append(
            Chain(part(stated, "name", str, at), shape, tuple(m - 1 for m in models), share, policies)
        )
    if not chains:
        raise UnusableError(f"{where}: there are no chains")
    return chains


def fault_of(chain: Chain, models: int, scored: Sequence[bool]) -> str:
    """Why this is no chain for K models; '' if it is one."""
    wide = {OWN: 1, CASCADE: 2, FIRST: models}[chain.shape]
    if len(chain.models) != wide or list(chain.models) != sorted(set(chain.models) & set(range(models))):
        return "it works with models that there are not"
    if not all(scored[k] for k in ((0,) if chain.shape == FIRST else chain.models)):
        return "it is on the score of a model that has none"
    if len(chain.policies) > LONGEST[chain.shape] * (models + 1 if chain.shape == FIRST else 1):
        return "it has more policies than the rule makes"
    numbers = [[limit or NOWHERE for limit in policy] for policy in chain.policies]
    if chain.shape == OWN and any(one[0] > two[0] for one, two in pairwise(numbers)):
        return "a policy takes less than the one before it"
    if chain.shape == CASCADE and any(policy[0] > policy[1] for policy in numbers):
        return "a policy calls the last model below what it delivers without it"
    return chain_fault(chain.policies) if chain.shape == FIRST else chain_fault(chain.policies[:1])
