"""Losses l(label of record, prediction) in [0, B].  A new one is one file and one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routing.core.losses.base import Loss, LossKind
from routing.core.losses.zero_one import ZeroOneKind
from routing.core.registry import Registry

LOSSES: Registry[LossKind] = Registry("loss", ZeroOneKind())


def make_loss(name: str, params: Mapping[str, Any] | None = None) -> Loss:
    """The loss called ``name`` with its parameters; `UnknownNameError` lists the known names otherwise."""
    return LOSSES.get(name).make(params or {})


__all__ = ["LOSSES", "Loss", "LossKind", "make_loss"]
