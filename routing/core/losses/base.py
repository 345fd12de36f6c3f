"""What a loss is, and what its kinds share in reading their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable

from routing.core.arrays import Floats
from routing.core.exact import NumberError, to_decimal
from routing.core.messages import CoreError, Message, declare, gettext_noop, say

SHOWN = 60
"""Characters of a label or prediction that an error message repeats."""


IN_ROW = "loss.row"
"""Code of a `LossError` of one of several pairs."""


class LossError(CoreError):
    """A loss that cannot be made or computed; the message names the parameter or the value."""


class LossCodeError(LossError):
    """Somebody else's code that computes the loss cannot be imported, or raised an exception."""


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


def sorts_labels(loss: Loss) -> bool:
    """Whether two labels that both cost nothing against a third cost nothing against each other, so that what
    the loss tells apart are kinds of labels.

    A loss declares it by a true ``transitive``, which is no part of `Loss`: where nothing is declared, it may
    be otherwise, as it is with a tolerance.
    """
    return getattr(loss, "transitive", False) is True


def alike_by(loss: Loss) -> Loss:
    """The loss by which two labels are the same where it is 0: mostly itself.

    A loss that is hardly ever 0 between what two people give declares another one as ``alike``.
    """
    found: Loss = getattr(loss, "alike", loss)
    return found


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
            code = "loss.parameter_unknown" if known else "loss.no_parameters"
            raise LossError(say(code, loss=kind.name, name=repr(name), known=known))


def flag(params: Mapping[str, Any], name: str, default: bool) -> bool:
    """A parameter that is true or false."""
    value = params.get(name, default)
    if not isinstance(value, bool):
        raise LossError(say("loss.flag", name=repr(name), value=repr(value)))
    return value


def amount(params: Mapping[str, Any], name: str, default: str) -> Decimal:
    """A parameter that is a number of at least 0, read exactly."""
    try:
        value = to_decimal(params.get(name, default))
    except NumberError as error:
        raise LossError(say("loss.parameter", name=repr(name), error=error.said)) from error
    if value < 0:
        raise LossError(say("loss.amount", name=repr(name), value=str(value)))
    return value


def whole_number(params: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    """A parameter that is a whole number from ``least`` to ``most``."""
    value = params.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise LossError(say("loss.whole_number", name=repr(name), least=least, most=most, value=repr(value)))
    return value


def outside_range(loss: Loss, value: float) -> Message:
    """That a loss gave ``value``, which is none of those that it declares."""
    return say("loss.outside", loss=repr(loss.name), value=str(value), bound=f"{loss.bound:g}")


def short(text: str) -> str:
    """``text`` for an error message, quoted and cut."""
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")


SAYS = {
    "loss.parameter_unknown": gettext_noop(
        "the loss '%(loss)s' has no parameter %(name)s; it knows: %(known)s"
    ),
    "loss.no_parameters": gettext_noop(
        "the loss '%(loss)s' has no parameter %(name)s; it takes none; leave it out"
    ),
    "loss.flag": gettext_noop("the parameter %(name)s must be true or false, not %(value)s"),
    "loss.parameter": gettext_noop("the parameter %(name)s: %(error)s"),
    "loss.amount": gettext_noop("the parameter %(name)s must be at least 0, not %(value)s"),
    "loss.whole_number": gettext_noop(
        "the parameter %(name)s must be a whole number from %(least)s to %(most)s, not %(value)s"
    ),
    "loss.row": gettext_noop("row %(row)s: %(error)s"),
    "loss.outside": gettext_noop("the loss %(loss)s gave %(value)s, outside its range [0, %(bound)s]"),
}
declare(SAYS)
