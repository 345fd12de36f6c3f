"""How far people who answered the same questions agree: pure arithmetic on arrays, no database.

Each measure is a few lines on counts, which makes its bootstrap one matrix product. Packages are not used
for their licence (krippendorff: GPL), exact pins (irrCAC), or pandas for one formula. Tests compare with
published examples, scikit-learn, krippendorff 0.9 and statsmodels 0.15.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Unit = TypeVar("Unit", bound=Hashable)
Person = TypeVar("Person", bound=Hashable)
# From weights of the units, shape (resamples, units), to values of shape (resamples,).
Measure = Callable[[Floats], Floats]

RESAMPLES = 400
LEVEL = 0.95
"""Of the intervals."""
SEED = 20260501
CHUNK = 100
FEWEST = 10
"""Units, of which an interval is given."""


@dataclass(frozen=True)
class Estimate:
    """A measure with its bootstrap interval over items (`LEVEL`). None where it is not defined: no item with
    two answers, or nothing but one and the same answer.
    """

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Answers:
    """Answers by index: answer a was given about unit `units[a]` by annotator `raters[a]`, and says
    `names[values[a]]`. All three arrays have the shape (answers,).
    """

    units: Ints
    raters: Ints
    values: Ints
    names: list[Hashable]

    @property
    def counts(self) -> sparse.csr_array:
        """How often each unit was answered with each value, shape (units, values); only of units with two
        answers or more.
        """
        if not len(self.units):
            return sparse.csr_array((0, len(self.names)))
        shape = (int(self.units.max()) + 1, len(self.names))
        counts = sparse.coo_array((np.ones(len(self.units)), (self.units, self.values)), shape=shape).tocsr()
        return counts[np.flatnonzero(counts.sum(axis=1) >= 2)]


def answers_of(table: Sequence[tuple[Unit, Person, Hashable]]) -> tuple[Answers, list[Unit], list[Person]]:
    """Triples (unit, annotator, value) by index; units and annotators in the order of their indices."""
    units: dict[Unit, int] = {}
    raters: dict[Person, int] = {}
    names: dict[Hashable, int] = {}
    rows = [
        (units.setdefault(u, len(units)), raters.setdefault(r, len(raters)), names.setdefault(v, len(names)))
        for u, r, v in table
    ]
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), 3)
    return Answers(columns[:, 0], columns[:, 1], columns[:, 2], list(names)), list(units), list(raters)


# --- All annotators together --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Together:
    """Measures of answers that are equal or different, each unit with two answers or more.

    equal   the share of equal answers among all pairs of answers about one unit, averaged over the units
    fleiss  Fleiss' kappa: `equal` above the chance that two answers drawn by the values' mean shares are
            equal (J. L. Fleiss, Psychological Bulletin 76, 1971); each unit counts once, whatever number of
            answers it has
    alpha   Krippendorff's alpha for nominal data: 1 - D_o / D_e (K. Krippendorff, Computing Krippendorff's
            Alpha-Reliability, 2011, section C); each answer counts once
    """

    equal: Estimate
    fleiss: Estimate
    alpha: Estimate


def nominal(counts: sparse.csr_array) -> Together:
    """The measures of `counts`, shape (units, values), as `Answers.counts` has them."""
    sums = _Nominal(counts)
    return Together(*_estimates(counts.shape[0], sums.equal, sums.fleiss, sums.alpha))


def krippendorff_interval(units: Ints, numbers: Floats) -> Estimate:
    """Krippendorff's alpha where answers differ by the square of their distance (as above, section D).

    `numbers` are finite. Units with one answer do not count.
    """
    many = np.bincount(units)[units] >= 2 if len(units) else np.zeros(0, dtype=bool)
    _, places = np.unique(units[many], return_inverse=True)
    interval = _Interval(places, numbers[many])
    return _estimates(len(interval.n), interval.alpha)[0]


# --- Two annotators, one value ------------------------------------------------------------------------------


def pairs_of(answers: Answers) -> tuple[Ints, Ints]:
    """Indices of the answers of every pair about one unit, once each, that of the annotator with the lower
    index first; two arrays of the shape (pairs,).
    """
    order = np.lexsort((answers.raters, answers.units))
    units = answers.units[order]
    first, second = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    distance = 1
    while len(same := np.flatnonzero(units[distance:] == units[:-distance])):
        first.append(order[same])
        second.append(order[same + distance])
        distance += 1
    return np.concatenate(first), np.concatenate(second)


def cohen_kappa(first: Ints, second: Ints) -> float | None:
    """Cohen's kappa of two arrays of values about the same units (J. Cohen, Educational and Psychological
    Measurement 20, 1960); None where both only ever gave one and the same value, or nothing.
    """
    if not len(first):
        return None
    size = int(max(first.max(), second.max())) + 1
    shares = np.bincount(first, minlength=size) * np.bincount(second, minlength=size)
    by_chance = shares.sum() / len(first) ** 2
    if by_chance == 1:
        return None
    return float(((first == second).mean() - by_chance) / (1 - by_chance))


def confusion(counts: sparse.csr_array) -> Floats:
    """How often one answer was k while another about the same unit was l, counting both orders of a pair;
    shape (values, values), symmetric. For few values: the table is dense.
    """
    both = (counts.T @ counts).toarray()
    return np.asarray(both - np.diag(np.asarray(counts.sum(axis=0))), dtype=float)


def given_or_not(given: Floats, asked: Floats) -> tuple[float | None, float | None]:
    """Of one value, from how many of those `asked` about each unit gave it, both of the shape (units,): where
    somebody gave it, the share of others who gave it too; and Fleiss' kappa of giving it or not. None where
    nobody gave it, and for kappa where everybody always did.
    """
    pairs = (given * (asked - 1)).sum()
    again = float((given * (given - 1)).sum() / pairs) if pairs else None
    return again, _alone(
        _Nominal(sparse.csr_array(np.stack([given, asked - given], axis=1))).fleiss, len(given)
    )


class _Nominal:
    """Sums per unit: each measure is a function of their weighted totals."""

    def __init__(self, counts: sparse.csr_array) -> None:
        self.counts = counts
        self.n: Floats = np.asarray(counts.sum(axis=1), dtype=float)
        same: Floats = np.asarray(counts.multiply(counts).sum(axis=1), dtype=float)
        self.pairs = self.n * (self.n - 1)
        self.same_pairs = same - self.n
        self.shares = counts.multiply(1 / self.n[:, None]).tocsr() if counts.shape[0] else counts

    def equal(self, weights: Floats) -> Floats:
        return np.asarray(weights @ (self.same_pairs / self.pairs) / weights.sum(axis=1))

    def fleiss(self, weights: Floats) -> Floats:
        means = (self.shares.T @ weights.T).T / weights.sum(axis=1)[:, None]
        return _above_chance(1 - self.equal(weights), 1 - np.square(means).sum(axis=1))

    def alpha(self, weights: Floats) -> Floats:
        total = weights @ self.n
        observed = weights @ ((self.pairs - self.same_pairs) / (self.n - 1)) / total
        values = (self.counts.T @ weights.T).T
        expected = (np.square(total) - np.square(values).sum(axis=1)) / (total * (total - 1))
        return _above_chance(observed, expected)


class _Interval:
    def __init__(self, places: Ints, numbers: Floats) -> None:
        self.n: Floats = np.bincount(places).astype(float)
        # Squares of what is stored in up to 200 digits would not fit; alpha is free of origin and unit.
        if len(numbers):
            numbers = numbers - numbers.mean()
            numbers = numbers / (np.abs(numbers).max() or 1.0)
        size = len(self.n)
        self.sums = np.bincount(places, numbers, size)
        self.squares = np.bincount(places, np.square(numbers), size)
        inside = np.bincount(places, np.square(numbers - (self.sums / self.n)[places]), size)
        self.distances = 2 * self.n * inside / np.maximum(self.n - 1, 1)

    def alpha(self, weights: Floats) -> Floats:
        total = weights @ self.n
        observed = weights @ self.distances / total
        spread = total * (weights @ self.squares) - np.square(weights @ self.sums)
        return _above_chance(observed, 2 * spread / (total * (total - 1)))


def _above_chance(observed: Floats, expected: Floats) -> Floats:
    """1 - observed / expected disagreement; NaN where chance alone leaves nothing to disagree about."""
    defined = expected > 1e-12
    share = np.divide(observed, expected, out=np.full_like(observed, np.nan), where=defined)
    return 1 - share


def _alone(measure: Measure, units: int) -> float | None:
    value = float(measure(np.ones((1, units)))[0]) if units else np.nan
    return None if np.isnan(value) else value


def _estimates(units: int, *measures: Measure) -> list[Estimate]:
    """Each measure with its interval, all from the same resamples."""
    values = [_alone(measure, units) for measure in measures]
    # Of very few items the resamples say nothing.
    if units < FEWEST:
        return [Estimate(value) for value in values]
    drawn: list[list[Floats]] = [[] for _ in measures]
    random = np.random.default_rng(SEED)
    for _ in range(RESAMPLES // CHUNK):
        places = random.integers(units, size=(CHUNK, units)) + units * np.arange(CHUNK)[:, None]
        weights = np.bincount(places.ravel(), minlength=CHUNK * units).reshape(CHUNK, units).astype(float)
        for measure, found in zip(measures, drawn, strict=True):
            found.append(measure(weights))
    return [_with_interval(value, np.concatenate(found)) for value, found in zip(values, drawn, strict=True)]


def _with_interval(value: float | None, drawn: Floats) -> Estimate:
    drawn = drawn[~np.isnan(drawn)]
    if value is None or len(drawn) < RESAMPLES // 2:
        return Estimate(value)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, float(low), float(high))
