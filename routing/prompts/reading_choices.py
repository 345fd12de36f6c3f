"""Answers that are several labels, or none of them."""

import re

from routing.backends.context import TaskSpec
from routing.prompts.base import Reading
from routing.prompts.label_names import Names, as_text, fold, keys_of, names_of, unknown
from routing.prompts.label_sentence import mentioned
from routing.prompts.markers import LABEL, NO_JSON, after_mark, boxed, from_json

MAX_PIECES = 2_000
"""Of a list, separators counted; more than the labels of any project."""
MAX_REASON = 4_000
_NONE = frozenset(
    {"none", "none of them", "none of the above", "none of the labels", "none apply", "none fits", "no label"}
    | {
        "none of the labels apply",
        "none of the labels fit",
        "none of the labels fits",
        "no labels",
        "nothing",
    }
    | {"n/a", "[]"}
)
_BULLET = re.compile(r"^[ \t]*(?:[-*\u2022+]|[0-9]{1,3}[.)])[ \t]+")
_FIELD = re.compile(r"^[*_# \t]*[^\W\d_]+(?: [^\W\d_]+){0,3}[*_ \t]*:")


def read_choices(text: str, spec: TaskSpec) -> Reading:
    """The labels of a list: JSON, or separated by line breaks, semicolons, commas or "and". Every entry must
    be a label. An empty list, or "none", says that none fits.

    The list is the whole answer, or stands in \\boxed{}, behind "Labels:", or at the end of a text that names
    no label before.
    """
    names = names_of(spec)
    value = from_json(text)
    if isinstance(value, list):
        none = len(value) == 1 and _is_none(as_text(value[0]), names)
        return Reading([]) if none else keys_of(value, names)
    if value is not NO_JSON:
        text = as_text(value).strip()
        if not text:
            return Reading(None, "empty answer" if value == "" else "no label of the project")
    whole = _listed(text, names)
    if whole.value is not None:
        return whole
    if (found := boxed(text)) is not None:
        return _listed(found, names)
    if (behind := after_mark(text, LABEL)) is not None:
        return _block(behind, names)
    return _trailing(text, spec) if "\n" in text else whole


def _block(text: str, names: Names) -> Reading:
    """The list with which a text begins: to the first empty line, or the next "Reason:"."""
    lines: list[str] = []
    for line in text.strip().split("\n")[:MAX_PIECES]:
        if lines and (not line.strip() or _FIELD.match(line)):
            break
        if len(lines) == 1 and _listed(line, names).value is None:
            break  # a list on one line, and a sentence behind it
        lines.append(line)
    return _listed("\n".join(lines), names)


def _trailing(text: str, spec: TaskSpec) -> Reading:
    """The list of lines with which a text ends, where nothing before it names a label."""
    names = names_of(spec)
    lines = text.strip().split("\n")
    first = len(lines)
    while first and len(lines) - first < MAX_PIECES and _listed(lines[first - 1], names).value is not None:
        first -= 1
    before = "\n".join(lines[:first])
    if first == len(lines):
        return Reading(None, unknown(lines[-1]))
    if len(before) > MAX_REASON or mentioned(before, spec):
        return Reading(None, "names labels before its list, and which count is not clear")
    return _listed("\n".join(lines[first:]), names)


def _listed(text: str, names: Names) -> Reading:
    if key := names.get(text):
        return Reading([key])
    if _is_none(text, names):
        return Reading([])
    value = from_json(text)
    if isinstance(value, list):
        return keys_of(value, names)
    parts: list[str] = []
    lines = text.strip().split("\n")
    if len(lines) > MAX_PIECES:
        return Reading(None, f"a list of more than {MAX_PIECES:,} lines")
    for line in lines:
        line = _BULLET.sub("", line)
        parts += [line] if names.get(line) else _parts(line, names)
    return keys_of(parts, names) if parts else Reading(None, unknown(text))


def _is_none(text: str, names: Names) -> bool:
    return (fold(text) in _NONE or text.strip() == "[]") and names.get(text) is None


def _parts(line: str, names: Names) -> list[str]:
    """The line at its separators; a label that has one itself goes before its parts."""
    pieces = re.split(r"([;,|\u3001\uff0c]|\band\b|&)", line)
    if len(pieces) > MAX_PIECES:
        return [line]
    parts, index = [], 0
    while index < len(pieces):
        for end in range(min(len(pieces), index + 13), index, -2):
            joined = "".join(pieces[index:end])
            if end == index + 1 or names.get(joined):
                break
        if joined.strip(" \t.[](){}"):
            parts.append(joined)
        index = end + 1
    return parts
