"""Losses l(label of record, prediction) in [0, B].  A new one is one file and one line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from routing.core.arrays import Floats
from routing.core.losses.base import (
    IN_ROW,
    BatchLoss,
    Loss,
    LossCodeError,
    LossError,
    LossKind,
    LossUnavailableError,
    alike_by,
    outside_range,
    sorts_labels,
)
from routing.core.losses.boxes import BoxesRightKind, BoxF1Kind
from routing.core.losses.cosine_distance import CosineDistanceKind
from routing.core.losses.exact_match import ExactMatchKind
from routing.core.losses.imports import is_path
from routing.core.losses.looked_up import LookedUpLoss, LossNotComputedError, is_quick, looked_up_if_slow
from routing.core.losses.masks import MaskDiceKind, MasksRightKind
from routing.core.losses.math_equivalence import MathEquivalenceKind
from routing.core.losses.measured_elsewhere import MeasuredElsewhere, MeasuredElsewhereKind
from routing.core.losses.numeric import NumericKind
from routing.core.losses.own import own_loss
from routing.core.losses.sets import JaccardKind, SetEqualKind
from routing.core.losses.token_f1 import TokenF1Kind
from routing.core.losses.zero_one import ZeroOneKind
from routing.core.messages import declare, gettext_noop, say
from routing.core.registry import Registry

LOSSES: Registry[LossKind] = Registry(
    "loss",
    ZeroOneKind(),
    ExactMatchKind(),
    NumericKind(),
    MathEquivalenceKind(),
    SetEqualKind(),
    JaccardKind(),
    CosineDistanceKind(),
    TokenF1Kind(),
    BoxF1Kind(),
    BoxesRightKind(),
    MaskDiceKind(),
    MasksRightKind(),
    MeasuredElsewhereKind(),
)

__all__ = [
    "LOSSES",
    "Loss",
    "LossCodeError",
    "LossError",
    "LossKind",
    "LossNotComputedError",
    "LossUnavailableError",
    "MeasuredElsewhere",
    "alike_by",
    "each_loss",
    "imported_paths",
    "is_quick",
    "losses_of",
    "make_loss",
    "sorts_labels",
]


def imported_paths(name: str, params: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Names of the Python objects that `make_loss` would import, and so the code that it would run."""
    own = [name] if is_path(name) else []
    embedder = (params or {}).get("embedder")
    if name == CosineDistanceKind.name and isinstance(embedder, str):
        own.append(embedder)
    return tuple(own)


def make_loss(name: str, params: Mapping[str, Any] | None = None, *, allow_import: bool = True) -> Loss:
    """The loss called ``name`` with its parameters; the same arguments give the same object.

    Where slow losses may not be computed (`routing.core.losses.looked_up`), it is what looks one up.

    Parameters
    ----------
    name
        A registered name, or "package.module:attribute" for a loss of one's own (see `own_loss`).
    params
        Plain JSON.
    allow_import
        False where ``name`` and ``params`` come from somebody who is not trusted to run code.

    Raises
    ------
    UnknownNameError
        No loss is called so; the message lists those that are.
    LossError
        A parameter cannot be used, or something would have to be imported that may not be.
    """
    if not allow_import:
        for path in imported_paths(name, params):
            raise LossError(say("loss.not_allowed", loss=repr(name), path=repr(path)))
    try:
        text = json.dumps(dict(params or {}), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise LossError(say("loss.not_json", loss=repr(name), error=str(error))) from error
    return looked_up_if_slow(_made(name, text), name, text)


@lru_cache(maxsize=256)
def _made(name: str, text: str) -> Loss:
    params: dict[str, Any] = json.loads(text)
    return own_loss(name, params) if is_path(name) else LOSSES.get(name).make(params)


def losses_of(loss: Loss, labels: Sequence[str], predictions: Sequence[str]) -> Floats:
    """Losses (n,) of n pairs, each checked to lie in [0, B].

    Raises
    ------
    LossError
        The lengths differ, or a pair has no such loss; the message names its row, counted from 0.
    """
    if len(labels) != len(predictions):
        raise LossError(say("loss.no_pairs", labels=len(labels), predictions=len(predictions)))
    if isinstance(loss, BatchLoss):
        values = loss.many(labels, predictions)
    else:
        values = np.empty(len(labels))
        for row, pair in enumerate(zip(labels, predictions, strict=True)):
            try:
                values[row] = loss(*pair)
            except LossError as error:
                raise LossError(say(IN_ROW, row=row, error=error.said)) from error
    outside = np.flatnonzero(~((values >= 0) & (values <= loss.bound)))  # NaN is outside as well
    if len(outside):
        row = int(outside[0])
        raise LossError(say(IN_ROW, row=row, error=outside_range(loss, values[row])))
    return values


def each_loss(loss: Loss, pairs: Sequence[tuple[str, str]]) -> list[float | LossError]:
    """Of each pair of a label and a prediction its loss, or why it has none."""
    if isinstance(loss, LookedUpLoss):
        loss.fetch(pairs)  # together
    return [_loss_or_why(loss, *pair) for pair in pairs]


def _loss_or_why(loss: Loss, label: str, prediction: str) -> float | LossError:
    try:
        return float(losses_of(loss, [label], [prediction])[0])
    except LossError as error:
        return error


SAYS = {
    "loss.not_allowed": gettext_noop(
        "computing the loss %(loss)s would run the code of %(path)s, which is not allowed"
    ),
    "loss.not_json": gettext_noop("the parameters of the loss %(loss)s are not plain JSON: %(error)s"),
    "loss.no_pairs": gettext_noop("%(labels)s labels and %(predictions)s predictions do not make pairs"),
}
declare(SAYS)
