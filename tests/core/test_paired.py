"""Two ways to label the same items, where just one is right."""

import pytest
from scipy.stats import binomtest

from routing.core.experiment.paired import mcnemar


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 12), (3, 3), (1, 9), (9, 1), (40, 60), (0, 200)])
def test_it_is_the_exact_binomial_test(first: int, second: int) -> None:
    count = first + second
    expected = binomtest(first, count, 0.5).pvalue if count else 1.0
    assert mcnemar(first, second) == pytest.approx(expected)
