"""Answers that are one label."""

import re

from routing.backends.context import TaskSpec
from routing.prompts.base import Reading
from routing.prompts.label_names import Names, as_text, keys_of, names_of
from routing.prompts.label_sentence import in_sentence, mentioned
from routing.prompts.markers import LABEL, NO_JSON, boxed, from_json, last_line, marked_places

MAX_LINES = 200
"""Of an answer that begins with its label; what follows is looked through."""
MAX_REASON = 4_000
SEVERAL = Reading(None, "names several labels")
_BULLET = re.compile(r"\A(?:[-*\u2022+]|#{1,6}|[0-9]{1,3}[.)])[ \t]+")
_TITLE = re.compile(r"\A[*_# \t]*[^\W\d_]+(?: [^\W\d_]+){0,2}[*_ \t]*:[*_ \t]*(?=\S)")
_WITHDRAWN = re.compile(
    r"(?:\A|[\n.!?])\W*(?:wait|actually|hmm|no[,.:!]|correction|on second thought|sorry|however|instead)\b",
    re.IGNORECASE,
)


def read_choice(text: str, spec: TaskSpec) -> Reading:
    """The one label that an answer names.

    In turn: the answer as a whole, in JSON, in \\boxed{}, after "answer:", its last line, its first line;
    each must be the key or the name of a label, give or take case, quotation marks and punctuation. Failing
    that, the label that the last sentence gives as its answer (`in_sentence`).
    """
    names = names_of(spec)
    value = from_json(text)
    if value is not NO_JSON:
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, list) and keys_of(value, names).value:
            return SEVERAL
        text = as_text(value)
        if not text:
            return Reading(None, "no label of the project")
    if key := names.get(text) or names.get(_BULLET.sub("", text.strip())):
        return Reading(key)
    if (found := boxed(text)) is not None:
        return _place(found, spec)
    if places := marked_places(text, LABEL):
        return _marked(text, places, spec)
    return _unmarked(text, spec)


def _place(text: str, spec: TaskSpec) -> Reading:
    key = _alone(text, names_of(spec))
    return Reading(key) if key else in_sentence(text, spec)


def _marked(text: str, places: list[str], spec: TaskSpec) -> Reading:
    readings = [_place(place, spec) for place in places]
    found = list(dict.fromkeys(reading for reading in readings if reading.value is not None))
    if len(found) != 1:
        return SEVERAL if found else readings[-1]
    last = names_of(spec).get(last_line(text))
    if last not in (None, found[0].value):
        return SEVERAL
    behind = text[text.rfind(places[readings.index(found[0])]) :]
    return Reading(None, "takes its answer back") if _WITHDRAWN.search(behind[:MAX_REASON]) else found[0]


def _unmarked(text: str, spec: TaskSpec) -> Reading:
    names = names_of(spec)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) < 2:
        return _place(text.strip(), spec)
    alone = {_alone(line, names) for line in lines[:MAX_LINES]} | {_alone(lines[-1], names)}
    alone.discard(None)
    if len(alone) > 1:
        return SEVERAL
    if key := _alone(lines[-1], names):
        return Reading(key)
    if key := _alone(lines[0], names):
        reason = "\n".join(lines[1:])
        if len(reason) > MAX_REASON or _WITHDRAWN.search(reason):
            return Reading(None, "goes on after the label, and may take it back")
        return SEVERAL if mentioned(reason, spec) - {key} else Reading(key)
    if alone:
        return Reading(None, "names a label, and not clearly as the answer")
    return in_sentence(lines[-1], spec)


def _alone(line: str, names: Names) -> str | None:
    """The label that a line consists of, "Sentiment: positive" included."""
    if len(line) > MAX_REASON:
        return None
    if key := names.get(line) or names.get(_BULLET.sub("", line)):
        return key
    title = _TITLE.match(line)
    return names.get(line[title.end() :]) if title and names.get(title[0]) is None else None
