"""Answers that are text: mathematics, short and long text, code."""

import re

from annotation.values import MAX_CHARACTERS, ValueReader
from routing.backends.context import TaskSpec
from routing.prompts.base import Reading
from routing.prompts.markers import (
    NO_JSON,
    bare,
    boxed,
    from_json,
    last_line,
    marked_places,
)

_MATH = (("$$", "$$"), ("\\(", "\\)"), ("\\[", "\\]"), ("$", "$"))
_DISPLAYED = re.compile(r"(?:\\\[([^\[\]]{1,2000}?)\\\]|\$\$([^$]{1,2000}?)\$\$)[ \t.]*\Z")
_SENTENCE = re.compile(r"\.[ \t]+(?=[A-Z][a-z])|,[ \t]+(?:which|because|since)\b")
_FENCE = re.compile(r"^[ \t]{0,3}(?:```|~~~)", re.MULTILINE)
_SAID = re.compile(
    r"\A(?:(?:so|thus|therefore|hence),?[ \t]+)?(?:the[ \t]+)?(?:(?:final|correct)[ \t]+)?"
    r"answer[ \t]+is\b[ \t]*:?[ \t]*",
    re.IGNORECASE,
)
_INITIALS = re.compile(r"(?:\A|[\s.])[^\W\d_]\.\Z")
EMPTY = Reading(None, "empty answer")


def read_math(text: str, spec: TaskSpec) -> Reading:
    """The last \\boxed{}; else an answer in JSON; else what follows "answer:"; else the formula or the line
    in which the text ends.
    """
    found = boxed(text)
    if found == "":
        return Reading(None, "\\boxed{} has no end, or nothing in it")
    if found is None:
        value = from_json(text)
        if isinstance(value, str):
            found = value
        elif places := marked_places(text):
            found = _SENTENCE.split(places[-1], maxsplit=1)[0]
        elif displayed := _DISPLAYED.search(text[-2_100:]):
            found = (displayed[1] or displayed[2]).strip()
        else:
            found = last_line(bare(text))
    for _ in range(2):
        found = bare(found)
        for start, end in _MATH:
            if len(found) > len(start) + len(end) and found.startswith(start) and found.endswith(end):
                inner = found[len(start) : -len(end)]
                found = found if start in inner else inner.strip()
    return _stored(found, spec)


def read_short(text: str, spec: TaskSpec) -> Reading:
    """An answer in JSON or \\boxed{}; else what follows the last "Answer:" that begins a line, or "The answer
    is" that begins the last one; else everything.
    """
    value = from_json(text)
    if isinstance(value, str):
        return _stored(value, spec)
    if value is not NO_JSON and not isinstance(value, list):
        return Reading(None, "JSON without an answer in it")
    if (found := boxed(text)) is not None:
        return _stored(found, spec)
    line = last_line(text)
    if places := marked_places(text, "answer", within=False):
        found = places[0]
    elif said := _SAID.match(line):
        found = line[said.end() :]
    else:
        found = text
    kept = found.strip()
    return _stored(kept if _INITIALS.search(kept) else bare(kept), spec)


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
    if not text.strip():
        return EMPTY
    if len(text) > MAX_CHARACTERS[spec.task_type]:
        return Reading(None, f"the answer has more than {MAX_CHARACTERS[spec.task_type]:,} characters")
    value, reason = ValueReader(spec.task_type)(text)
    return Reading(value, reason)
