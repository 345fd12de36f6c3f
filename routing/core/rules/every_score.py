"""`every_score`: every model's own score decides, where later models have scores of their own.

What it tests, and how alpha is shared among the chains, is in `routing.core.every_score`.
"""

from __future__ import annotations

from routing.core.messages import gettext_noop
from routing.core.rules.base import Rule

RULE = Rule(
    name="every_score",
    title=gettext_noop("Every model's own score"),
    holds_level=True,
    description=gettext_noop(
        "Each model's answer is kept where that model is sure enough of it, alone or one after the other; "
        "the cheapest choice that the labels certify is taken. A dear model is asked only where that is "
        "needed."
    ),
)
