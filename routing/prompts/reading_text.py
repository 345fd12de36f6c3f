"""Answers that are text: mathematics, short and long text, code."""

import re
from typing import Any

from annotation.values import MAX_CHARACTERS, ValueReader
from routing.backends.context import TaskSpec
from routing.prompts.base import Reading
from routing.prompts.markers import after_marker, bare, boxed, from_json, last_line

_MATH = (("$$", "$$"), ("\\(", "\\)"), ("\\[", "\\]"), ("$", "$"))
_FENCE = re.compile(r"^[ \t]{0,3}```", re.MULTILINE)


def read_math(text: str, spec: TaskSpec) -> Reading:
    """The last \\boxed{}; else what follows "answer:"; else the last line."""
    found = boxed(text)
    if found is None:
        found = after_marker(text) or last_line(text)
    for _ in range(2):
        found = bare(found)
        for start, end in _MATH:
            if len(found) > len(start) + len(end) and found.startswith(start) and found.endswith(end):
                inner = found[len(start) : -len(end)]
                found = found if start in inner else inner.strip()
    return _stored(found, spec)


def read_short(text: str, spec: TaskSpec) -> Reading:
    """An answer in JSON; else what follows "answer:"; else everything."""
    value: Any = from_json(text)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return _stored(str(value), spec)
    found = after_marker(text)
    return _stored(bare(text if found is None else found), spec)


def read_long(text: str, spec: TaskSpec) -> Reading:
    """Everything."""
    return _stored(text, spec)


def read_code(text: str, spec: TaskSpec) -> Reading:
    """The last fenced block; everything where there is none. A block without its end was cut off."""
    fences = [match.start() for match in _FENCE.finditer(text)]
    if not fences:
        return _stored(text, spec)
    if len(fences) % 2:
        return Reading(None, "the code block has no end")
    _, _, block = text[fences[-2] : fences[-1]].partition("\n")
    return _stored(block, spec)


def _stored(text: str, spec: TaskSpec) -> Reading:
    if len(text) > MAX_CHARACTERS[spec.task_type]:
        return Reading(None, f"the answer has more than {MAX_CHARACTERS[spec.task_type]:,} characters")
    value, reason = ValueReader(spec.task_type)(text)
    return Reading(value, "empty answer" if value is None and not text.strip() else reason)
