"""What several people's answers come to where no majority and no reviewer settles them."""

from collections.abc import Iterable

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray
from scipy import sparse

from annotation.common.value_reader import Value, as_text
from annotation.errors import InputError

Floats = NDArray[np.float64]

MAX_CELLS = 20_000_000
"""The most that items, or kinds of answers, times different values may come to: 160 MB of float64."""


def dawid_skene(
    table: Iterable[tuple[int, int, Value]], *, iterations: int = 100, tolerance: float = 1e-6
) -> dict[int, tuple[Value, float]]:
    """The likeliest value of each item with its probability, from triples (item, annotator, value).

    Each annotator has error rates of their own: how often they give value l where k is true. They are
    estimated together with the true values by the EM algorithm, without any prior (A. P. Dawid, A. M. Skene:
    Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm, Applied Statistics 28, 1979,
    equations 2.3 to 2.5). It starts from each item's shares of answers and ends when no probability moves by
    more than `tolerance`, or after `iterations`. The same triples in any order give the same result; of
    values that are equally likely the first by its text is taken.

    An annotator may answer about an item several times. Values count as equal or different: meant for
    choices. Raises InputError where there are too many different values for the memory.
    """
    rows = list(table)
    triples = sorted((item, annotator, as_text(value)) for item, annotator, value in rows)
    if not triples:
        return {}
    by_text = {as_text(value): value for _, _, value in rows}
    items = sorted({item for item, _, _ in triples})
    texts = sorted(by_text)
    given = sorted({(annotator, text) for _, annotator, text in triples})
    if max(len(items), len(given)) * len(texts) > MAX_CELLS:
        raise InputError(
            _("There are %(count)s different answers, too many for Dawid-Skene: it is meant for choices.")
            % {"count": f"{len(texts):,}"}
        )
    item_at = {item: index for index, item in enumerate(items)}
    given_at = {pair: index for index, pair in enumerate(given)}
    people = sorted({annotator for annotator, _ in given})
    # answers[i, g]: how often item i was answered with g, a value as given by one annotator.
    answers = _counts(
        [item_at[item] for item, _, _ in triples],
        [given_at[annotator, text] for _, annotator, text in triples],
        (len(items), len(given)),
    )
    place = {text: index for index, text in enumerate(texts)}
    says = _counts(range(len(given)), [place[text] for _, text in given], (len(given), len(texts)))
    of_whom = _counts(
        [people.index(annotator) for annotator, _ in given], range(len(given)), (len(people), len(given))
    )
    truth = _settle(answers, says, of_whom, iterations, tolerance)
    # Rounded, so that what is equally likely is not told apart by the last bit.
    best = truth.round(9).argmax(axis=1)
    return {
        item: (by_text[texts[column]], float(truth[index, column]))
        for index, (item, column) in enumerate(zip(items, best, strict=True))
    }


def _settle(
    answers: sparse.csr_array,
    says: sparse.csr_array,
    of_whom: sparse.csr_array,
    iterations: int,
    tolerance: float,
) -> Floats:
    """Probabilities, shape (items, values)."""
    truth: Floats = (answers @ says).toarray()
    truth /= truth.sum(axis=1, keepdims=True)
    for _step in range(iterations):
        # rates[g, k]: how often g's annotator gives g's value where k is true (2.3); prior: (2.4).
        rates = answers.T @ truth
        totals = of_whom.T @ (of_whom @ rates)
        rates = np.divide(rates, totals, out=np.zeros_like(rates), where=totals > 0)
        prior = truth.mean(axis=0)
        with np.errstate(divide="ignore"):
            logs, log_prior = np.log(rates), np.log(prior)
        # A sparse product would make 0 * -inf; what cannot be stays far below everything that can.
        lowest = -1e9
        likely = answers @ np.maximum(logs, lowest) + np.maximum(log_prior, lowest)
        likely -= likely.max(axis=1, keepdims=True)
        before, truth = truth, np.exp(likely)  # (2.5)
        truth /= truth.sum(axis=1, keepdims=True)
        if np.abs(truth - before).max() <= tolerance:
            break
    return truth


def _counts(rows: Iterable[int], columns: Iterable[int], shape: tuple[int, int]) -> sparse.csr_array:
    row, column = list(rows), list(columns)
    return sparse.coo_array((np.ones(len(row)), (row, column)), shape=shape).tocsr()
