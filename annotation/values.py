"""Values of labels: what people, models and columns give, brought into the one form in which it is stored.

single_choice      the key of a choice
multiple_choice    a sorted list of distinct keys; the empty list says that none of the choices fits
number             a decimal such as "42" or "-0.5": no exponent, no needless zeros, no "-0", no separators
math, short_text, long_text, code
                   text in Unicode NFC with \\n as the end of a line, without white space around it
                   (code keeps the indentation of its first line; mathematics is one line)
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, cached_property
from itertools import islice
from typing import Any

from django.utils.translation import gettext as _

from annotation.models import Project

Type = Project.TaskType
Value = str | list[str]
Read = tuple[Value | None, str]

CHOICE_TYPES = frozenset({Type.SINGLE_CHOICE, Type.MULTIPLE_CHOICE})
MAX_CHARACTERS: Mapping[str, int] = {
    Type.NUMBER: 200,
    Type.MATH: 2_000,
    Type.SHORT_TEXT: 1_000,
    Type.LONG_TEXT: 50_000,
    Type.CODE: 100_000,
}
"""The most that a value may have; of a number, written without an exponent."""

MISSING = "no answer"
_SEPARATORS = re.compile(r"[;,|\n]")
# Commas may group thousands, in groups of three only, so that a decimal comma is not read as one of them.
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
)
# The minus sign, and what a keyboard for Chinese or Japanese types in place of ASCII.
_ASCII = {0x2212: "-", **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}}
# Marks of a formula with nothing in it, which no comparison could read.
_EMPTY_MATH = re.compile(r"\\boxed|[$\\{}()\[\]\s]")
_NOT_STORED = re.compile("[\0\ud800-\udfff]")
_SHOWN = 60
# Repetitions and white space in a list of labels, which may be there beside every spelling of each.
SPARE_CHARACTERS, SPARE_LABELS = 1_000, 20
# Of a character of JSON outside ASCII, and the marks around an entry: "\\u00e4", ...
_ESCAPED, _AROUND = 6, 4
MOST_MARKS = 100
"""Accents and the like on one letter: putting them into their order takes the square of their number."""


@dataclass(frozen=True)
class ValueReader:
    """Reads the values of one project. `keys` has every spelling of a choice with its key, and is empty for
    the task types that have no choices.
    """

    task_type: str
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_choices(self) -> bool:
        return self.task_type in CHOICE_TYPES

    def __call__(self, raw: Any) -> Read:
        """The canonical value of what was given and "", or None and the reason in a few words.

        `raw` is text, a number, or for several choices also a list; anything may come, nothing raises.
        """
        if raw is None:
            return None, MISSING
        if self.task_type == Type.MULTIPLE_CHOICE:
            return self._several(raw)
        text = _text_of(raw)
        if text is None:
            return None, f"a {_kind_of(raw)} in place of one answer"
        if not text.strip():
            return None, MISSING
        if self.task_type == Type.SINGLE_CHOICE:
            key = self._key(text)
            return (None, f"unknown label {_short(text)}") if key is None else (key, "")
        return read_number(text) if self.task_type == Type.NUMBER else self._text(text)

    def _key(self, text: str) -> str | None:
        return self.keys.get(text) or self.keys.get(text.strip())

    def _several(self, raw: Any) -> Read:
        parts: list[str | None]
        if isinstance(raw, list | tuple):
            parts = [_text_of(entry) for entry in raw]
        elif (text := _text_of(raw)) is None:
            return None, f"a {_kind_of(raw)} in place of a list of labels"
        elif not text.strip():
            return None, MISSING
        elif (key := self._key(text)) is not None:
            return [key], ""
        elif len(text.strip()) > self._longest:
            return None, f"unknown label {_short(text)}"
        elif (entries := _json_list(text)) is not None:
            parts = [_text_of(entry) for entry in entries]
        elif not (parts := list(islice(self._parts(text), self._most_labels + 1))):
            return None, MISSING
        elif len(parts) > self._most_labels:
            return None, f"a list of more than {self._most_labels} labels"
        keys = set()
        for part in parts:
            if part is None:
                return None, "a list with an entry that is no label"
            if (key := self._key(part)) is None:
                return None, f"unknown label {_short(part)}"
            keys.add(key)
        return sorted(keys), ""

    def _parts(self, text: str) -> Iterator[str]:
        """The labels of "a; b", separated by semicolons, commas, bars or line breaks. A label that has such
        a sign itself goes before its parts.
        """
        ends = [*(match.start() for match in _SEPARATORS.finditer(text)), len(text)]
        start = index = 0
        while index < len(ends):
            index = self._end_of_label(text, start, ends, index)
            if part := text[start : ends[index]].strip():
                yield part
            start, index = ends[index] + 1, index + 1

    def _end_of_label(self, text: str, start: int, ends: list[int], first: int) -> int:
        """Where in `ends` the longest label that begins at `start` has its end; `first` where none does."""
        found = first
        for index in range(first, len(ends)):
            if self._key(text[start : ends[index]]) is not None:
                found = index
            if text[start : ends[index] + 1].lstrip() not in self._beginnings:
                break
        return found

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        """Of the labels with separators in them: up to each of these, included."""
        return frozenset(
            spelling[: match.end()].lstrip()
            for spelling in self.keys
            for match in _SEPARATORS.finditer(spelling)
        )

    @cached_property
    def _longest(self) -> int:
        """Characters of a list of all spellings, however it is written."""
        return SPARE_CHARACTERS + sum(_ESCAPED * len(spelling) + _AROUND for spelling in self.keys)

    @property
    def _most_labels(self) -> int:
        return SPARE_LABELS + 2 * len(self.keys)

    def _text(self, text: str) -> Read:
        if _NOT_STORED.search(text):
            return None, _("it has a character that cannot be stored (NUL or half of a surrogate pair)")
        if has_many_marks(text):
            return None, _("it has a letter with more than %(most)s accents") % {"most": MOST_MARKS}
        text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
        if self.task_type == Type.CODE:
            text = re.sub(r"\A(?:[^\S\n]*\n)+", "", text).rstrip()
        elif self.task_type == Type.MATH:
            text = " ".join(text.split())
            if not _EMPTY_MATH.sub("", text):
                return None, _("no formula in it")
        else:
            text = text.strip()
        most = MAX_CHARACTERS[self.task_type]
        if len(text) > most:
            return None, _("it has %(count)s characters, more than %(most)s") % {
                "count": f"{len(text):,}",
                "most": f"{most:,}",
            }
        return text, ""


def reader_of(project: Project) -> ValueReader:
    """The reader of a project's values: one query where it has choices, none otherwise."""
    if project.task_type not in CHOICE_TYPES:
        return ValueReader(project.task_type)
    return ValueReader(project.task_type, spellings(project))


def spellings(project: Project) -> dict[str, str]:
    """Every text by which a choice may be named, with the choice's key. A key goes before a name, and a name
    that two choices have names neither.
    """
    choices = list(project.choices.values_list("key", "name"))
    names: dict[str, list[str]] = {}
    for key, name in choices:
        names.setdefault(name, []).append(key)
    by_name = {name: keys[0] for name, keys in names.items() if len(keys) == 1}
    return by_name | {key: key for key, _ in choices}


def read_number(text: str) -> Read:
    """The canonical decimal of a text, exactly, or None and why it is no number.

    "1,234.5" (thousands in groups of three), "+.5", "1e3", a typographic minus and full-width digits are
    read; percent signs, currencies, units and fractions are not.
    """
    plain, most = text.strip(), MAX_CHARACTERS[Type.NUMBER]
    if len(plain) > most:
        return None, f"a number of more than {most} characters"
    plain = plain.translate(_ASCII)
    if not _NUMBER.fullmatch(plain):
        return None, f"{_short(text)} is not a number"
    number = format(Decimal(plain.replace(",", "")), "f")
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
    whole, point, fraction = digits.partition(".")
    digits = (whole.lstrip("0") or "0") + point + fraction
    if len(digits) > most:
        return None, f"a number of more than {most} digits"
    return ("0" if digits == "0" else sign + digits), ""


def has_many_marks(text: str) -> bool:
    """Whether it is no text but a load for whoever normalises it (`MOST_MARKS`)."""
    return not text.isascii() and _many_marks().search(text) is not None


@cache
def _many_marks() -> re.Pattern[str]:
    """So many characters in a row that are, or begin with, a mark that is put into an order with others."""
    signs = (chr(code) for code in range(0x300, 0x20000) if not 0xD800 <= code < 0xE000)
    marks = "".join(sign for sign in signs if unicodedata.combining(unicodedata.normalize("NFKD", sign)[0]))
    return re.compile(f"[{re.escape(marks)}]{{{MOST_MARKS + 1}}}")


def as_text(value: Value) -> str:
    """A canonical value as one text, which losses and files take: of several choices a JSON list."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def from_text(task_type: str, text: str) -> Value:
    """The canonical value behind what `as_text` made of it."""
    return json.loads(text) if task_type == Type.MULTIPLE_CHOICE else text


def _text_of(raw: Any) -> str | None:
    if isinstance(raw, str):
        return raw
    if isinstance(raw, bool):
        return json.dumps(raw)
    if isinstance(raw, float | Decimal):
        return str(raw) if Decimal(raw).is_finite() else None
    # Python refuses to write out whole numbers of thousands of digits.
    return str(raw) if isinstance(raw, int) and abs(raw) < 10**200 else None


def _json_list(text: str) -> list[Any] | None:
    if not text.lstrip().startswith("["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _kind_of(raw: Any) -> str:
    return "list" if isinstance(raw, list | tuple) else "value of another kind"


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
