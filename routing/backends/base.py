"""What a backend is: one small class that answers for a list of items."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from annotation.errors import HypacError, InputError
from annotation.models import Item


class BackendError(HypacError):
    """A model cannot answer at all; `permanent` is False where it may later. One bad item is no such
    error."""


@dataclass(frozen=True)
class Answer:
    """What a model said about one item.

    `value` is None where there is no usable answer, and `reason` then says why. `raw` is what uncertainty
    scores are computed from. `cost` is None where the source's price per label holds.
    """

    value: str | None
    reason: str = ""
    raw: dict[str, Any] = field(default_factory=dict)
    tokens_in: int | None = None
    tokens_out: int | None = None
    finish_reason: str = ""
    # A measurement, and not part of what was answered.
    latency_ms: float | None = field(default=None, compare=False)
    cost: Decimal | None = None


class Backend(Protocol):
    """One way to run a source, made from the source's params.

    The constructor raises InputError, its `where` naming the param, where the params cannot be used.
    """

    @property
    def default_score(self) -> str:
        """Name of the uncertainty score that fits its answers."""

    @property
    def fields(self) -> frozenset[str]:
        """What `Answer.raw` holds that uncertainty scores read; empty where no score can be computed."""

    @property
    def usage(self) -> frozenset[str]:
        """What is known of the use of a call: names of routing.core.costs that a cost function may need."""

    def __init__(self, params: dict[str, Any]) -> None: ...

    def check(self) -> None:
        """Try out what the params point to, so that a mistake shows before a run rests on it.

        Raises InputError, its `where` naming the param. It may take seconds.
        """

    def fingerprint(self) -> str:
        """SHA-256 of everything that the answers depend on. Raises BackendError where it cannot be known."""

    def hidden_columns(self) -> frozenset[str]:
        """Columns of the imported data that are model output and must not be seen before the analysis."""

    def predict(self, items: Sequence[Item]) -> list[Answer]:
        """One answer per item, in their order, the same whatever other items come along."""


def digest(**parts: Any) -> str:
    """Fingerprint of named JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def text_param(params: dict[str, Any], name: str, *, required: bool = False) -> str:
    """A param that is text. Raises InputError naming it."""
    value = params.get(name) or ""
    if not isinstance(value, str):
        raise InputError("This must be text.", where=name)
    if required and not value.strip():
        raise InputError("This is needed.", where=name)
    return value


def refuse_unknown(params: dict[str, Any], known: Sequence[str]) -> None:
    """Raise InputError where `params` has something that the backend does not know: a typing error, most
    likely.
    """
    if unknown := sorted(set(params) - set(known)):
        raise InputError(
            f"This is no parameter of the backend; it knows {', '.join(known)}.", where=unknown[0]
        )
