"""What a cost is."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Protocol


class Cost(Protocol):
    """Cost of one label, in the currency of the project, from the prices of its source and what the call
    used.
    """

    @property
    def name(self) -> str: ...

    def __call__(self, *, prices: Mapping[str, Decimal], usage: Mapping[str, Decimal]) -> Decimal: ...
