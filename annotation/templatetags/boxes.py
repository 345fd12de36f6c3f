"""Boxes drawn over their image: what `components/_boxes.html` shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import template

from annotation.models import Project
from annotation.task_types import TASK_TYPES
from annotation.task_types.boxes import Box, boxes_in_words, boxes_of

register = template.Library()
DRAWN = 200
"""Boxes of one answer; of more it is said that there are more."""
OTHER = "#3f5a73"


@dataclass(frozen=True)
class DrawnBox:
    """The sides in percent of the image, as SVG has numbers; `name` and `color` are those of its label."""

    x: str
    y: str
    width: str
    height: str
    name: str
    color: str

    @classmethod
    def of(cls, box: Box, name: str, color: str) -> "DrawnBox":
        x, y, width, height = (f"{side:f}" for side in box[1:])
        return cls(x, y, width, height, name, color)


@dataclass(frozen=True)
class DrawnBoxes:
    words: str
    boxes: list[DrawnBox]
    more: int


@register.filter
def box_labels(project: Project) -> dict[str, tuple[str, str]] | None:
    """Name and colour of each label by its key, where the project asks for boxes; None elsewhere."""
    if not TASK_TYPES[project.task_type].on_images:
        return None
    return {choice.key: (choice.name, choice.color) for choice in project.choices.all()}


@register.filter
def boxes(value: Any, labels: Mapping[str, tuple[str, str]] | None) -> DrawnBoxes | None:
    """An answer to be drawn; None for what is none of boxes."""
    found = None if labels is None else boxes_of(value)
    if labels is None or found is None:
        return None
    drawn = [DrawnBox.of(box, *labels.get(box.label, (box.label, OTHER))) for box in found[:DRAWN]]
    names = {key: name for key, (name, _color) in labels.items()}
    return DrawnBoxes(boxes_in_words(found, names), drawn, len(found) - len(drawn))
