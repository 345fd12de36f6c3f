"""What a baseline sees and what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from routing.core.arrays import Bools, Floats
from routing.core.cascade import Decision
from routing.core.messages import Message


@dataclass(frozen=True)
class Labelled:
    """A calibration set of m items, those that people were not asked about included.

    Attributes
    ----------
    u : (m, K)
        Each model's own score; NaN throughout a column where a model has none.
    asked : (m,)
        Z: only where it is true may losses be read.
    p : (m,)
        The probability of asking.
    loss : (m, K)
        Loss of whoever finally labels where the nominal source is k and later sources step in.
    alone : (m, K)
        The same where people step in for model k at once.
    cost : (m, K + 1)
        Cost of a label from nominal source k, people last.
    loss_bound : float
        B.
    binary, constant_p : bool
    """

    u: Floats
    asked: Bools
    p: Floats
    loss: Floats
    alone: Floats
    cost: Floats
    loss_bound: float
    binary: bool
    constant_p: bool

    @property
    def models(self) -> int:
        """K."""
        return int(self.u.shape[1])


class Baseline(Protocol):
    """A rule that turns a labelled calibration set into a cascade."""

    @property
    def name(self) -> str: ...

    @property
    def bound(self) -> str:
        """The bound that it uses, '' for none."""

    @property
    def holds_level(self) -> bool:
        """Whether the error of what is delivered exceeds epsilon with probability at most alpha, by proof."""

    @property
    def summary(self) -> Message:
        """One plain sentence."""

    def refusal(self, *, scored: tuple[bool, ...], binary: bool, constant_p: bool) -> Message | None:
        """Why it cannot work with K models, of which those marked in ``scored`` (K,) have a score of their
        own; None if it can.
        """

    def decide(self, sample: Labelled, *, epsilon: float, alpha: float) -> Decision:
        """The cascade for ``epsilon`` and ``alpha``."""
