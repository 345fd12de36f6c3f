"""A loss of one's own, named by its dotted path; everything it declares is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from routing.core.arrays import Floats
from routing.core.losses.base import Loss, LossError, short
from routing.core.losses.imports import load


@dataclass(frozen=True)
class OwnLoss:
    """A callable that declares ``bound`` and ``binary``, with every value held to them."""

    name: str
    bound: float
    binary: bool
    function: Callable[[str, str], Any]

    def __call__(self, label: str, prediction: str) -> float:
        pair = f"on the label {short(label)} and the prediction {short(prediction)}"
        try:
            value = float(self.function(label, prediction))
        except Exception as error:  # whatever somebody else's code raises
            raise LossError(
                f"the loss {self.name!r} failed {pair}: {type(error).__name__}: {error}"
            ) from error
        wrong = self._wrong(value)
        if wrong:
            raise LossError(f"the loss {self.name!r} gave {value} {pair}: {wrong}")
        return value

    def _wrong(self, value: float) -> str:
        if not 0 <= value <= self.bound:  # true of NaN as well
            return f"it declares values from 0 to {self.bound:g}"
        if self.binary and value not in (0, 1):
            return "it declares to be binary, 0 or 1 only"
        return ""


@dataclass(frozen=True)
class OwnBatchLoss(OwnLoss):
    """The same, for an object that also computes many pairs at once."""

    batch: Callable[[Sequence[str], Sequence[str]], Any]

    def many(self, labels: Sequence[str], predictions: Sequence[str]) -> Floats:
        """Losses (n,) of n pairs."""
        try:
            values = np.asarray(self.batch(labels, predictions), dtype=np.float64)
        except Exception as error:  # whatever somebody else's code raises
            raise LossError(f"the loss {self.name!r} failed: {type(error).__name__}: {error}") from error
        if values.shape != (len(labels),):
            raise LossError(f"the loss {self.name!r} gave {values.shape} values for {len(labels)} pairs")
        for row, value in enumerate(values.tolist()):
            wrong = self._wrong(value)
            if wrong:
                raise LossError(f"row {row}: the loss {self.name!r} gave {value}: {wrong}")
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
            raise LossError(
                f"{path!r} cannot be made with the parameters {sorted(params)}: "
                f"{type(error).__name__}: {error}"
            ) from error
    elif params:
        raise LossError(f"{path!r} is an object and takes no parameter {sorted(params)[0]!r}; name its class")
    bound, binary = getattr(found, "bound", None), getattr(found, "binary", None)
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not isfinite(bound) or bound <= 0:
        raise LossError(
            f"{path!r} must declare 'bound', the largest value it can take, as a number above 0, "
            f"not {bound!r}"
        )
    if not isinstance(binary, bool):
        raise LossError(
            f"{path!r} must declare 'binary', whether it gives 0 and 1 only, as true or false, not {binary!r}"
        )
    if binary and bound != 1:
        raise LossError(
            f"{path!r} declares to be binary with the bound {bound:g}; a binary loss has the bound 1"
        )
    if not callable(found):
        raise LossError(f"{path!r} cannot be called with a label and a prediction")
    batch = getattr(found, "many", None)
    if callable(batch):
        return OwnBatchLoss(path, float(bound), binary, found, batch)
    return OwnLoss(path, float(bound), binary, found)
