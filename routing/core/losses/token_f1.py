"""`token_f1`: the share of words in which two texts differ (1 less the F1 of question answering)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from routing.core.losses.base import Loss, flag, known_parameters
from routing.core.messages import gettext_noop

TOKEN = re.compile(r"\w+|[^\w\s]")
"""A word, or one sign that stands for itself: in code both tell."""


@dataclass(frozen=True)
class TokenF1:
    """1 - 2 |A and B| / (|A| + |B|) of the words and signs A and B, each as often as it occurs; in [0, 1].

    Order and white space do not count. Two texts without any cost 0. (Rajpurkar et al. 2016, "SQuAD", their
    F1, with articles and punctuation kept.)
    """

    ignore_case: bool = False
    name: str = "token_f1"
    bound: float = 1.0
    binary: bool = False
    transitive: bool = True
    quick: bool = True

    def __call__(self, label: str, prediction: str) -> float:
        truth, guess = self._tokens(label), self._tokens(prediction)
        size = truth.total() + guess.total()
        return 1 - 2 * (truth & guess).total() / size if size else 0.0

    def _tokens(self, text: str) -> Counter[str]:
        text = unicodedata.normalize("NFC", text)
        return Counter(TOKEN.findall(text.casefold() if self.ignore_case else text))


@dataclass(frozen=True)
class TokenF1Kind:
    """`TokenF1` with its switch."""

    name: str = "token_f1"
    title: str = gettext_noop("Share of words that differ")
    summary: str = gettext_noop(
        "How many of the words and signs two texts do not share, whatever their order; it needs no model."
    )
    suits: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(
        default_factory=lambda: {
            "ignore_case": gettext_noop("whether capitals make no difference (default false)")
        }
    )

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        return TokenF1(ignore_case=flag(params, "ignore_case", False))
