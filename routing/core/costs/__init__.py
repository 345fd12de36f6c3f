"""What one label of a source costs.  A new way to count is one file and one line."""

from __future__ import annotations

from routing.core.costs.base import Cost
from routing.core.costs.flat import Flat
from routing.core.registry import Registry

COSTS: Registry[Cost] = Registry("cost", Flat())

__all__ = ["COSTS", "Cost"]
