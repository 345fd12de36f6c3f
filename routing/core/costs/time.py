"""Measured time times a rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from routing.core.costs.base import SECONDS, Price, price_of, used
from routing.core.messages import gettext_noop

PER_HOUR = Price(
    "per_hour",
    gettext_noop("price of an hour"),
    gettext_noop("What the GPU or machine costs while it works: its hourly rate."),
)
HOUR = Decimal(3_600)


@dataclass(frozen=True)
class Time:
    """``per_hour`` * seconds / 3,600."""

    name: str = "time"
    title: str = gettext_noop("Time of a GPU, by the hour")
    summary: str = gettext_noop(
        "The time that the machine was busy with an answer, at an hourly rate: a GPU of your own, or rented."
    )
    prices: tuple[Price, ...] = (PER_HOUR,)
    needs: tuple[str, ...] = (SECONDS,)

    def __call__(self, *, prices: Mapping[str, Decimal], usage: Mapping[str, Decimal]) -> Decimal:
        return price_of(PER_HOUR, prices) * used(SECONDS, usage) / HOUR
