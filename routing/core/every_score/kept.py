"""Which answers a policy keeps, in a plain sentence for each model: by how sure of it the model has to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, log10

from routing.core.every_score.chain import CASCADE, OWN
from routing.core.every_score.items import EVERYTHING
from routing.core.keys import V_MAX, Key, Threshold, Thresholds
from routing.core.messages import Message, declare, gettext_noop, say

MOST_DIGITS = 12


def kept_of(
    shape: str, models: Sequence[int], thresholds: Thresholds, names: Sequence[str]
) -> tuple[Message, ...]:
    """What a policy keeps of each model and what is left to people; nothing for one of people alone, and for
    one whose thresholds all lie on the first model's score.

    Parameters
    ----------
    models
        Places 0 .. K - 1, as of `ScoreChain`.
    names
        Of all K models.
    """
    if shape not in (OWN, CASCADE) or not any(thresholds):
        return ()
    first, last = names[models[0]], names[models[-1]]
    if shape == OWN:
        said, everything = list(_kept(first, thresholds[0])), thresholds[0] == EVERYTHING
    else:
        t1, th, t2 = thresholds
        said, everything = list(_kept(first, t1)), th == t2 == EVERYTHING
        # Where the first model takes everything, the last one is called where that has no usable answer.
        if t2 is not None and (th != t1 or th == EVERYTHING):
            said += [*_asked(last, first, th, others=t1 is not None), *_kept(last, t2)]
    return (*said, say("kept.people_unusable" if everything else "kept.people"))


def _kept(model: str, threshold: Threshold) -> Iterator[Message]:
    if threshold == EVERYTHING:
        yield say("kept.all", model=model)
    elif threshold is not None:
        code = "kept.sure_in_part" if cuts_a_tie(threshold) else "kept.sure"
        yield say(code, model=model, sure=sure(threshold.u))


def _asked(last: str, first: str, threshold: Threshold, *, others: bool) -> Iterator[Message]:
    """`others`: whether something of the first model is kept."""
    if threshold == EVERYTHING and others:
        yield say("kept.asked", last=last)
    elif threshold is not None and threshold != EVERYTHING:
        code = "kept.asked_where" if others else "kept.asked_only_where"
        code += "_in_part" if cuts_a_tie(threshold) else ""
        yield say(code, last=last, model=first, sure=sure(threshold.u))


def cuts_a_tie(threshold: Key) -> bool:
    """Whether of the items with just this score only some are taken, by their hash (`Quantiles`)."""
    return bool(threshold.v < V_MAX)


def sure(u: float) -> str:
    """1 - U in words, with as many digits as tell it from 0 and 1."""
    if u <= 0 or u >= 1:
        return "1" if u <= 0 else "0"
    digits = min(max(2, ceil(-log10(min(u, 1 - u))) + 1), MOST_DIGITS)
    return f"{1 - u:.{digits}f}"


SAYS = {
    "kept.sure": gettext_noop("The answer of %(model)s is kept where it is at least %(sure)s sure of it."),
    "kept.sure_in_part": gettext_noop(
        "The answer of %(model)s is kept where it is at least %(sure)s sure of it, of those exactly so sure "
        "a part alone, chosen by a hash."
    ),
    "kept.all": gettext_noop("Every answer of %(model)s is kept."),
    "kept.asked": gettext_noop("%(last)s is asked about the others."),
    "kept.asked_where": gettext_noop(
        "Of the others %(last)s is asked about those on which %(model)s is at least %(sure)s sure."
    ),
    "kept.asked_only_where": gettext_noop(
        "%(last)s is asked where %(model)s is at least %(sure)s sure of its answer."
    ),
    "kept.asked_where_in_part": gettext_noop(
        "Of the others %(last)s is asked about those on which %(model)s is at least %(sure)s sure, of those "
        "exactly so sure about a part alone, chosen by a hash."
    ),
    "kept.asked_only_where_in_part": gettext_noop(
        "%(last)s is asked where %(model)s is at least %(sure)s sure of its answer, of those exactly so sure "
        "about a part alone, chosen by a hash."
    ),
    "kept.people": gettext_noop("People label what is left."),
    "kept.people_unusable": gettext_noop("People label only items without a usable answer."),
}
declare(SAYS)
