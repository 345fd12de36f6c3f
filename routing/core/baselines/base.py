"""What a baseline sees and what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from routing.core.arrays import Bools, Floats
from routing.core.cascade import Decision
from routing.core.messages import Message, declare, gettext_noop, say


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
    pool_size : int
        N: how many items there are, the m among them.  The rows are in random order.
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
    pool_size: int

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
    def own_sample(self) -> bool:
        """Whether it chooses by itself whom it asks for a label.

        It is then given every item of the pool as asked, in random order, reads as few of these labels as it
        can and says which; what it promises holds for this pool.  Given the labels of another draw it makes
        do with them, and promises nothing.
        """

    @property
    def summary(self) -> Message:
        """One plain sentence."""

    def refusal(self, *, scored: tuple[bool, ...], binary: bool, constant_p: bool) -> Message | None:
        """Why it cannot work with K models, of which those marked in ``scored`` (K,) have a score of their
        own; None if it can.
        """

    def decide(self, sample: Labelled, *, epsilon: float, alpha: float) -> Decision:
        """The cascade for ``epsilon`` and ``alpha``."""


def missing_score(name: str, model: int, scored: tuple[bool, ...]) -> Message | None:
    """Why the baseline ``name`` cannot work with the own score of ``model``, a place; None if it can."""
    if model >= len(scored):
        return say("baseline.needs_models", baseline=name, models=model + 1, there=len(scored))
    if not scored[model]:
        return say("baseline.own_score_missing", baseline=name, model=model + 1)
    return None


def needs_even_labels(name: str, *, binary: bool, constant_p: bool) -> Message | None:
    """Why the baseline ``name``, which counts answers of items drawn alike, cannot work; None if it can."""
    if not binary:
        return say("baseline.counts", baseline=name)
    if not constant_p:
        return say("baseline.drawn_alike", baseline=name)
    return None


SAYS = {
    "baseline.own_score_missing": gettext_noop(
        "'%(baseline)s' needs a score of model %(model)s itself, and the table has none (a column "
        "conf%(model)s or u%(model)s)"
    ),
    "baseline.needs_models": gettext_noop("'%(baseline)s' needs %(models)s models; the table has %(there)s"),
    "baseline.counts": gettext_noop(
        "'%(baseline)s' counts right and wrong answers, so it needs a loss of 0 or 1"
    ),
    "baseline.drawn_alike": gettext_noop("'%(baseline)s' needs one probability of asking for all items"),
}
declare(SAYS)
