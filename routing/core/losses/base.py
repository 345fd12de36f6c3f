"""What a loss is, and what its kinds share in reading their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable

from routing.core.arrays import Floats
from routing.core.exact import to_decimal

SHOWN = 60
"""Characters of a label or prediction that an error message repeats."""


class LossError(ValueError):
    """A loss that cannot be made or computed; the message names the parameter or the value."""


class LossUnavailableError(LossError):
    """What computes the loss failed, a server for one, whatever the values: it may be there again later."""


class Loss(Protocol):
    """A loss l(label of record, prediction) between two stored label values, both texts.

    ``bound`` is B, the largest value it can take; ``binary`` says that it takes the values 0 and 1 only,
    which is what the exact counting bounds need.  A missing prediction never reaches a loss: the item then
    goes to the next source, at last to people, whose loss is 0.
    """

    @property
    def name(self) -> str: ...

    @property
    def bound(self) -> float: ...

    @property
    def binary(self) -> bool: ...

    def __call__(self, label: str, prediction: str) -> float:
        """The loss in [0, B]; raises `LossError` where the label of record itself cannot be read."""


@runtime_checkable
class BatchLoss(Protocol):
    """A loss that is much faster on many pairs at once."""

    def many(self, labels: Sequence[str], predictions: Sequence[str]) -> Floats:
        """Losses (n,) of n pairs, equal to those of one call each."""


class LossKind(Protocol):
    """A loss before its parameters are known: one entry of the registry."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """A few words for a list of choices."""

    @property
    def summary(self) -> str:
        """One plain sentence for somebody who has to choose."""

    @property
    def suits(self) -> tuple[str, ...]:
        """Names of the task types for which it can be chosen, beside those that name it themselves."""

    @property
    def parameters(self) -> Mapping[str, str]:
        """What each parameter means, by name, in a few words."""

    def make(self, params: Mapping[str, Any]) -> Loss:
        """The loss with these parameters; raises `LossError` naming one that cannot be used."""


def known_parameters(kind: LossKind, params: Mapping[str, Any]) -> None:
    """Raise `LossError` at the first of ``params`` that ``kind`` does not have."""
    for name in sorted(params):
        if name not in kind.parameters:
            known = ", ".join(kind.parameters)
            advice = f"it knows: {known}" if known else "it takes none; leave it out"
            raise LossError(f"the loss '{kind.name}' has no parameter {name!r}; {advice}")


def flag(params: Mapping[str, Any], name: str, default: bool) -> bool:
    """A parameter that is true or false."""
    value = params.get(name, default)
    if not isinstance(value, bool):
        raise LossError(f"the parameter {name!r} must be true or false, not {value!r}")
    return value


def amount(params: Mapping[str, Any], name: str, default: str) -> Decimal:
    """A parameter that is a number of at least 0, read exactly."""
    try:
        value = to_decimal(params.get(name, default))
    except ValueError as error:
        raise LossError(f"the parameter {name!r}: {error}") from error
    if value < 0:
        raise LossError(f"the parameter {name!r} must be at least 0, not {value}")
    return value


def whole_number(params: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    """A parameter that is a whole number from ``least`` to ``most``."""
    value = params.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise LossError(
            f"the parameter {name!r} must be a whole number from {least} to {most}, not {value!r}"
        )
    return value


def short(text: str) -> str:
    """``text`` for an error message, quoted and cut."""
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")
