"""The choices of a project as what people, models and columns write may name them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

Choices = tuple[tuple[str, str], ...]
"""(key, name) in their order."""

SEPARATORS = re.compile(r"[;,|\n]")
# Repetitions and white space in a list of labels, which may be there beside every spelling of each.
SPARE_CHARACTERS, SPARE_LABELS = 1_000, 20
# Of a character of JSON outside ASCII, and the marks around an entry: "\\u00e4", ...
_ESCAPED, _AROUND = 6, 4


@dataclass(frozen=True)
class Labels:
    """`keys` has every spelling of a choice with its key, and is empty where there are no choices."""

    keys: Mapping[str, str] = field(default_factory=dict)

    def key(self, text: str) -> str | None:
        return self.keys.get(text) or self.keys.get(text.strip())

    @cached_property
    def beginnings(self) -> frozenset[str]:
        """Of the labels with separators in them: up to each of these, included."""
        return frozenset(
            spelling[: match.end()].lstrip()
            for spelling in self.keys
            for match in SEPARATORS.finditer(spelling)
        )

    @cached_property
    def longest(self) -> int:
        """Characters of a list of all spellings, however it is written."""
        return SPARE_CHARACTERS + sum(_ESCAPED * len(spelling) + _AROUND for spelling in self.keys)

    @property
    def most_labels(self) -> int:
        return SPARE_LABELS + 2 * len(self.keys)
