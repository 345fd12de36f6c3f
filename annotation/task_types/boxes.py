"""Boxes on an image. The value is a JSON list in text, one object a box, in an order that is always the same:

    [{"label":"cat","x":10.5,"y":20,"width":30,"height":25.25}]

`label` is the key of a label of the project; x and y are the corner at the top left, in percent of the
image's width and height, with four digits. They are drawn in another program: nothing here draws.
"""

import json
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from django.utils.translation import gettext as _, gettext_lazy, ngettext

from annotation.task_types.base import (
    MISSING,
    OF_FORM,
    Choices,
    Labels,
    Read,
    Reading,
    TaskType,
    ValueReason,
    kind_of,
    short,
    text_of,
)
from annotation.task_types.parsing.markers import NO_JSON, from_json

MOST_BOXES = 500
PLACES = Decimal("0.0001")
"""Of a percent: less than a pixel of an image of a million."""
WHOLE = Decimal(100)
BEYOND = Decimal("0.01")
"""So far beyond the image a box may reach by rounding; it is cut there."""
SIDES = ("x", "y", "width", "height")
FIELDS = ("label", *SIDES)
NOT_TURNED = "rotation"
"""May be there and be 0."""
_LONGEST_NUMBER = 60


class Box(NamedTuple):
    """A box with the key of its label; the rest in percent of the image."""

    label: str
    x: Decimal
    y: Decimal
    width: Decimal
    height: Decimal


class Boxes(TaskType):
    name = "boxes"
    title = gettext_lazy("Boxes on images")
    help = gettext_lazy(
        "Rectangles on an image, each with a label. People draw them in Label Studio or CVAT, and what they "
        "drew comes back; models, certificate and delivery are here."
    )
    labels_within = True
    none_within = True
    on_images = True
    compared_by_loss = True
    max_characters = 200_000
    losses = ("box_f1", "boxes_right")
    equal_means = gettext_lazy(
        "Two answers are equal here if each box has its own with the same label in the other answer and both "
        "lie over each other as the project's loss asks."
    )
    template = "annotation/task_types/boxes.html"
    question = gettext_lazy("Where is what? Draw a box around each.")
    hint = gettext_lazy(
        "A JSON list, one object a box: label, and x, y, width, height in percent of the image. [] says that "
        "there is nothing to draw."
    )
    rows = 4
    monospaced = True
    surely_read = r"^\s*\[\]\s*$"
    prompt_question = "Find every object with one of these labels on the image, and the box around it."
    prompt_ending = (
        'Answer with a JSON list and nothing else, one object for each box: {{"label": ..., "x": ..., '
        '"y": ..., "width": ..., "height": ...}}. The label is one of {labels}, exactly as in the list, '
        "x and y are the top left corner, and all four numbers are in percent of the image's width and "
        "height, from 0 to 100. Answer with [] where there is none."
    )
    schema_name = "boxes"
    controls = ("RectangleLabels",)
    control_attributes = {"canRotate": "false"}

    def read(self, raw: Any, labels: Labels) -> Read:
        """A list of objects, or such a list in JSON. Whole boxes may be JSON in texts, too."""
        if raw is None or (isinstance(raw, str) and not raw.strip()):
            return None, MISSING
        if isinstance(raw, str):
            if len(raw) > self.max_characters:
                return None, _fault(
                    _("it has more than %(most)s characters") % {"most": f"{self.max_characters:,}"}
                )
            raw = _parsed(raw)
        if not isinstance(raw, list | tuple):
            return None, _fault(_("it is no JSON list of boxes"))
        if len(raw) > MOST_BOXES:
            return None, _fault(
                _("it has %(count)s boxes, more than %(most)s")
                % {"count": f"{len(raw):,}", "most": MOST_BOXES}
            )
        boxes = []
        for number, entry in enumerate(raw, 1):
            box = _read_box(entry, labels)
            if isinstance(box, str):
                words = _("box %(number)s: %(why)s") % {"number": number, "why": box}
                if isinstance(box, ValueReason):
                    return None, ValueReason(words, box.code, box.quotes)
                return None, _fault(words)
            boxes.append(box)
        return written(boxes), ""

    def parse(self, text: str, choices: Choices) -> Reading:
        value = from_json(text)
        if value is NO_JSON:
            return Reading(None, "no JSON list of boxes")
        spellings = {name: key for key, name in choices} | {key: key for key, _name in choices}
        return Reading(*self.read(value, Labels(spellings)))

    def refusal(self, raw: Any, reason: str) -> str:
        return _("These boxes cannot be stored: %(reason)s.") % {"reason": reason}

    def schema(self, choices: Choices) -> dict[str, Any]:
        side = {"type": "number", "minimum": 0, "maximum": 100}
        box = {
            "type": "object",
            "properties": {
                "label": {"type": "string", "enum": [key for key, _name in choices]},
                **dict.fromkeys(SIDES, side),
            },
            "required": list(FIELDS),
            "additionalProperties": False,
        }
        return {"type": "array", "items": box, "maxItems": MOST_BOXES}

    def is_asked_by(self, tag: str, attributes: Mapping[str, str]) -> bool:
        return tag == "RectangleLabels"


def written(boxes: list[Box]) -> str:
    """Their canonical text."""
    rows = []
    for label, *sides in sorted(boxes):
        rows.append({"label": label, **dict(zip(SIDES, map(_number, sides), strict=True))})
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def boxes_of(value: object) -> tuple[Box, ...] | None:
    """The boxes of a stored value; None where it is none."""
    if not isinstance(value, str) or not value.startswith("["):
        return None
    entries = _parsed(value)
    if not isinstance(entries, list):
        return None
    if not all(isinstance(one, dict) and one.keys() == {*FIELDS} for one in entries):
        return None
    try:
        return tuple(Box(str(one["label"]), *(Decimal(one[side]) for side in SIDES)) for one in entries)
    except (InvalidOperation, TypeError, ValueError):
        return None


def boxes_in_words(boxes: tuple[Box, ...], names: Mapping[str, str]) -> str:
    """How many there are of each label."""
    if not boxes:
        return _("no boxes")
    counts = ", ".join(
        f"{names.get(label, label)} × {count}" for label, count in Counter(box.label for box in boxes).items()
    )
    words = ngettext("%(count)s box: %(labels)s", "%(count)s boxes: %(labels)s", len(boxes))
    return words % {"count": len(boxes), "labels": counts}


def _parsed(text: str) -> Any:
    """None where it is no JSON."""
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError, ArithmeticError):
        return None


def _fault(words: str) -> ValueReason:
    """What is wrong with the form, with nothing in it of what was answered."""
    return ValueReason(words, OF_FORM)


def _read_box(entry: Any, labels: Labels) -> Box | str:
    """The box, or why it is none; a label that the project does not have is a ValueReason."""
    if isinstance(entry, str) and len(entry) <= Boxes.max_characters:
        entry = _parsed(entry)
    if not isinstance(entry, Mapping):
        return _("it is no object with %(fields)s") % {"fields": ", ".join(FIELDS)}
    if missing := [name for name in FIELDS if entry.get(name) is None]:
        return _("it has no “%(field)s”") % {"field": missing[0]}
    if len(entry) > len(FIELDS) + (NOT_TURNED in entry):
        return _("it has a field beside %(fields)s; leave it out") % {"fields": ", ".join(FIELDS)}
    if _decimal(entry.get(NOT_TURNED, 0)) != 0:
        return _("it is turned (rotation), and only upright boxes can be compared")
    if (given := text_of(entry["label"])) is None:
        return _("its label is no text but a %(kind)s") % {"kind": kind_of(entry["label"])}
    sides = {side: _decimal(entry[side]) for side in SIDES}
    if wrong := next((side for side, number in sides.items() if number is None), None):
        return _("its “%(side)s” is no number in percent") % {"side": wrong}
    box = _within({side: number for side, number in sides.items() if number is not None})
    if isinstance(box, str):
        return box
    if (key := labels.key(given)) is None:
        return ValueReason(f"unknown label {short(given)}", "unknown_label", given)
    return box._replace(label=key)


def _within(sides: Mapping[str, Decimal]) -> Box | str:
    """The box without its label, cut at the edge of the image that it reaches beyond by rounding."""
    box = dict(sides)
    for start, length in (("x", "width"), ("y", "height")):
        if box[start] < -BEYOND or box[start] + box[length] > WHOLE + BEYOND:
            return _(
                "it reaches beyond the image: %(start)s and %(start)s + %(length)s are 0 to 100 percent"
            ) % {"start": start, "length": length}
        end = min(box[start] + box[length], WHOLE).quantize(PLACES)
        box[start] = max(box[start], Decimal(0)).quantize(PLACES)
        box[length] = min(box[length].quantize(PLACES), end - box[start])
        if box[length] <= 0:
            return _("its “%(side)s” is 0: a box has at least 0.0001 percent") % {"side": length}
    return Box("", box["x"], box["y"], box["width"], box["height"])


def _decimal(raw: Any) -> Decimal | None:
    """A number of a size that can be one of percents; None for anything else."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | str | Decimal):
        return None
    if isinstance(raw, int) and abs(raw) > 10**6:
        return None
    try:
        text = str(raw)
        number = Decimal(text) if len(text) <= _LONGEST_NUMBER else Decimal("NaN")
    except (InvalidOperation, ValueError):
        return None
    return number if number.is_finite() and number.copy_abs() < 10**6 else None


def _number(number: Decimal) -> int | float:
    """As JSON has it, always in the same way: whole numbers without a point."""
    return int(number) if number == number.to_integral_value() else float(number)
