"""Answers that are one label or several."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from routing.backends.context import TaskSpec
from routing.prompts.base import Reading
from routing.prompts.markers import after_marker, bare, boxed, from_json, last_line

Choices = tuple[tuple[str, str], ...]

MAX_PIECES = 2_000
"""Of a list, separators counted; more than the labels of any project."""
MAX_SENTENCE = 300
"""Characters: a label is looked for within a sentence, not within an essay."""
_EDGES = " \t\n\"'`*_.,:;!?()[]{}<>\u201c\u201d\u2018\u2019\u00ab\u00bb\u2026"
_NOT = re.compile(r"\b(?:not|no|never|neither|nor|none|without|cannot)\b|n['\u2019]t\b", re.IGNORECASE)
_NONE = frozenset({"none", "none of them", "none of the above", "no label", "no labels", "nothing", "n/a"})
_BULLET = re.compile(r"^[ \t]*(?:[-*\u2022+]|[0-9]{1,3}[.)])[ \t]+")


def read_choice(text: str, spec: TaskSpec) -> Reading:
    """The one label that an answer names.

    In turn: the answer as a whole, in JSON, in \\boxed{}, after "answer:", its last line; each must be the
    key or the name of a label, give or take case, quotation marks and punctuation. Failing that, the only
    label that occurs in the one sentence that there is, with no "not" before it.
    """
    names = _spellings(spec.choices)
    value = from_json(text)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, list | dict):
        several = isinstance(value, list) and _several(value, names).value
        return Reading(None, "names several labels" if several else "no label of the project")
    places = [text] if value is None else [_as_text(value)]
    marked = boxed(text) or after_marker(text)
    places += [place for place in (marked, last_line(text)) if place]
    for place in places:
        if key := names.get(place):
            return Reading(key)
    return _in_sentence(marked or text, spec)


def read_choices(text: str, spec: TaskSpec) -> Reading:
    """The labels of a list: JSON, or separated by line breaks, semicolons, commas or "and". Every entry must
    be a label. An empty list, or "none", says that none fits.
    """
    names = _spellings(spec.choices)
    value = from_json(text)
    if isinstance(value, str):
        text, value = value.strip(), None
    if not text:
        return Reading(None, "empty answer")
    if value is not None:
        return _several(value if isinstance(value, list) else [value], names)
    marked = boxed(text) or after_marker(text)
    readings = [_listed(place, names) for place in (text, marked, last_line(text)) if place]
    return next((reading for reading in readings if reading.value is not None), readings[1 if marked else 0])


class _Names:
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
        exact = self.exact.get(text) or self.exact.get(text.strip()) or self.exact.get(bare(text))
        return exact or self.folded.get(fold(text))


@lru_cache(maxsize=64)
def _spellings(choices: Choices) -> _Names:
    return _Names(choices)


def fold(text: str) -> str:
    """Without case, punctuation at both ends, and more than one space between words."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().strip(_EDGES).split())


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""


def _several(entries: Iterable[Any], names: _Names) -> Reading:
    """The keys of all entries; not usable where one is no label."""
    keys = set()
    for entry in entries:
        if (key := names.get(_as_text(entry))) is None:
            return Reading(None, _unknown(_as_text(entry)))
        keys.add(key)
    return Reading(sorted(keys))


def _listed(text: str, names: _Names) -> Reading:
    if key := names.get(text):
        return Reading([key])
    if fold(text) in _NONE or text.strip() == "[]":
        return Reading([])
    if isinstance(value := from_json(text), list):
        return _several(value, names)
    parts: list[str] = []
    lines = text.strip().split("\n")
    if len(lines) > MAX_PIECES:
        return Reading(None, f"a list of more than {MAX_PIECES:,} lines")
    for line in lines:
        line = _BULLET.sub("", line)
        parts += [line] if names.get(line) else _parts(line, names)
    return _several(parts, names) if parts else Reading(None, _unknown(text))


def _parts(line: str, names: _Names) -> list[str]:
    """The line at its separators; a label that has one itself goes before its parts."""
    pieces = re.split(r"([;,|]|\band\b|&)", line)
    if len(pieces) > MAX_PIECES:
        return [line]
    parts, index = [], 0
    while index < len(pieces):
        for end in range(min(len(pieces), index + 13), index, -2):
            joined = "".join(pieces[index:end])
            if end == index + 1 or names.get(joined):
                break
        if joined.strip():
            parts.append(joined)
        index = end + 1
    return parts


def _unknown(text: str) -> str:
    text = " ".join(text.split())
    return f"unknown label {text if len(text) <= 60 else text[:60] + '...'!r}"


def _in_sentence(text: str, spec: TaskSpec) -> Reading:
    text = text.strip()
    if "\n" in text or len(text) > MAX_SENTENCE:
        text = last_line(text)
        if len(text) > MAX_SENTENCE:
            return Reading(None, "the answer does not end in a label")
    return mentioned(text, spec)


def mentioned(text: str, spec: TaskSpec) -> Reading:
    """The only label that occurs in a sentence."""
    names = _spellings(spec.choices)
    found: dict[str, int] = {}
    written = " ".join(unicodedata.normalize("NFKC", text).split())
    # The longest first, each taken out where it was found: "not spam" is no mention of "spam".
    for spelling in sorted(names.exact, key=lambda entry: (-len(entry), entry)):
        if match := _mention(spelling, written):
            key = names.exact[spelling]
            found[key] = min(found.get(key, len(written)), match.start())
            written = written[: match.start()] + "\0" * len(match[0]) + written[match.end() :]
    if not found:
        return Reading(None, _unknown(text))
    if len(found) > 1:
        return Reading(None, "names several labels")
    ((key, start),) = found.items()
    if _NOT.search(written[:start]):
        return Reading(None, "may say that the label does not fit")
    if not all(_set_off(spelling, text) for spelling in names.exact if len(spelling) == 1):
        return Reading(None, "names several labels, or has a word that is one")
    return Reading(key)


def _mention(spelling: str, text: str) -> "re.Match[str] | None":
    word = " ".join(unicodedata.normalize("NFKC", spelling).split()).strip(_EDGES)
    if not word:
        return None
    if len(word) == 1:
        # One character is a word of many languages: it counts as written, and only where it is set off.
        return re.search(rf"(?<!\w){re.escape(word)}(?=[).:*\"'\]]|\s*\Z)", text)
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)


def _set_off(letter: str, text: str) -> bool:
    """Whether a label of one character occurs nowhere as a word of a sentence."""
    return not re.search(rf"(?<!\w){re.escape(letter)}(?=\s+\w)", text)
