"""`exact_match`: the 0-1 loss after a stated normalisation of both texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from routing.core.losses.base import Loss, flag, known_parameters
from routing.core.messages import gettext_noop

ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)


@dataclass(frozen=True)
class ExactMatch:
    """1 where the normalised texts differ, else 0.

    Normalised, in this order: Unicode NFKC; case folded, if case is ignored; punctuation (Unicode categories
    P*) removed and English articles removed, if they are ignored; white space trimmed, and every run of it
    made one blank.
    """

    ignore_case: bool = True
    ignore_punctuation: bool = False
    ignore_articles: bool = False
    name: str = "exact_match"
    bound: float = 1.0
    binary: bool = True
    transitive: bool = True
    quick: bool = True

    def __call__(self, label: str, prediction: str) -> float:
        return 0.0 if self.normalised(label) == self.normalised(prediction) else 1.0

    def normalised(self, text: str) -> str:
        """The form in which ``text`` is compared."""
        text = unicodedata.normalize("NFKC", text)
        if self.ignore_case:
            # Folding can leave the normal form (a capital I with a dot, for one), so normalise once more.
            text = unicodedata.normalize("NFKC", text.casefold())
        if self.ignore_punctuation:
            text = "".join(sign for sign in text if not unicodedata.category(sign).startswith("P"))
        if self.ignore_articles:
            text = ARTICLES.sub(" ", text)
        return " ".join(text.split())


@dataclass(frozen=True)
class ExactMatchKind:
    """`ExactMatch` with its three switches."""

    name: str = "exact_match"
    title: str = gettext_noop("The same text")
    summary: str = gettext_noop("A text is right or wrong, whatever its capitals and spaces.")
    suits: tuple[str, ...] = ("math",)
    parameters: Mapping[str, str] = field(
        default_factory=lambda: {
            "ignore_case": gettext_noop("whether capitals make no difference (default true)"),
            "ignore_punctuation": gettext_noop(
                "whether punctuation makes none, a minus sign included (default false)"
            ),
            "ignore_articles": gettext_noop("whether the words a, an and the make none (default false)"),
        }
    )

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        return ExactMatch(
            ignore_case=flag(params, "ignore_case", True),
            ignore_punctuation=flag(params, "ignore_punctuation", False),
            ignore_articles=flag(params, "ignore_articles", False),
        )
