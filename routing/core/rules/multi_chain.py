"""`multi_chain`: test k chains, each at alpha / k, and take the cheapest certified policy of all.

By the union bound no policy certified along any chain exceeds the limit, with probability at least 1 - alpha;
so any of them may be chosen.
"""

from __future__ import annotations

from routing.core.messages import gettext_noop
from routing.core.rules.base import Rule

RULE = Rule(
    name="multi_chain",
    title=gettext_noop("Several chains"),
    holds_level=True,
    description=gettext_noop(
        "Several chains are tested, each at its share of the level, and the cheapest certified step of all "
        "is taken: good where it is not known beforehand which model is the better one."
    ),
)
