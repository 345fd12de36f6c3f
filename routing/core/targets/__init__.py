"""What is promised: three targets.  Bounds, plan and chains know them by name, as their proofs do."""

from __future__ import annotations

from routing.core.registry import Registry
from routing.core.targets.base import Guarantee, LearningSplit, Target, counted
from routing.core.targets.dataset import DataSet
from routing.core.targets.pool import Pool
from routing.core.targets.population import Population

TARGETS: Registry[Target] = Registry("target", DataSet(), Pool(), Population())

__all__ = ["TARGETS", "Guarantee", "LearningSplit", "Target", "counted"]
