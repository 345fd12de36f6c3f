"""What a run says about people: their error on the pool with its exact interval, by annotator, and what
second looks catch; and what two people's labels say where there is no expert.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from routing.core.arrays import Bools
from routing.core.bounds.hypergeometric import smallest_wrong
from routing.core.reference.sources import CHECKED, PERSON, AskedLabels

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Share:
    """A share of the pool with its exact two-sided interval, all in [0, 1].

    ``observed`` of ``asked`` items showed it.
    """

    observed: int
    asked: int
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class PeopleEstimate:
    """People against the expert.

    Attributes
    ----------
    error : Share
        Of the items on which the annotator's label differs from the expert's.
    caught, shared : int
        Of the differences that were seen, those on which the best model says something else, so that a second
        look finds them, and those on which it says the same as the annotator.
    """

    error: Share
    caught: int
    shared: int


def count_interval(
    *, pool_size: int, asked: int, observed: int, at_most: int | None = None, alpha: float = 1 - CONFIDENCE
) -> tuple[int, int]:
    """Exact two-sided interval (Clopper-Pearson's for a finite pool) for T, ``observed`` of n being seen.

    The numbers T with P[Hyp(N, T, n) <= k] > alpha / 2 and P[Hyp(N, T, n) >= k] > alpha / 2.  Where some of
    the n are unknown, ``observed`` counts them as having it not and decides the lower end, ``at_most`` as
    having it and decides the upper one.
    """
    most = observed if at_most is None else at_most
    high = int(smallest_wrong(pool_size, asked, np.array([most]), alpha / 2)[0]) - 1
    others = int(smallest_wrong(pool_size, asked, np.array([asked - observed]), alpha / 2)[0]) - 1
    return max(pool_size - others, observed), min(high, pool_size - (asked - most))


def share_of(
    *, pool_size: int, asked: int, observed: int, at_most: int | None = None, alpha: float = 1 - CONFIDENCE
) -> Share:
    """The same as shares of the pool; nothing is known where nobody was asked."""
    if not asked:
        return Share(0, 0, float("nan"), 0.0, 1.0)
    low, high = count_interval(
        pool_size=pool_size, asked=asked, observed=observed, at_most=at_most, alpha=alpha
    )
    return Share(observed, asked, observed / asked, low / pool_size, high / pool_size)


def people_estimate(
    labels: AskedLabels, *, pool_size: int, rows: Bools | None = None, alpha: float = 1 - CONFIDENCE
) -> PeopleEstimate:
    """People's error on the pool, from the asked items.

    Where the expert saw all of them, the interval of one count.  Else that of the items on which not all
    agree, seen on all n, and that of the others, seen on the rechecked ones, each at half of alpha, added.

    Parameters
    ----------
    pool_size
        N; of one annotator the items that the roster gives her.
    rows : (n,), optional
        Those asked items that are hers.
    """
    mine = np.ones(labels.asked, dtype=np.bool_) if rows is None else rows
    models = labels.upper.shape[1] - 3
    upper, lower = labels.upper[:, models + PERSON], labels.lower[:, models + PERSON]
    missed = labels.lower[:, models + CHECKED]
    seen, wrong = labels.seen & mine, int(lower[mine].sum())
    shared = int(missed[mine].sum())
    asked = int(np.count_nonzero(mine))
    if np.count_nonzero(seen) == asked:
        error = share_of(
            pool_size=pool_size, asked=asked, observed=wrong, at_most=int(upper[mine].sum()), alpha=alpha
        )
        return PeopleEstimate(error, wrong - shared, shared)
    unlike = mine & ~labels.alike
    again = mine & (np.arange(labels.asked) < labels.rechecked)
    alike = again & labels.alike
    parts = [
        share_of(
            pool_size=pool_size,
            asked=int(np.count_nonzero(items)),
            observed=int(lower[kind].sum()),
            at_most=int(upper[kind].sum()),
            alpha=alpha / 2,
        )
        for items, kind in ((mine, unlike), (again, alike))
    ]
    error = Share(
        wrong,
        asked,
        sum(part.estimate for part in parts),
        sum(part.low for part in parts),
        min(1.0, sum(part.high for part in parts)),
    )
    return PeopleEstimate(error, wrong - shared, shared)


def by_annotator(
    labels: AskedLabels, annotators: Sequence[str], pool_sizes: dict[str, int]
) -> dict[str, PeopleEstimate]:
    """The same of each annotator; a few dozen items each rank nobody.

    Given how many of the asked items are hers, they are a simple random sample of her items.

    Parameters
    ----------
    annotators : n names
        Whose each asked item is.
    pool_sizes
        How many pool items each has by the roster.
    """
    names = np.array(annotators, dtype=object)
    return {
        name: people_estimate(labels, pool_size=size, rows=np.asarray(names == name, dtype=np.bool_))
        for name, size in pool_sizes.items()
    }


def overlap_disagreement(*, pool_size: int, pairs: int, different: int, unknown: int = 0) -> Share:
    """On which share of the pool two people differ, from a simple random sample that two people labelled.

    Where each item's labels are those of independent people, with q(y) the share of people who say y, two of
    them differ with probability 1 - sum q(y)**2, and one differs from what most would say with probability
    1 - max q(y), which is no more.  So this bounds what a single label is wrong against the majority, where
    y are kinds of labels (`losses.sorts_labels`) and not, for one, numbers that differ beyond a tolerance; of
    mistakes that most people make it says nothing.

    Parameters
    ----------
    pairs
        n, the items of the sample.
    different
        Those on which two people are known to differ.
    unknown
        Those without two answers: the interval holds whatever they would have been, the estimate is that of
        the others, NaN where there are none.
    """
    share = share_of(pool_size=pool_size, asked=pairs, observed=different, at_most=different + unknown)
    known = pairs - unknown
    return replace(share, estimate=different / known if known else float("nan"))
