"""The paper's logits-based score (Section 5.1): 1 - the mean probability of the generated tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, fsum
from typing import Any, ClassVar

from routing.core.messages import gettext_noop
from routing.core.reasons import score_missing
from routing.core.scores.base import (
    ROUNDING,
    ItemScore,
    Score,
    complement,
    entries_of,
    float_or_reason,
    probability_or_reason,
    refuse_unknown,
    unusable,
)


@dataclass(frozen=True)
class Logits:
    """U = 1 - (1/l) sum_j P(y_j | y_1, ..., y_{j-1}, x) over the l generated tokens.

    From ``token_probabilities``, else from ``token_logprobs`` (natural logarithms): one number per token.
    """

    name: str = "logits"
    title: str = gettext_noop("Mean token probability")
    summary: str = gettext_noop("1 minus the mean probability of the tokens that a language model generated.")
    reads: tuple[str, ...] = ("token_probabilities", "token_logprobs")
    parameters: ClassVar[Mapping[str, str]] = {}

    def make(self, params: Mapping[str, Any]) -> Score:
        refuse_unknown(self.name, params, self.parameters)
        return logits


def logits(prediction: Mapping[str, object]) -> ItemScore:
    """The score of one prediction."""
    values: list[float] = []
    for entry in entries_of(prediction.get("token_probabilities")):
        value = probability_or_reason(entry, "a token probability")
        if isinstance(value, str):
            return unusable(value)
        values.append(value)
    if not values:
        for entry in entries_of(prediction.get("token_logprobs")):
            value = from_logarithm(entry, "a token's log-probability")
            if isinstance(value, str):
                return unusable(value)
            values.append(value)
    if not values:
        return unusable(score_missing("the token probabilities are missing"))
    # fsum rounds once: the score does not depend on the order in which a library adds up.
    return ItemScore(max(0.0, complement(fsum(values) / len(values))))


def from_logarithm(value: object, what: str) -> float | str:
    """exp of a natural logarithm of at most 0 (minus infinity is probability 0), or why there is none."""
    number = float_or_reason(value, what)
    if isinstance(number, str):
        return number
    return f"{what} is above 0: {number:g}" if number > ROUNDING else exp(min(number, 0.0))
