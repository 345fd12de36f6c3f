"""What a loss is."""

from __future__ import annotations

from typing import Protocol


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
