"""Certificates whose thresholds are all on the first model's score: `fixed_sequence` and `multi_chain`.

Targets `dataset` and `pool` by the hypergeometric, `population` by the binomial distribution
(docs/statistics.md, "From bounds to thresholds").
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, exp, inf, log, log1p

from hypac_verify import bets, words
from hypac_verify.draw import Same, loss_of
from hypac_verify.reading import (
    Document,
    Key,
    Plan,
    Report,
    Row,
    UnusableError,
    compare,
    fraction_text,
    object_of,
    part,
    threshold,
)
from hypac_verify.tails import (
    Limits,
    binomial_count,
    binomial_tail,
    largest_count,
    largest_together,
    smallest_wrong,
    tail,
    two_levels,
)

MONEY = ("expected_net_cost", "expected_net_saving", "expected_routing_saving")


@dataclass(frozen=True)
class Verdict:
    """Which policies of a chain are certified, and by which numbers of errors."""

    eligible: list[bool]
    prefixes: dict[str, int]
    allowed: Sequence[int | None]
    required: int
    limits: dict[str, int]

    def required_of(self, index: int) -> int:
        """The least number of errors that policy ``index`` had to show."""
        return self.required if index >= self.prefixes.get("narrow", index + 1) else 0


@dataclass(frozen=True)
class Policy:
    """What was chosen, for the delivered file: `first` takes thresholds on the first model's key, `own` and
    `cascade` as in `every_score`, `slices` a source for each slice of that key.
    """

    shape: str
    models: tuple[int, ...]
    thresholds: tuple[Key | None, ...]
    ends: tuple[Key, ...] = ()
    sources: tuple[int, ...] = ()


def prefix(passes: Sequence[bool]) -> int:
    """How many policies come before the first that fails; the first one is never tested."""
    return next((place for place in range(1, len(passes)) if not passes[place]), len(passes))


def judge(upper: Sequence[float], lower: Sequence[float], limits: Limits) -> Verdict:
    """Test a chain in order ("The data set: two levels"); with s = 0 by one limit."""
    size = len(upper)
    wide = prefix([count <= limits.wide for count in upper])
    if limits.s == 0:
        eligible = [place < wide for place in range(size)]
        return Verdict(eligible, {"all": wide}, [limits.wide] * size, 0, {"errors": limits.wide})
    narrow = prefix([count <= limits.narrow for count in upper])
    return Verdict(
        [(place < wide and lower[place] >= limits.s) or place < narrow for place in range(size)],
        {"wide": wide, "narrow": narrow},
        [limits.wide if count >= limits.s else limits.narrow for count in lower],
        limits.s,
        {"s": limits.s, "c_s": limits.wide, "c_0": limits.narrow},
    )


def by_bets(plan: Plan, losses: Iterable[Sequence[float]], size: int, level: Fraction) -> Verdict:
    """Test a chain of ``size`` policies in order by `betting_upper`, which no number of errors decides;
    ``losses`` of each, in draw order.
    """
    failed = (j for j, one in enumerate(losses) if j and not bets.rejects(one, plan, level))
    length = next(failed, size)
    return Verdict([place < length for place in range(size)], {"all": length}, [None] * size, 0, {})


def limits_of(plan: Plan, asked: int, level: Fraction) -> Limits:
    """The limits of a chain that is tested in order at ``level``."""
    if plan.target == "dataset":
        return two_levels(plan.pool_size, asked, plan.budget, level)
    one = (
        largest_count(plan.pool_size, plan.budget + 1, asked, level)
        if plan.target == "pool"
        else binomial_count(asked, plan.epsilon, level)
    )
    return Limits(0, one, one)


def smallest_n(plan: Plan, level: Fraction) -> int:
    """Least n with which no observed error certifies at ``level``."""
    if plan.bound == bets.BETTING:
        return bets.smallest_n(plan, level)
    if plan.target == "population":
        n = max(1, ceil(log(level) / log1p(-float(plan.epsilon))))
        while n > 1 and exp((n - 1) * log1p(-float(plan.epsilon))) <= level:
            n -= 1
        return n
    if plan.budget >= plan.pool_size:
        return 1
    return least_right(plan.pool_size, plan.budget + 1, level)


def least_right(size: int, wrong: int, level: Fraction) -> int:
    """Least n with P[Hyp(N, T, n) = 0] <= level."""
    chance, limit = 1.0, float(level)
    for n in range(1, size + 1):
        chance *= max(size - wrong - n + 1, 0) / (size - n + 1)
        close = abs(chance - limit) < 1e-9 * limit
        if tail(size, wrong, n, 0) <= level if close else chance < limit:
            return n
    return size


def losses(row: Row, models: int, same: Same) -> tuple[list[float], list[float]]:
    """Loss of whoever finally labels if the item goes to each model, with 1 and 0 where it is unknown."""
    upper, lower = list[float]([0] * models), list[float]([0] * models)
    above: float = 0
    below: float = 0
    for model in range(models - 1, -1, -1):
        answer = row.answers[model]
        if answer is not None:
            above = 1 if row.label is None else loss_of(row, model, same)
            below = 0 if row.label is None else above
        upper[model], lower[model] = above, below
    return upper, lower


class Totals:
    """K+ and K- of policies on the first model's key."""

    def __init__(self, rows: Sequence[Row], models: int, same: Same) -> None:
        ordered = sorted((row for row in rows if row.asked), key=lambda row: (row.u, row.v))
        self._keys = [(row.u, row.v) for row in ordered]
        both = [losses(row, models, same) for row in ordered]
        self._orders, self._upper = [row.order for row in ordered], [upper for upper, _ in both]
        self._sums = [
            [list(accumulate((one[side][model] for one in both), initial=0)) for model in range(models)]
            for side in (0, 1)
        ]

    def in_order(self, thresholds: Sequence[Key | None]) -> list[float]:
        """The losses of a policy on the asked items, in draw order."""
        ends = [0 if limit is None else bisect_right(self._keys, limit) for limit in thresholds]
        found = [
            (order, next((loss for loss, end in zip(upper, ends, strict=True) if place < end), 0))
            for place, (order, upper) in enumerate(zip(self._orders, self._upper, strict=True))
        ]
        return [loss for _, loss in sorted(found)]

    def of(self, thresholds: Sequence[Key | None]) -> tuple[float, float]:
        found: list[float] = [0, 0]
        start = 0
        for model, limit in enumerate(thresholds):
            end = 0 if limit is None else bisect_right(self._keys, limit)
            for side in (0, 1):
                found[side] += self._sums[side][model][end] - self._sums[side][model][start]
            start = end
        return found[0], found[1]


def chain_fault(policies: Sequence[tuple[Key | None, ...]]) -> str:
    """Why these policies on one key are no chain; '' if they are."""
    if any(limit is not None for limit in policies[0]):
        return "it does not start with people alone"
    for limits in policies:
        numbers = [limit or (-inf, 0) for limit in limits]
        if any(first > second for first, second in pairwise(numbers)):
            return "the thresholds of a policy fall from one source to the next"
    return ""


def check(document: Document, plan: Plan, rows: list[Row], same: Same, report: Report) -> None:
    """All of ``chains`` and ``result`` anew, but for what models and people were foretold to cost."""
    chains = part(document, "chains", list, "certificate.json")
    wanted = 3 if plan.rule == "multi_chain" and plan.models > 1 else 1
    if len(chains) != wanted:
        report.fault(f"certificate.json: it has {len(chains)} chains, and its rule tests {wanted}")
    level, totals = plan.alpha / wanted, Totals(rows, plan.models, same)
    asked = sum(row.asked for row in rows)
    verdicts, uppers, every, costs = [], [], [], []
    for number, stated in enumerate(chains):
        where = f"certificate.json, chains[{number}]"
        policies = [object_of(policy, where) for policy in part(stated, "policies", list, where)]
        limits = [
            tuple(threshold(entry, where) for entry in part(policy, "thresholds", list, where))
            for policy in policies
        ]
        if not limits or any(len(entry) != plan.models for entry in limits):
            raise UnusableError(f"{where}: a policy has not one threshold for each model")
        if fault := chain_fault(limits):
            report.fault(f"{where}: {fault}")
        both = [totals.of(entry) for entry in limits]
        upper, lower = [one for one, _ in both], [one for _, one in both]
        verdict = (
            by_bets(plan, (totals.in_order(entry) for entry in limits), len(limits), level)
            if plan.bound == bets.BETTING
            else judge(upper, lower, limits_of(plan, asked, level))
        )
        found = {
            "name": part(stated, "name", str, where),
            "level": fraction_text(level),
            "limits": verdict.limits,
            "prefixes": verdict.prefixes,
            "policies": [
                {
                    "thresholds": policy["thresholds"],
                    "counts": _counts(policy, plan, where),
                    "model_cost": part(policy, "model_cost", (int, float), where),
                    "people_cost": part(policy, "people_cost", (int, float), where),
                    "observed": upper[place],
                    "observed_low": lower[place],
                    "certified": verdict.eligible[place],
                }
                for place, policy in enumerate(policies)
            ],
        }
        compare(stated, found, where, report, figure=plan.bound == bets.BETTING)
        if len({sum(policy["counts"]) for policy in policies}) > 1:
            report.fault(f"{where}: the counts of its policies do not add up to the same number")
        verdicts.append(verdict)
        uppers.append(upper)
        every.append(limits)
        costs.append([float(p["model_cost"]) + float(p["people_cost"]) for p in policies])
    if len({chain["name"] for chain in chains}) < len(chains) or not chains:
        report.fault("certificate.json: two chains have the same name, or there is none")
        return
    number, index, least = 0, 0, costs[0][0]
    for candidate, verdict in enumerate(verdicts):
        cost, best = min((cost, j) for j, cost in enumerate(costs[candidate]) if verdict.eligible[j])
        if cost < least:
            number, index, least = candidate, best, cost
    verdict, size = verdicts[number], len(uppers[number])
    shown = max(index, 1) if size > 1 else 0
    unanswered, low = sum(r.asked and r.label is None for r in rows), totals.of(every[number][index])[1]
    enough = smallest_n(plan, level)
    steps = [
        (chain["name"], words.seen(plan, upper[1]), one.allowed[1])
        for chain, upper, one in zip(chains, uppers, verdicts, strict=True)
        if len(upper) > 1
    ]
    reason = "" if index else words.why_nothing(plan, steps, asked, enough, no_step=not steps)
    bound = None
    if index and plan.bound == bets.BETTING:
        bound = bets.upper(totals.in_order(every[number][index]), plan)
    elif index:
        bound = pointwise(plan, asked, uppers[number][index], low)
    found_result = {
        "certified": index > 0,
        "chain": chains[number]["name"] if index else "",
        "policy": index,
        "thresholds": chains[number]["policies"][index]["thresholds"],
        "allowed_errors": verdict.allowed[shown],
        "required_errors": verdict.required_of(index),
        "observed_errors": uppers[number][shown],
        "smallest_n": enough,
        "reason": reason,
    }
    check_result(
        document, plan, found_result, report, unanswered=unanswered, bound=bound, said=[],
    )  # fmt: skip
    if document["version"] > 1:
        _check_money(document["result"], plan, chains[number]["policies"][index], asked, report)


def _counts(policy: Document, plan: Plan, where: str) -> list[int]:
    counts = part(policy, "counts", list, where)
    if len(counts) != plan.models + 1 or not all(type(count) is int and count >= 0 for count in counts):
        raise UnusableError(f"{where}: 'counts' are no numbers of items, one for each source")
    return counts  # type: ignore[no-any-return]


def check_result(
    document: Document,
    plan: Plan,
    found: Document,
    report: Report,
    *,
    unanswered: int,
    bound: float | None,
    said: list[str],
) -> None:
    """``result`` and its sentence, but for money; ``said`` is what stands at the end of the sentence."""
    stated, version = part(document, "result", dict, "certificate.json"), document["version"]
    money = {name: part(stated, name, (int, float), "certificate.json, result") for name in MONEY}
    told = stated.get("pointwise_upper_bound")
    if version == 1 and unanswered:  # computed in another way then, and nothing rests on it
        bound = told
    settled = "reference" in document
    promised = words.promise(plan, version, settled=settled) if found["certified"] else [
        f"Nothing could be certified, so people label everything: {found['reason']}."
    ]  # fmt: skip
    dearer = money["expected_net_saving"] < 0
    if version == 1:
        dearer = str(stated.get("sentence", "")).endswith(words.DEARER)
    sentence = " ".join([*promised, *words.beside(unanswered, dearer=dearer), *said])
    compare(
        stated,
        {**found, **money, "pointwise_upper_bound": told, "sentence": sentence},
        "certificate.json, result",
        report,
        figure=plan.bound == bets.BETTING,
    )
    compare(told, bound, "certificate.json, result.pointwise_upper_bound", report, figure=True)
    compare(document["draw"]["unanswered"], unanswered, "certificate.json, draw.unanswered", report)


def pointwise(plan: Plan, asked: int, observed: float, observed_low: float) -> float:
    """The upper bound on the chosen policy as if it were the only one looked at: shown, not certified; from
    whole numbers of errors.
    """
    upper, lower = int(observed), int(observed_low)
    if plan.target == "population":
        low, high = 0.0, 1.0
        while high - low > 1e-12:
            middle = (low + high) / 2
            passes = binomial_tail(asked, Fraction(middle).limit_denominator(10**12), upper) > plan.alpha
            low, high = (middle, high) if passes else (low, middle)
        return low if upper < asked else 1.0
    if plan.target == "pool":
        return max(smallest_wrong(plan.pool_size, asked, upper, plan.alpha) - 1, 0) / plan.pool_size
    budget = max(smallest_wrong(plan.pool_size, asked, upper, plan.alpha) - 1 - upper, 0)
    return (budget + upper - lower) / plan.whole_size


def _check_money(result: Document, plan: Plan, policy: Document, asked: int, report: Report) -> None:
    """Expected costs from what the policy was foretold to cost ("Costs and savings")."""
    prices, size = [float(cost) for cost in plan.costs], plan.pool_size
    rest, later = size - asked, sum(prices[1:-1])
    outside = plan.pilot_size if plan.target == "population" else plan.pilot_size * rest / size
    net = (
        size * prices[0]
        + outside * later
        + asked * (later + prices[-1])
        + (rest - outside) * policy["model_cost"]
        + rest * policy["people_cost"]
    )
    routed = sum(count * price for count, price in zip(policy["counts"], prices, strict=True))
    found = (net, 1 - net / (size * prices[-1]), 1 - routed / (max(sum(policy["counts"]), 1) * prices[-1]))
    for name, value in zip(MONEY, found, strict=True):
        compare(result[name], value, f"certificate.json, result.{name}", report, figure=True)


def attained(plan: Plan, asked: int, limits: dict[str, int]) -> Fraction:
    """The level that tests with these limits really have, at the whole numbers that decide them; all of it
    where none does.
    """
    if not limits:
        return Fraction(1)
    if plan.target == "population":
        return binomial_tail(asked, plan.epsilon, limits["errors"]) if limits["errors"] >= 0 else Fraction(0)
    if "errors" in limits:
        pairs = [(0, limits["errors"])]
    else:
        pairs = [(limits["c"], limits["c"])] if "c" in limits else [(limits["s"], limits["c_s"])]
        pairs.append((0, limits["c_0"]))
    wrong = plan.budget + 1
    chances = (tail(plan.pool_size, wrong + more, asked, count) for more, count in pairs if count >= 0)
    return sum(chances, Fraction(0))


def together(plan: Plan, asked: int, level: Fraction) -> tuple[int, int]:
    """c and c_0 of the simultaneous test along a nested chain ("Tests" of `every_score`)."""
    share = Fraction(9, 10) * level
    return (
        largest_together(plan.pool_size, plan.budget, asked, share),
        largest_count(plan.pool_size, plan.budget + 1, asked, level - share),
    )


def rounded_up(value: Fraction, level: Fraction) -> Fraction:
    """To nine digits, and not above the level."""
    return min(level, Fraction(ceil(value * 10**9), 10**9))
