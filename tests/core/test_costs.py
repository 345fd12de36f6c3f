"""Cost functions: what a label costs, and what happens without a price or without a measurement."""

from __future__ import annotations

from decimal import Decimal

import pytest

from routing.core.costs import COSTS, CostError, read_prices
from routing.core.losses import LOSSES
from routing.core.registry import Registry

USED = {"tokens_in": Decimal(1_200), "tokens_out": Decimal(300), "seconds": Decimal("1.5")}


def cost(name: str, usage: dict[str, Decimal], **prices: str | int) -> Decimal:
    function = COSTS.get(name)
    return function(prices=read_prices(function, prices), usage=usage)


def test_flat_is_the_same_whatever_was_used() -> None:
    assert cost("flat", USED, per_label="0.02") == cost("flat", {}, per_label="0.02") == Decimal("0.02")


def test_tokens_counts_what_was_generated() -> None:
    assert cost("tokens", USED) == 300
    assert cost("tokens", USED, per_token="0.001") == Decimal("0.3")


def test_api_price_has_two_prices_for_a_stated_number_of_tokens() -> None:
    assert cost("api_price", USED, input="0.5", output="2") == Decimal("0.0012")
    # The paper's first pair of models: 0.002 and 0.006 per thousand tokens.
    per_thousand = cost("api_price", USED, input="0.002", output="0.006", per_tokens=1_000)
    assert per_thousand == Decimal("0.0042")
    assert per_thousand == cost("api_price", USED, input="2", output="6")


def test_time_is_charged_by_the_hour() -> None:
    assert cost("time", USED, per_hour="2.4") == Decimal("0.001")


@pytest.mark.parametrize(
    ("name", "missing"),
    [("tokens", "tokens_out"), ("api_price", "tokens_in"), ("api_price", "tokens_out"), ("time", "seconds")],
)
def test_what_was_not_measured_cannot_be_charged(name: str, missing: str) -> None:
    prices = {"api_price": {"input": "1", "output": "1"}, "time": {"per_hour": "1"}}.get(name, {})
    assert missing in COSTS.get(name).needs
    with pytest.raises(CostError, match="is not known") as caught:
        cost(name, {key: value for key, value in USED.items() if key != missing}, **prices)
    assert caught.value.where == missing
    with pytest.raises(CostError, match="at least 0"):
        cost(name, USED | {missing: Decimal(-1)}, **prices)


@pytest.mark.parametrize(
    ("name", "prices", "where", "words"),
    [
        ("flat", {}, "per_label", "needed"),
        ("flat", {"per_label": "-1"}, "per_label", "at least 0"),
        ("flat", {"per_label": "NaN"}, "per_label", "at least 0"),
        ("flat", {"per_label": ""}, "per_label", "needed"),
        ("flat", {"per_label": "1E-999999"}, "per_label", "between 1e-12 and 1e12"),
        ("api_price", {"input": "1"}, "output", "needed"),
        ("api_price", {"input": "1", "output": "much"}, "output", "'much'"),
        ("api_price", {"input": "1", "output": "1", "per_tokens": "0"}, "per_tokens", "above 0"),
        ("time", {"per_hour": 0.1}, "per_hour", "as text"),
        ("time", {"per_hour": "1", "per_day": "1"}, "per_day", "it has per_hour"),
    ],
)
def test_a_price_that_cannot_be_is_refused_by_name(
    name: str, prices: dict[str, object], where: str, words: str
) -> None:
    with pytest.raises(CostError, match=words) as caught:
        read_prices(COSTS.get(name), prices)
    assert caught.value.where == where


def test_every_cost_function_says_what_it_is() -> None:
    for function in COSTS:
        assert function.title
        assert function.summary.endswith(".")
        assert all(price.title and price.summary.endswith(".") for price in function.prices)


def test_a_registry_takes_a_name_once() -> None:
    with pytest.raises(ValueError, match="already a loss named 'zero_one'"):
        Registry("loss", LOSSES.get("zero_one"), LOSSES.get("zero_one"))
    assert "flat" in COSTS
    assert [function.name for function in COSTS] == list(COSTS.names())


def test_a_negative_zero_is_no_price() -> None:
    name = next(name for name in COSTS.names() if name != "flat" and len(COSTS.get(name).prices) > 0)
    prices = {price.name: "-0" if not price.above_zero else "1" for price in COSTS.get(name).prices}
    assert not any(value.is_signed() for value in read_prices(COSTS.get(name), prices).values())
