"""Where no slow loss may be computed, in a request for one, what was computed of it before is looked up.

`looked_up` says where: there `routing.core.losses.make_loss` gives a `LookedUpLoss` in the place of every
loss that does not declare to be quick, so that none is computed by mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

from routing.core.arrays import Floats
from routing.core.losses.base import Loss, LossError, LossUnavailableError, short
from routing.core.messages import declare, gettext_noop, say

Pair = tuple[str, str]
"""A label of record and a prediction."""


class LossNotComputedError(LossUnavailableError):
    """A slow loss that nobody has computed yet of this pair, where it may only be looked up."""


class Lookup(Protocol):
    """Where computed losses are kept."""

    def __call__(self, name: str, params: str, pairs: Sequence[Pair]) -> dict[Pair, float | None]:
        """Of those pairs whose loss is kept the loss, None where it has none. Sees to it that the others are
        computed. ``params`` is the one spelling of the loss's parameters, as JSON.
        """


_lookup: ContextVar[Lookup | None] = ContextVar("lookup", default=None)


@contextmanager
def looked_up(lookup: Lookup | None) -> Iterator[None]:
    """Within it slow losses are looked up by ``lookup``; computed where it is None, as everywhere else."""
    token = _lookup.set(lookup)
    try:
        yield
    finally:
        _lookup.reset(token)


def is_quick(loss: Loss) -> bool:
    """Whether thousands of pairs take no time that anybody notices. A loss declares it by a true ``quick``,
    which is no part of `Loss`: where nothing is declared, it may take as long as it likes.
    """
    return getattr(loss, "quick", False) is True


def looked_up_if_slow(loss: Loss, name: str, params: str) -> Loss:
    """``loss``, made as ``name`` with ``params``, or where it may not be computed here what looks it up."""
    lookup = _lookup.get()
    return loss if lookup is None or is_quick(loss) else LookedUpLoss(loss, name, params, lookup)


class LookedUpLoss:
    """What ``loss`` was found to be; whatever it declares, this does."""

    def __init__(self, loss: Loss, name: str, params: str, lookup: Lookup) -> None:
        self.loss = loss
        self.name, self.bound, self.binary = loss.name, loss.bound, loss.binary
        self._made, self._lookup = (name, params), lookup
        self._known: dict[Pair, float | None] = {}
        self._missing: set[Pair] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loss, name)

    def __call__(self, label: str, prediction: str) -> float:
        return float(self.many([label], [prediction])[0])

    def many(self, labels: Sequence[str], predictions: Sequence[str]) -> Floats:
        """Losses (n,) of n pairs; raises `LossNotComputedError` where one is not known yet."""
        pairs = list(zip(labels, predictions, strict=True))
        if missing := self.fetch(pairs):
            raise LossNotComputedError(say("looked_up.missing", loss=repr(self.name), count=missing))
        values = [self._known[pair] for pair in pairs]
        for (label, prediction), value in zip(pairs, values, strict=True):
            if value is None:
                what = {"label": short(label), "prediction": short(prediction)}
                raise LossError(say("looked_up.none", loss=repr(self.name), **what))
        return np.array(values, dtype=np.float64)

    def fetch(self, pairs: Sequence[Pair]) -> int:
        """Look these up together, each once; how many of them are not known yet."""
        different = dict.fromkeys(pairs)
        new = [pair for pair in different if pair not in self._known and pair not in self._missing]
        if new:
            found = self._lookup(*self._made, new)
            self._known |= found
            self._missing.update(pair for pair in new if pair not in found)
        return sum(pair in self._missing for pair in different)


def want(loss: Loss, pairs: Sequence[Pair]) -> None:
    """Have what is not known yet of these pairs computed; nothing where ``loss`` is not looked up."""
    if isinstance(loss, LookedUpLoss):
        loss.fetch(pairs)


SAYS = {
    "looked_up.missing": gettext_noop("the loss %(loss)s is still being computed of %(count)s pairs"),
    "looked_up.none": gettext_noop(
        "the loss %(loss)s could not be computed of the label %(label)s and the prediction %(prediction)s"
    ),
}
declare(SAYS)
