"""Uncertainty scores U in [0, 1].  A new one is one file and one line."""

from __future__ import annotations

from routing.core.registry import Registry
from routing.core.scores.base import ItemScore, Score
from routing.core.scores.max_softmax import MaxSoftmax
from routing.core.scores.recorded import Recorded

SCORES: Registry[Score] = Registry("score", MaxSoftmax(), Recorded())

__all__ = ["SCORES", "ItemScore", "Score"]
