"""`set_equal` and `jaccard`: several labels per item."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from routing.core.losses.base import Loss, LossError, known_parameters, short
from routing.core.messages import declare, gettext_noop, say

SEPARATOR: Mapping[str, str] = {
    "separator": gettext_noop(
        'sign between the labels of a plain text, such as "|"; without one a value is a JSON list'
    )
}


def read_set(text: str, separator: str | None = None) -> frozenset[str] | None:
    """The set of labels that ``text`` is; None where it is none.

    A JSON list of texts and numbers, whose canonical form is sorted (["cat","dog"]); or, with a separator,
    their plain text ("cat|dog"), in which blanks around a label do not count.  Order and repetition never
    matter.
    """
    if separator is not None:
        return frozenset(part.strip() for part in text.split(separator) if part.strip())
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, list) or any(isinstance(v, dict | list) or v is None for v in values):
        return None
    return frozenset(value if isinstance(value, str) else json.dumps(value) for value in values)


def _both(label: str, prediction: str, separator: str | None) -> tuple[frozenset[str], frozenset[str] | None]:
    truth = read_set(label, separator)
    if truth is None:
        raise LossError(say("sets.no_list", label=short(label)))
    return truth, read_set(prediction, separator)


@dataclass(frozen=True)
class SetEqual:
    """0 where both name the same labels, else 1; a prediction that is no list of labels is wrong."""

    separator: str | None = None
    name: str = "set_equal"
    bound: float = 1.0
    binary: bool = True
    transitive: bool = True
    quick: bool = True

    def __call__(self, label: str, prediction: str) -> float:
        truth, guess = _both(label, prediction, self.separator)
        return 0.0 if guess == truth else 1.0


@dataclass(frozen=True)
class Jaccard:
    """1 - |A and B| / |A or B|, and 0 for two empty sets; a prediction that is no list of labels costs 1."""

    separator: str | None = None
    name: str = "jaccard"
    bound: float = 1.0
    binary: bool = False
    transitive: bool = True
    quick: bool = True

    def __call__(self, label: str, prediction: str) -> float:
        truth, guess = _both(label, prediction, self.separator)
        if guess is None:
            return 1.0
        union = len(truth | guess)
        return 1 - len(truth & guess) / union if union else 0.0


def _separator(params: Mapping[str, Any]) -> str | None:
    value = params.get("separator")
    if value is not None and (not isinstance(value, str) or not value):
        raise LossError(say("sets.separator", value=repr(value)))
    return value


@dataclass(frozen=True)
class SetEqualKind:
    """`SetEqual` with its separator."""

    name: str = "set_equal"
    title: str = gettext_noop("All labels right")
    summary: str = gettext_noop("Several labels per item: right only if all of them agree.")
    suits: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=lambda: SEPARATOR)

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        return SetEqual(_separator(params))


@dataclass(frozen=True)
class JaccardKind:
    """`Jaccard` with its separator."""

    name: str = "jaccard"
    title: str = gettext_noop("Share of labels that differ")
    summary: str = gettext_noop("Several labels per item: the share of labels in which the two do not agree.")
    suits: tuple[str, ...] = ("multiple_choice",)
    parameters: Mapping[str, str] = field(default_factory=lambda: SEPARATOR)

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        return Jaccard(_separator(params))


SAYS = {
    "sets.no_list": gettext_noop(
        'the label %(label)s is not a JSON list of labels such as ["cat","dog"]; correct it, or give the '
        "parameter 'separator' where labels are plain text"
    ),
    "sets.separator": gettext_noop(
        "the parameter 'separator' must be a text of at least one sign, not %(value)s"
    ),
}
declare(SAYS)
