"""Boxes on an image. The value is a JSON list in text, one object a box, in an order that is always the same:

    [{"label":"cat","x":10.5,"y":20,"width":30,"height":25.25}]

`label` is the key of a label of the project; x and y are the corner at the top left, in percent of the
image's width and height, with four digits. They are drawn in another program: nothing here draws.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from django.utils.translation import gettext as _, gettext_lazy, ngettext

from annotation.task_types.shapes import DRAWN, Drawing, Path, Shapes, beside, no_field, one_label

PLACES = Decimal("0.0001")
"""Of a percent: less than a pixel of an image of a million."""
WHOLE = Decimal(100)
BEYOND = Decimal("0.01")
"""So far beyond the image a box may reach by rounding; it is cut there."""
SIDES = ("x", "y", "width", "height")
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


class Boxes(Shapes[Box]):
    name = "boxes"
    title = gettext_lazy("Boxes on images")
    help = gettext_lazy(
        "Rectangles on an image, each with a label. People draw them in Label Studio or CVAT, and what they "
        "drew comes back; models, certificate and delivery are here."
    )
    fields = ("label", *SIDES)
    most = 500
    max_characters = 200_000
    losses = ("box_f1", "boxes_right")
    equal_means = gettext_lazy(
        "Two answers are equal here if each box has its own with the same label in the other answer and both "
        "lie over each other as the project's loss asks."
    )
    question = gettext_lazy("Where is what? Give a box around each.")
    hint = gettext_lazy(
        "A JSON list, one object a box: label, and x, y, width, height in percent of the image. [] says that "
        "there is nothing to draw."
    )
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
    cvat_tag, cvat_type = "box", "rectangle"
    only_these = gettext_lazy("It has a %(shape)s: only rectangles are boxes.")
    elsewhere = gettext_lazy(
        "Boxes are drawn in Label Studio or CVAT, not on this page: whoever leads the project gives the "
        "images out there and takes the boxes back. Whoever has boxes in JSON can put them into the field."
    )
    chapter = "doc-boxes"
    no_list = gettext_lazy("it is no JSON list of boxes")
    too_many = gettext_lazy("it has %(count)s boxes, more than %(most)s")
    numbered = gettext_lazy("box %(number)s: %(why)s")
    refused = gettext_lazy("These boxes cannot be stored: %(reason)s.")

    def counted(self, count: int, labels: str) -> str:
        words = ngettext("%(count)s box: %(labels)s", "%(count)s boxes: %(labels)s", count)
        return words % {"count": count, "labels": labels}

    def shape(self, entry: Mapping[str, Any], label: str) -> Box | str:
        if missing := [name for name in SIDES if entry.get(name) is None]:
            return no_field(missing[0])
        if len(entry) > len(self.fields) + (NOT_TURNED in entry):
            return beside(self.fields)
        if _decimal(entry.get(NOT_TURNED, 0)) != 0:
            return _("it is turned (rotation), and only upright boxes can be compared")
        sides = {side: _decimal(entry[side]) for side in SIDES}
        if wrong := next((side for side, number in sides.items() if number is None), None):
            return _("its “%(side)s” is no number in percent") % {"side": wrong}
        return _within(label, {side: number for side, number in sides.items() if number is not None})

    def plain(self, shape: Box) -> dict[str, Any]:
        return {"label": shape.label, **{side: _number(getattr(shape, side)) for side in SIDES}}

    def stored(self, entry: Mapping[str, Any]) -> Box:
        return Box(str(entry["label"]), *(Decimal(entry[side]) for side in SIDES))

    def shape_schema(self) -> dict[str, Any]:
        return {side: {"type": "number", "minimum": 0, "maximum": 100} for side in SIDES}

    def drawing(self, shapes: Sequence[Box]) -> Drawing:
        paths = []
        for label, *sides in shapes[:DRAWN]:
            x, y, width, height = (f"{side:f}" for side in sides)
            paths.append(Path(label, f"M{x} {y}h{width}v{height}h-{width}z"))
        return Drawing(100, 100, paths, filled=False, more=len(shapes) - len(paths))

    def of_region(self, result: Mapping[str, Any]) -> dict[str, Any]:
        value = result["value"]
        box = {side: value.get(side) for side in SIDES}
        return {
            "label": one_label(value.get(self.region_type)),
            **box,
            NOT_TURNED: value.get(NOT_TURNED) or 0,
        }

    def region(self, shape: Box) -> dict[str, Any]:
        sides = {side: float(getattr(shape, side)) for side in SIDES}
        return {"value": {**sides, NOT_TURNED: 0, self.region_type: [shape.label]}}

    def of_cvat(self, fields: Mapping[str, str], width: int, height: int) -> dict[str, Any]:
        """In percent; a side that is no number is left out, which whoever reads the box says."""
        edges = [_pixels(fields.get(name)) for name in ("xtl", "ytl", "xbr", "ybr")]
        found: dict[str, Any] = {"label": fields.get("label"), NOT_TURNED: fields.get(NOT_TURNED) or 0}
        if any(edge is None for edge in edges):
            return found
        left, top, right, bottom = (edge for edge in edges if edge is not None)
        sides = {
            "x": left / width,
            "y": top / height,
            "width": (right - left) / width,
            "height": (bottom - top) / height,
        }
        return found | {side: float(WHOLE * share) for side, share in sides.items()}


def _within(label: str, sides: Mapping[str, Decimal]) -> Box | str:
    """The box, cut at the edge of the image that it reaches beyond by rounding."""
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
    return Box(label, box["x"], box["y"], box["width"], box["height"])


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


def _pixels(text: str | None) -> Decimal | None:
    """A place in pixels; None for what is none, or so small or large that to divide it fails."""
    try:
        number = Decimal(text if text and len(text) <= _LONGEST_NUMBER else "")
    except InvalidOperation:
        return None
    if number.is_finite() and (number == 0 or abs(number.adjusted()) < 10):
        return number
    return Decimal(0) if number.is_finite() and number.adjusted() < 0 else None
