"""A loss of one's own, named by its dotted path; everything it declares is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from routing.core.arrays import Floats
from routing.core.losses.base import IN_ROW, Loss, LossCodeError, LossError, short
from routing.core.losses.imports import load
from routing.core.messages import Message, declare, gettext_noop, say


@dataclass(frozen=True)
class OwnLoss:
    """A callable that declares ``bound`` and ``binary``, with every value held to them."""

    name: str
    bound: float
    binary: bool
    function: Callable[[str, str], Any]
    quick: bool = field(default=False, kw_only=True)

    def __call__(self, label: str, prediction: str) -> float:
        pair = {"loss": repr(self.name), "label": short(label), "prediction": short(prediction)}
        try:
            value = float(self.function(label, prediction))
        except Exception as error:  # whatever somebody else's code raises
            raise LossCodeError(
                say("own.failed_on", error=f"{type(error).__name__}: {error}", **pair)
            ) from error
        wrong = self._wrong(value)
        if wrong:
            raise LossError(say("own.gave_on", value=str(value), wrong=wrong, **pair))
        return value

    def _wrong(self, value: float) -> Message | None:
        if not 0 <= value <= self.bound:  # true of NaN as well
            return say("own.outside", bound=f"{self.bound:g}")
        if self.binary and value not in (0, 1):
            return say("own.not_binary")
        return None


@dataclass(frozen=True)
class OwnBatchLoss(OwnLoss):
    """The same, for an object that also computes many pairs at once."""

    batch: Callable[[Sequence[str], Sequence[str]], Any]

    def many(self, labels: Sequence[str], predictions: Sequence[str]) -> Floats:
        """Losses (n,) of n pairs."""
        try:
            values = np.asarray(self.batch(labels, predictions), dtype=np.float64)
        except Exception as error:  # whatever somebody else's code raises
            raise LossCodeError(
                say("own.failed", loss=repr(self.name), error=f"{type(error).__name__}: {error}")
            ) from error
        if values.shape != (len(labels),):
            raise LossError(
                say("own.shape", loss=repr(self.name), shape=str(values.shape), pairs=len(labels))
            )
        for row, value in enumerate(values.tolist()):
            wrong = self._wrong(value)
            if wrong:
                said = say("own.gave", loss=repr(self.name), value=str(value), wrong=wrong)
                raise LossError(say(IN_ROW, row=row, error=said))
        return values


def own_loss(path: str, params: Mapping[str, Any]) -> Loss:
    """The loss at ``path``: a class, which is made with ``params``, or an object, which takes none.

    Raises
    ------
    LossError
        It cannot be imported or made, or does not declare ``bound`` (a number above 0) and ``binary`` (true
        or false; then the bound is 1), or cannot be called.
    """
    found = load(path)
    if isinstance(found, type):
        try:
            found = found(**params)
        except Exception as error:  # whatever somebody else's code raises
            raise LossCodeError(
                say(
                    "own.not_made",
                    path=repr(path),
                    params=str(sorted(params)),
                    error=f"{type(error).__name__}: {error}",
                )
            ) from error
    elif params:
        raise LossError(say("own.object", path=repr(path), name=repr(sorted(params)[0])))
    bound, binary = getattr(found, "bound", None), getattr(found, "binary", None)
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not isfinite(bound) or bound <= 0:
        raise LossError(say("own.bound", path=repr(path), bound=repr(bound)))
    if not isinstance(binary, bool):
        raise LossError(say("own.binary", path=repr(path), binary=repr(binary)))
    if binary and bound != 1:
        raise LossError(say("own.binary_bound", path=repr(path), bound=f"{bound:g}"))
    if not callable(found):
        raise LossError(say("own.not_callable", path=repr(path)))
    batch, quick = getattr(found, "many", None), getattr(found, "quick", False) is True
    if callable(batch):
        return OwnBatchLoss(path, float(bound), binary, found, batch, quick=quick)
    return OwnLoss(path, float(bound), binary, found, quick=quick)


SAYS = {
    "own.failed_on": gettext_noop(
        "the loss %(loss)s failed on the label %(label)s and the prediction %(prediction)s: %(error)s"
    ),
    "own.gave_on": gettext_noop(
        "the loss %(loss)s gave %(value)s on the label %(label)s and the prediction %(prediction)s: %(wrong)s"
    ),
    "own.gave": gettext_noop("the loss %(loss)s gave %(value)s: %(wrong)s"),
    "own.outside": gettext_noop("it declares values from 0 to %(bound)s"),
    "own.not_binary": gettext_noop("it declares to be binary, 0 or 1 only"),
    "own.failed": gettext_noop("the loss %(loss)s failed: %(error)s"),
    "own.shape": gettext_noop("the loss %(loss)s gave %(shape)s values for %(pairs)s pairs"),
    "own.not_made": gettext_noop("%(path)s cannot be made with the parameters %(params)s: %(error)s"),
    "own.object": gettext_noop("%(path)s is an object and takes no parameter %(name)s; name its class"),
    "own.bound": gettext_noop(
        "%(path)s must declare 'bound', the largest value it can take, as a number above 0, not %(bound)s"
    ),
    "own.binary": gettext_noop(
        "%(path)s must declare 'binary', whether it gives 0 and 1 only, as true or false, not %(binary)s"
    ),
    "own.binary_bound": gettext_noop(
        "%(path)s declares to be binary with the bound %(bound)s; a binary loss has the bound 1"
    ),
    "own.not_callable": gettext_noop("%(path)s cannot be called with a label and a prediction"),
}
declare(SAYS)
