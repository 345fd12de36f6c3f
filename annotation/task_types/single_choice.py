"""One of the choices. The value is its key."""

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from annotation.task_types.base import Choices, Labels, Read, Reading, TaskType, quoted, short, unknown_label
from annotation.task_types.parsing.label_names import Names, as_text, keys_of, names_of
from annotation.task_types.parsing.label_sentence import in_sentence, mentioned
from annotation.task_types.parsing.markers import (
    LABEL,
    NO_JSON,
    boxed,
    from_json,
    last_line,
    marked_places,
)

_MAX_LINES = 200
"""Of an answer that begins with its label; what follows is looked through."""
_MAX_REASON = 4_000
_SEVERAL = Reading(None, "names several labels")
_BULLET = re.compile(r"\A(?:[-*\u2022+]|#{1,6}|[0-9]{1,3}[.)])[ \t]+")
_TITLE = re.compile(r"\A[*_# \t]*[^\W\d_]+(?: [^\W\d_]+){0,2}[*_ \t]*:[*_ \t]*(?=\S)")
_WITHDRAWN = re.compile(
    r"(?:\A|[\n.!?])\W*(?:wait|actually|hmm|no[,.:!]|correction|on second thought|sorry|however|instead)\b",
    re.IGNORECASE,
)


class SingleChoice(TaskType):
    name = "single_choice"
    title = gettext_lazy("Single choice")
    help = gettext_lazy("Exactly one of the labels that you name.")
    has_choices = True
    losses = ("zero_one",)
    losses_of_numbers = ("numeric",)
    template = "annotation/task_types/one_choice.html"
    question = gettext_lazy("Which label?")
    prompt_question = "Choose the one label that fits the item best."
    prompt_ending = "Answer with {label} alone, exactly as in the list, and nothing else."
    schema_name = "label"
    controls = ("Choices",)
    control_attributes = {"choice": "single"}

    def read_text(self, text: str, labels: Labels) -> Read:
        key = labels.key(text)
        return (None, unknown_label(short(text), text)) if key is None else (key, "")

    def parse(self, text: str, choices: Choices) -> Reading:
        return _parsed(text, choices)

    def refusal(self, raw: Any, reason: str) -> str:
        return _("%(shown)s is not one of this project's labels.") % {"shown": quoted(raw)}

    def schema(self, choices: Choices) -> dict[str, Any]:
        return {"type": "string", "enum": [key for key, _name in choices]}

    def is_asked_by(self, tag: str, attributes: Mapping[str, str]) -> bool:
        return tag == "Rating" or (tag == "Choices" and attributes.get("choice") != "multiple")


# --- What models write --------------------------------------------------------------------------------------


def _parsed(text: str, choices: Choices) -> Reading:
    """The one label that an answer names.

    In turn: the answer as a whole, in JSON, in \\boxed{}, after "answer:", its last line, its first line;
    each must be the key or the name of a label, give or take case, quotation marks and punctuation. Failing
    that, the label that the last sentence gives as its answer (`in_sentence`).
    """
    names = names_of(choices)
    value = from_json(text)
    if value is not NO_JSON:
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, list) and keys_of(value, names).value:
            return _SEVERAL
        text = as_text(value)
        if not text:
            return Reading(None, "no label of the project")
    if key := names.get(text) or names.get(_BULLET.sub("", text.strip())):
        return Reading(key)
    if (found := boxed(text)) is not None:
        return _place(found, choices)
    if places := marked_places(text, LABEL):
        return _marked(text, places, choices)
    return _unmarked(text, choices)


def _place(text: str, choices: Choices) -> Reading:
    key = _alone(text, names_of(choices))
    return Reading(key) if key else in_sentence(text, choices)


def _marked(text: str, places: list[str], choices: Choices) -> Reading:
    readings = [_place(place, choices) for place in places]
    found = list(dict.fromkeys(reading for reading in readings if reading.value is not None))
    if len(found) != 1:
        return _SEVERAL if found else readings[-1]
    last = names_of(choices).get(last_line(text))
    if last not in (None, found[0].value):
        return _SEVERAL
    behind = text[text.rfind(places[readings.index(found[0])]) :]
    return Reading(None, "takes its answer back") if _WITHDRAWN.search(behind[:_MAX_REASON]) else found[0]


def _unmarked(text: str, choices: Choices) -> Reading:
    names = names_of(choices)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) < 2:
        return _place(text.strip(), choices)
    alone = {_alone(line, names) for line in lines[:_MAX_LINES]} | {_alone(lines[-1], names)}
    alone.discard(None)
    if len(alone) > 1:
        return _SEVERAL
    if key := _alone(lines[-1], names):
        return Reading(key)
    if key := _alone(lines[0], names):
        reason = "\n".join(lines[1:])
        if len(reason) > _MAX_REASON or _WITHDRAWN.search(reason):
            return Reading(None, "goes on after the label, and may take it back")
        return _SEVERAL if mentioned(reason, choices) - {key} else Reading(key)
    if alone:
        return Reading(None, "names a label, and not clearly as the answer")
    return in_sentence(lines[-1], choices)


def _alone(line: str, names: Names) -> str | None:
    """The label that a line consists of, "Sentiment: positive" included."""
    if len(line) > _MAX_REASON:
        return None
    if key := names.get(line) or names.get(_BULLET.sub("", line)):
        return key
    title = _TITLE.match(line)
    return names.get(line[title.end() :]) if title and names.get(title[0]) is None else None
