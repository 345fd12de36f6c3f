"""Any number of the choices. The value is a sorted list of distinct keys; the empty list says that none
fits.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _, gettext_lazy

from annotation.task_types.base import (
    MISSING,
    SEPARATORS,
    Choices,
    Labels,
    Read,
    Reading,
    TaskType,
    Value,
    kind_of,
    quoted,
    short,
    text_of,
    unknown_label,
)
from annotation.task_types.parsing.label_names import (
    Names,
    as_text,
    fold,
    keys_of,
    names_of,
    unknown,
)
from annotation.task_types.parsing.label_sentence import mentioned
from annotation.task_types.parsing.markers import LABEL, NO_JSON, after_mark, boxed, from_json

_MAX_PIECES = 2_000
"""Of a list, separators counted; more than the labels of any project."""
_MAX_REASON = 4_000
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


class MultipleChoice(TaskType):
    name = "multiple_choice"
    title = gettext_lazy("Several choices")
    help = gettext_lazy("Each label that fits; none of them is an answer, too.")
    has_choices = True
    several = True
    losses = ("set_equal",)
    equal_means = gettext_lazy(
        "Two answers are equal here if they have the same labels; each label alone is below."
    )
    template = "annotation/task_types/several_choices.html"
    question = gettext_lazy("Which labels fit?")
    prompt_question = "Choose every label that fits the item. There may be none."
    prompt_ending = (
        "Answer with a JSON list of {labels}, exactly as in the list above, and nothing else; with [] where "
        "none fits."
    )
    schema_name = "labels"
    controls = ("Choices",)
    control_attributes = {"choice": "multiple"}

    def read(self, raw: Any, labels: Labels) -> Read:
        """A list of labels, a list in JSON, or labels with separators between them."""
        parts: list[str | None]
        if raw is None:
            return None, MISSING
        if isinstance(raw, list | tuple):
            parts = [text_of(entry) for entry in raw]
        elif (text := text_of(raw)) is None:
            return None, f"a {kind_of(raw)} in place of a list of labels"
        elif not text.strip():
            return None, MISSING
        elif (key := labels.key(text)) is not None:
            return [key], ""
        elif len(text.strip()) > labels.longest:
            return None, unknown_label(short(text), text)
        elif (entries := _json_list(text)) is not None:
            parts = [text_of(entry) for entry in entries]
        elif not (parts := list(islice(_parts(text, labels), labels.most_labels + 1))):
            return None, MISSING
        elif len(parts) > labels.most_labels:
            return None, f"a list of more than {labels.most_labels} labels"
        keys = set()
        for part in parts:
            if part is None:
                return None, "a list with an entry that is no label"
            if (key := labels.key(part)) is None:
                return None, unknown_label(short(part), part)
            keys.add(key)
        return sorted(keys), ""

    def parse(self, text: str, choices: Choices) -> Reading:
        return _parsed(text, choices)

    def from_form(self, data: QueryDict) -> Any:
        return data.getlist("value")

    def form_problem(self, data: QueryDict) -> str:
        """Nothing ticked may be an oversight: that none fits has to be said."""
        ticked = bool(data.getlist("value"))
        if ticked != (data.get("none") == "yes"):
            return ""
        if ticked:
            return _("You ticked labels and said that none of them fits. Give one of the two answers.")
        return _("Tick each label that fits, or say that none of them does.")

    def refusal(self, raw: Any, reason: str) -> str:
        return _("%(shown)s is not one of this project's labels.") % {"shown": quoted(raw)}

    def schema(self, choices: Choices) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "enum": [key for key, _name in choices]}}

    def from_text(self, text: str) -> Value:
        found: list[str] = json.loads(text)
        return found

    def is_asked_by(self, tag: str, attributes: Mapping[str, str]) -> bool:
        return tag == "Choices" and attributes.get("choice") == "multiple"


def _parts(text: str, labels: Labels) -> Iterator[str]:
    """The labels of "a; b", separated by semicolons, commas, bars or line breaks. A label that has such
    a sign itself goes before its parts.
    """
    ends = [*(match.start() for match in SEPARATORS.finditer(text)), len(text)]
    start = index = 0
    while index < len(ends):
        index = _end_of_label(text, start, ends, index, labels)
        if part := text[start : ends[index]].strip():
            yield part
        start, index = ends[index] + 1, index + 1


def _end_of_label(text: str, start: int, ends: list[int], first: int, labels: Labels) -> int:
    """Where in `ends` the longest label that begins at `start` has its end; `first` where none does."""
    found = first
    for index in range(first, len(ends)):
        if labels.key(text[start : ends[index]]) is not None:
            found = index
        if text[start : ends[index] + 1].lstrip() not in labels.beginnings:
            break
    return found


def _json_list(text: str) -> list[Any] | None:
    if not text.lstrip().startswith("["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


# --- What models write --------------------------------------------------------------------------------------


def _parsed(text: str, choices: Choices) -> Reading:
    """The labels of a list: JSON, or separated by line breaks, semicolons, commas or "and". Every entry must
    be a label. An empty list, or "none", says that none fits.

    The list is the whole answer, or stands in \\boxed{}, behind "Labels:", or at the end of a text that names
    no label before.
    """
    names = names_of(choices)
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
    return _trailing(text, choices) if "\n" in text else whole


def _block(text: str, names: Names) -> Reading:
    """The list with which a text begins: to the first empty line, or the next "ValueReason:"."""
    lines: list[str] = []
    for line in text.strip().split("\n")[:_MAX_PIECES]:
        if lines and (not line.strip() or _FIELD.match(line)):
            break
        if len(lines) == 1 and _listed(line, names).value is None:
            break  # a list on one line, and a sentence behind it
        lines.append(line)
    return _listed("\n".join(lines), names)


def _trailing(text: str, choices: Choices) -> Reading:
    """The list of lines with which a text ends, where nothing before it names a label."""
    names = names_of(choices)
    lines = text.strip().split("\n")
    first = len(lines)
    while first and len(lines) - first < _MAX_PIECES and _listed(lines[first - 1], names).value is not None:
        first -= 1
    before = "\n".join(lines[:first])
    if first == len(lines):
        return Reading(None, unknown(lines[-1]))
    if len(before) > _MAX_REASON or mentioned(before, choices):
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
    if len(lines) > _MAX_PIECES:
        return Reading(None, f"a list of more than {_MAX_PIECES:,} lines")
    for line in lines:
        line = _BULLET.sub("", line)
        parts += [line] if names.get(line) else _pieces(line, names)
    return keys_of(parts, names) if parts else Reading(None, unknown(text))


def _is_none(text: str, names: Names) -> bool:
    return (fold(text) in _NONE or text.strip() == "[]") and names.get(text) is None


def _pieces(line: str, names: Names) -> list[str]:
    """The line at its separators; a label that has one itself goes before its parts."""
    pieces = re.split(r"([;,|\u3001\uff0c]|\band\b|&)", line)
    if len(pieces) > _MAX_PIECES:
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
