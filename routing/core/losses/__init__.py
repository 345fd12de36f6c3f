"""Losses l(label of record, prediction) in [0, B].  A new one is one file and one line."""

from __future__ import annotations

from routing.core.losses.base import Loss
from routing.core.losses.zero_one import ZeroOne
from routing.core.registry import Registry

LOSSES: Registry[Loss] = Registry("loss", ZeroOne())

__all__ = ["LOSSES", "Loss"]
