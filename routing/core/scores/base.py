"""What a score is, and what becomes of an answer that has none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isnan
from typing import Any, Protocol, runtime_checkable

from routing.core.messages import CoreError, declare, gettext_noop, say
from routing.core.reasons import CUT_OFF, NO_ANSWER, ScoreReason, score_missing

ROUNDING = 1e-6
"""A float32 softmax may give a probability of 1.0000001."""


@dataclass(frozen=True)
class ItemScore:
    """Uncertainty of one prediction: ``u`` in [0, 1], and why it is 1 where no usable score exists ('' if it
    does).
    """

    u: float
    reason: str = ""

    @property
    def usable(self) -> bool:
        return not self.reason


class ScoreError(CoreError):
    """Parameters of a score that cannot be used; the message names the one at fault."""


class Score(Protocol):
    """Computes U from what is stored of one prediction; never calls a model, never raises on a bad value.

    ``prediction`` maps names to what was stored: those in `ScoreKind.reads`, and ``label`` (the answer, as
    the key of a label), ``reason`` (why there is none), ``finish_reason`` and ``allowed`` (spelling -> key
    of every label that may be given).
    """

    def __call__(self, prediction: Mapping[str, object]) -> ItemScore: ...


class ScoreKind(Protocol):
    """A score before its parameters are known: one entry of the registry."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """A few words for a list of choices."""

    @property
    def summary(self) -> str:
        """One plain sentence for somebody who has to choose."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Stored fields, any one of which is enough; empty where the score is made of other scores."""

    @property
    def parameters(self) -> Mapping[str, str]:
        """What can be set: name -> one sentence."""

    def make(self, params: Mapping[str, Any]) -> Score:
        """The score with these parameters; raises `ScoreError` naming one that cannot be used."""


@dataclass(frozen=True)
class Example:
    """A stored prediction of an item whose label is known, and whether it was wrong."""

    prediction: Mapping[str, object]
    wrong: bool


Examples = Callable[[], Sequence[Example]]
"""Gives the examples that a score is fitted on; only called where one is fitted."""
Part = tuple[str, Mapping[str, Any]]
"""Name and parameters of a score that another is made of."""


@runtime_checkable
class Composite(Protocol):
    """A kind that is made of other scores, and may have to be fitted before it can be made."""

    def parts(self, params: Mapping[str, Any]) -> list[Part]:
        """The scores it is made of; raises `ScoreError`."""

    def fit(self, params: Mapping[str, Any], examples: Examples) -> dict[str, Any]:
        """Parameters with what is learnt from the examples; raises `ScoreError` where it cannot be."""


NO_NUMBER = "score_no_number"


def unusable(reason: str) -> ItemScore:
    """U = 1, the most uncertain there is, with the reason."""
    return ItemScore(1.0, reason)


def refused(prediction: Mapping[str, object]) -> str:
    """Why no score of this prediction can be used, whatever its fields say; '' where one may."""
    if prediction.get("finish_reason") == "length":
        return CUT_OFF
    if "label" in prediction and prediction["label"] is None:
        reason = prediction.get("reason") or NO_ANSWER
        return reason if isinstance(reason, str) else str(reason)
    return ""


def number_or_reason(value: object, what: str) -> float | str:
    """``value`` as a float in [0, 1], or the reason why it is none.  Text such as "0.93" is a number."""
    number = float_or_reason(value, what)
    if isinstance(number, float) and not 0.0 <= number <= 1.0:
        return ScoreReason(f"{what} is outside [0, 1]: {number:g}", "score_outside", f"{number:g}")
    return number


def probability_or_reason(value: object, what: str) -> float | str:
    """As `number_or_reason`, but forgives what rounding puts above 1."""
    if isinstance(value, float) and 1.0 < value <= 1.0 + ROUNDING:
        return 1.0
    return number_or_reason(value, what)


def float_or_reason(value: object, what: str) -> float | str:
    """``value`` as a float that may be infinite, or the reason why it is none."""
    if value is None or value == "":
        return score_missing(f"{what} is missing")
    if isinstance(value, bool):
        return ScoreReason(f"{what} is not a number: {value!r}", NO_NUMBER, repr(value))
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        text = str(value)[:40]
        return ScoreReason(f"{what} is not a number: {text!r}", NO_NUMBER, text)
    return ScoreReason(f"{what} is NaN", NO_NUMBER) if isnan(number) else number


def complement(share: float) -> float:
    """1 - ``share``, of ``share`` as it is written: 1 - 0.982 is 0.018 and not 0.018000000000000016, so that
    scores are written in as few digits as the confidences they are made of.
    """
    return float(1 - Decimal(repr(float(share))))


def entries_of(value: object) -> list[object]:
    """The entries of a stored list; empty where nothing, or no list, is stored."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else []


def spelled(prediction: Mapping[str, object], text: object) -> str:
    """The key of the label that ``text`` spells, or the text itself where it spells none."""
    allowed = prediction.get("allowed")
    stripped = str(text).strip()
    if isinstance(allowed, Mapping):
        return str(allowed.get(str(text), allowed.get(stripped, stripped)))
    return stripped


def refuse_unknown(kind: str, params: Mapping[str, Any], known: Mapping[str, str]) -> None:
    """Raise `ScoreError` where ``params`` holds something that the score does not know."""
    if unknown := sorted(set(params) - set(known)):
        code = "score.parameter_unknown" if known else "score.no_parameters"
        raise ScoreError(say(code, score=repr(kind), name=repr(unknown[0]), known=", ".join(known)))


def score_key(name: str, params: Mapping[str, Any]) -> str:
    """The name under which values of a score are stored: other parameters are another score.

    The name alone without parameters, else followed by the first 16 hexadecimal digits of the SHA-256 of
    the parameters as JSON with sorted keys and every number as a float.
    """
    if not params:
        return name
    text = json.dumps(_plain(params), sort_keys=True, separators=(",", ":"))
    return f"{name}#{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _plain(value: Any) -> Any:
    # A database may hand back 1 for 1.0, and must not thereby make another score of it.
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


SAYS = {
    "score.parameter_unknown": gettext_noop(
        "the score %(score)s has no parameter %(name)s; it knows %(known)s"
    ),
    "score.no_parameters": gettext_noop("the score %(score)s has no parameter %(name)s; it takes none"),
}
declare(SAYS)
