"""What is said about a selection rule."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """A rule that turns observed losses into thresholds; only one that holds its level may certify."""

    name: str
    holds_level: bool
    description: str
