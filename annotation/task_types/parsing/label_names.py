"""The labels of a project as models write them."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from annotation.task_types.base import Choices, Reading, unknown_label
from annotation.task_types.parsing.markers import bare

_QUOTES = " \t\n\"'`*_()[]{}\u201c\u201d\u2018\u2019\u00ab\u00bb\u3010\u3011\u300c\u300d"
_ENDS = _QUOTES + ".,:;!\u2026\u3002\u3001\uff0c\uff1b\uff1a\uff01"
# "non-toxic", "Non toxic" and "non_toxic" are one label; "-7" is not "7".
_JOINED = re.compile(r"(?<=[^\W\d_])(?:[-\u2010-\u2013_]| {2,})(?=[^\W\d_])")


class Names:
    """Every spelling of the labels, exact before folded; what two labels share names neither."""

    def __init__(self, choices: Choices) -> None:
        by_name: dict[str, str | None] = {}
        for key, name in choices:
            by_name[name] = None if name in by_name else key
        self.exact: dict[str, str] = {name: key for name, key in by_name.items() if key is not None}
        self.exact |= {key: key for key, _ in choices}
        self.folded: dict[str, str | None] = {}
        for spelling, key in self.exact.items():
            folded = fold(spelling)
            shared = folded in self.folded and self.folded[folded] != key
            self.folded[folded] = None if shared else key
        self.folded.pop("", None)

    def get(self, text: str) -> str | None:
        """The key of the label that a text is, or of "key: name"."""
        exact = self.exact.get(text) or self.exact.get(text.strip()) or self.exact.get(bare(text))
        if exact := exact or self.folded.get(fold(text)):
            return exact
        first, mark, second = text.partition(":")
        if not mark or not (key := self.folded.get(fold(first))):
            return None
        return key if self.folded.get(fold(second)) == key else None


@lru_cache(maxsize=64)
def names_of(choices: Choices) -> Names:
    return Names(choices)


def fold(text: str) -> str:
    """Without case, quotation marks and emphasis around it, punctuation behind it, and with one space where
    words are joined by a hyphen, an underscore or more spaces.
    """
    text = unicodedata.normalize("NFKC", text).lstrip(_QUOTES).rstrip(_ENDS).casefold()
    return " ".join(_JOINED.sub(" ", text).split())


def as_text(value: Any) -> str:
    """An entry of JSON as text, "" where it is neither text nor a truth value."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else ""


def keys_of(entries: Iterable[Any], names: Names) -> Reading:
    """The keys of all entries; not usable where one is no label."""
    keys = set()
    for entry in entries:
        if (key := names.get(as_text(entry))) is None:
            return Reading(None, unknown(as_text(entry)))
        keys.add(key)
    return Reading(sorted(keys))


def unknown(text: str) -> str:
    text = " ".join(text.split())
    return unknown_label(repr(text if len(text) <= 60 else text[:60] + "..."), text)
