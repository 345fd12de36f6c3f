"""The sentences of certificates, so that none can say more than was tested (docs/statistics.md, "The
certificate").
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from math import ceil, log10

from hypac_verify.bets import BETTING
from hypac_verify.reading import EVERYTHING, LARGEST_TIE_BREAK, Key, Plan

PERSON = "the label that a person gave or would have given"
ODDS = "with probability at least {odds} over the random draw (alpha = {alpha})"
CLAIMS = {
    "dataset": "At most {share} of the labels in the delivered data set{of} {differ} (epsilon = {epsilon}), "
    + ODDS
    + ".",
    "pool": "Even if the labels that people gave to the calibration set were left out, at most {share} of "
    "the "
    "labels of the pool {differ} (epsilon = {epsilon}), " + ODDS + ".",
    "population": "With these thresholds a new item from the same source gets a label that {differs} with "
    "probability at most {share} (epsilon = {epsilon}), " + ODDS + ".",
}
MEANS = {
    "dataset": "The mean loss '{loss}' against {person} of the labels in the delivered data set{of} is at "
    "most {epsilon} (epsilon), " + ODDS + ".",
    "pool": "Even if the labels that people gave to the calibration set were left out, the mean loss "
    "'{loss}' against {person} of the labels of the pool is at most {epsilon} (epsilon), " + ODDS + ".",
    "population": "With these thresholds the expected loss '{loss}' against {person} of a new item from the "
    "same source is at most {epsilon} (epsilon), " + ODDS + ".",
}
NOT_COUNTED = "People's own mistakes are not counted."
RIGHT = (
    "Labels that people gave count as right; the part that no person labelled may exceed this share on its "
    "own."
)
OF_LOSSES = (
    "that the measured losses are what the program gives that the plan names, each of one label and answer "
    "alone, the same way for all"
)
THROUGH_POOL = (
    "This holds for the whole pool, also if the labels that people gave to the calibration set were left out."
)
DEARER = "People only is cheaper: this run is expected to cost more than having people label every item."
BLANK = (
    "Nobody could label {many} of the calibration set; each counted as an error wherever a model labels "
    "it, and "
    "is delivered blank where people should."
)
SETTLED = (
    "At most {share} of the delivered labels of the run's {items} items differ from what two of our "
    "people, and a "
    "decider where they differ, would give (epsilon = {epsilon}), "
    + ODDS
    + ". A mistake that two people make "
    "alike is not counted."
)
EXPERT = (
    "At most {share} of the delivered labels of the run's {items} items differ from what {expert} would "
    "give, blind "
    "(epsilon = {epsilon}), " + ODDS + ". Mistakes of models and of people are counted."
)
REPLACED = (
    "It would be {share}, but {replaced} items were labelled by others than the annotators whose they "
    "were, and "
    "each of these may be wrong."
)
EXPERTS = (
    "Right is the expert whose item it is: no two of them label the same one, and how much they differ among "
    "themselves is not known."
)
EXPERT_HOLDS = (
    "This holds if people label the items that are routed to them as they label those of the calibration set."
)


def plain(number: Decimal) -> str:
    """A decimal without an exponent and trailing zeros."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(number: Decimal) -> str:
    return f"{plain(number * 100)} %"


def odds(plan: Plan) -> dict[str, str]:
    """Of the promise; its alpha with what earlier draws on the same items have spent."""
    epsilon = plan.words["epsilon"]
    alpha = min(Decimal(plan.words["alpha"]) + Decimal(plan.words.get("alpha_spent", "0")), Decimal(1))
    return {
        "share": percent(Decimal(epsilon)),
        "epsilon": epsilon,
        "odds": percent(1 - alpha),
        "alpha": plain(alpha),
    }


def spent(plan: Plan) -> list[str]:
    """Which part of that alpha earlier draws have spent, where they have."""
    if not plan.alpha_spent:
        return []
    return [
        f"Of this alpha {plan.words['alpha']} is this draw's, and {plan.words['alpha_spent']} was spent by "
        "earlier draws on these items."
    ]


def promise(plan: Plan, version: int, *, settled: bool) -> list[str]:
    """What an ordinary certificate promises."""
    if settled:
        return [SETTLED.format(items=f"{plan.pool_size:,}", **odds(plan)), *spent(plan)]
    if not plan.zero_one:
        return [*_mean_promise(plan), *spent(plan)]
    by = "" if plan.loss == "zero_one" else f", by the loss '{plan.loss}',"
    differ, differs = f"differ{by} from {PERSON}", f"differs{by} from {PERSON}"
    of = f" of {plan.data_set_size} items" if plan.data_set_size is not None else ""
    if version < 3:  # which did not say what counts as right
        differ = "are wrong"
    claim = CLAIMS[plan.target].format(differ=differ, differs=differs, of=of, **odds(plan))
    if version < 3:
        claim = claim.replace(f"a label that {differs}", "a wrong label")
    said = [claim] if version < 3 else [claim, NOT_COUNTED]
    if plan.target == "dataset":
        before = plan.whole_size - plan.pool_size
        said += [f"People had labelled {before} of these items before the run."] if before else []
        said.append(THROUGH_POOL if plan.bound == BETTING else RIGHT)
    return [*said, *spent(plan)]


def _mean_promise(plan: Plan) -> list[str]:
    """The same of losses that are more or less wrong, which are bounded through the pool."""
    of = f" of {plan.data_set_size} items" if plan.data_set_size is not None else ""
    said = [MEANS[plan.target].format(loss=plan.loss, person=PERSON, of=of, **odds(plan)), NOT_COUNTED]
    if plan.target == "dataset":
        before = plan.whole_size - plan.pool_size
        said += [f"People had labelled {before} of these items before the run."] if before else []
        said.append(THROUGH_POOL)
    return said


def seen(plan: Plan, total: float | None) -> str:
    """What the safest step of a chain showed."""
    number = "nan" if total is None else f"{total:g}"
    return f"{number} errors" if plan.zero_one else f"a total loss of {number}"


def beside(unanswered: int, *, dearer: bool) -> list[str]:
    """What is said after the promise."""
    many = "1 item" if unanswered == 1 else f"{unanswered} items"
    return ([BLANK.format(many=many)] if unanswered else []) + ([DEARER] if dearer else [])


def why_nothing(
    plan: Plan, steps: Sequence[tuple[str, str, int | None]], asked: int, least: int, *, no_step: bool
) -> str:
    """Why nothing is certified: of the first step of each chain its name, what it showed, and how many errors
    pass.
    """
    if asked < least:
        return f"people were asked about {asked} items, and at least {least} are needed to certify anything"
    if no_step:
        return "no step of a chain would save anything at these costs"
    told = [
        f"the safest step of the chain '{name}' already showed {shown}"
        + ("" if allowed is None else f", and at most {allowed} would have passed")
        for name, shown, allowed in steps
    ]
    kind = "error" if plan.zero_one else "loss"
    return f"{'; '.join(told)} (with no {kind} at all, {least} labels would have been enough)"


def kept(shape: str, models: Sequence[int], limits: Sequence[Key | None], names: Sequence[str]) -> list[str]:
    """What a policy on every score keeps of each model."""
    if shape == "first_score" or not any(limits):
        return []
    first, last = names[models[0]], names[models[-1]]
    if shape == "own":
        said, everything = _kept(first, limits[0]), limits[0] == EVERYTHING
    else:
        t1, th, t2 = limits
        said, everything = _kept(first, t1), th == t2 == EVERYTHING
        if t2 is not None and (th != t1 or th == EVERYTHING):
            said += _asked(last, first, th, others=t1 is not None) + _kept(last, t2)
    return [
        *said,
        "People label only items without a usable answer." if everything else "People label what is left.",
    ]


def _kept(model: str, limit: Key | None) -> list[str]:
    if limit is None:
        return []
    if limit == EVERYTHING:
        return [f"Every answer of {model} is kept."]
    some = ", of those exactly so sure a part alone, chosen by a hash" if limit[1] < LARGEST_TIE_BREAK else ""
    return [f"The answer of {model} is kept where it is at least {_sure(limit[0])} sure of it{some}."]


def _asked(last: str, first: str, limit: Key | None, *, others: bool) -> list[str]:
    if limit == EVERYTHING:
        return [f"{last} is asked about the others."] if others else []
    if limit is None:
        return []
    some = (
        ", of those exactly so sure about a part alone, chosen by a hash"
        if limit[1] < LARGEST_TIE_BREAK
        else ""
    )
    if others:
        return [
            f"Of the others {last} is asked about those on which {first} is at least {_sure(limit[0])} "
            f"sure{some}."
        ]
    return [f"{last} is asked where {first} is at least {_sure(limit[0])} sure of its answer{some}."]


def _sure(u: float) -> str:
    if u <= 0 or u >= 1:
        return "1" if u <= 0 else "0"
    return f"{1 - u:.{min(max(2, ceil(-log10(min(u, 1 - u))) + 1), 12)}f}"


def expert_promise(plan: Plan, names: Sequence[str], replaced: int) -> list[str]:
    """What a certificate with an expert promises; ``replaced`` is X."""
    numbers, several = odds(plan), len(names) > 1
    usual, who = numbers["share"], one_of(names)
    if replaced:
        exact = Decimal(plan.budget + replaced) / Decimal(plan.pool_size)
        numbers["share"] = percent(exact.quantize(Decimal("1e-6"), rounding=ROUND_CEILING))
    by = f"{who}, by a fixed roster," if several else who
    said = [EXPERT.format(expert=by, items=f"{plan.pool_size:,}", **numbers)]
    said += [REPLACED.format(share=usual, replaced=replaced)] if replaced else []
    return [*said, *([EXPERTS] if several else []), EXPERT_HOLDS, *spent(plan)]


def one_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]


def printable(text: str, encoding: str | None) -> str:
    """As any terminal can show it: nothing of a file moves the cursor, or cannot be written."""
    plain = "".join(sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in text)
    return plain.encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")


def one_line(text: str) -> str:
    """Words in which something of a file stands: none of it begins a line of its own."""
    return text.replace("\n", "\\n")
