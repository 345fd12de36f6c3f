"""`every_score`: every model's own score decides, where later models have scores of their own.

What it tests, and how alpha is shared among the chains, is in `routing.core.every_score`.
"""

from __future__ import annotations

from routing.core.rules.base import Rule

RULE = Rule(
    name="every_score",
    title="Every model's own score",
    holds_level=True,
    description=(
        "Each model's label is kept where the model itself is sure enough, alone or in a cascade; chains are "
        "tested at their shares of the level, and the cheapest certified step of all is taken."
    ),
)
