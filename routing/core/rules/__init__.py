"""Selection rules by name, and which hold their level.  A new one is one file and one line."""

from __future__ import annotations

from routing.core.registry import Registry
from routing.core.rules import (
    every_score,
    fixed_sequence,
    lexicographic,
    multi_chain,
    pointwise_argmin,
    split_fixed_sequence,
)
from routing.core.rules.base import Rule

RULES: Registry[Rule] = Registry(
    "rule",
    every_score.RULE,
    fixed_sequence.RULE,
    multi_chain.RULE,
    split_fixed_sequence.RULE,
    pointwise_argmin.RULE,
    lexicographic.RULE,
)

__all__ = ["RULES", "Rule"]
