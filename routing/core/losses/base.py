"""What a loss is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Loss(Protocol):
    """A loss between two canonical label values (the JSON text in which a label is stored).

    ``bound`` is B, the largest value it can take; ``binary`` says that it takes the values 0 and 1 only,
    which is what the exact counting bounds need.
    """

    @property
    def name(self) -> str: ...

    @property
    def bound(self) -> float: ...

    @property
    def binary(self) -> bool: ...

    def __call__(self, label: str, prediction: str) -> float: ...


class LossError(ValueError):
    """A loss that cannot be made or computed; the message names the parameter or the value."""


class LossKind(Protocol):
    """A loss before its parameters are known: one entry of the registry."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str:
        """One plain sentence for somebody who has to choose."""

    def make(self, params: Mapping[str, Any]) -> Loss:
        """The loss with these parameters; raises `LossError` naming one that cannot be used."""
