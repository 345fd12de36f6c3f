"""Exact decimals: the error budget is never off by one."""

from __future__ import annotations

from decimal import Decimal

import pytest

from routing.core.exact import error_budget, percent, plain, to_decimal


@pytest.mark.parametrize(
    ("epsilon", "size", "budget"),
    [
        ("0.29", 100, 29),  # 0.29 * 100 is 28.999999999999996 in floats
        (0.29, 100, 29),
        ("0.07", 100, 7),
        ("0.045", 500, 22),
        ("0.1", 30, 3),
        ("0.0005", 20000, 10),
        ("0.05", 19, 0),
        ("0." + "9" * 40, 10**9, 10**9 - 1),  # more digits than a default decimal context keeps
        (Decimal("1E-3"), 2999, 2),
    ],
)
def test_the_error_budget_is_exact(epsilon: Decimal, size: int, budget: int) -> None:
    assert error_budget(epsilon, size) == budget


@pytest.mark.parametrize("value", ["", "five", "nan", "inf", True, None])
def test_what_is_no_finite_number_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="number"):
        to_decimal(value)


def test_one_value_has_one_text() -> None:
    assert {plain(Decimal(text)) for text in ("0.05", "5E-2", "0.0500")} == {"0.05"}
    assert plain(Decimal("-0.0")) == "0"
    assert plain(Decimal("1E3")) == "1000"
    assert percent(Decimal("0.050")) == "5 %"
