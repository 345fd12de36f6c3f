"""Boxes and masks drawn over their image: what `components/_shapes.html` shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import template

from annotation.models import Project
from annotation.task_types import TASK_TYPES, Shapes
from annotation.task_types.shapes import Drawing

register = template.Library()
OTHER = "#3f5a73"


@dataclass(frozen=True)
class ShapesOfProject:
    """What a project asks for, and name and colour of each label by its key."""

    kind: Shapes[Any]
    labels: Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class DrawnShape:
    path: str
    name: str
    color: str


@dataclass(frozen=True)
class DrawnShapes:
    words: str
    drawing: Drawing
    shapes: list[DrawnShape]


@register.filter
def shapes_of(project: Project) -> ShapesOfProject | None:
    """What is drawn in a project; None where nothing is."""
    kind = TASK_TYPES[project.task_type]
    if not isinstance(kind, Shapes):
        return None
    return ShapesOfProject(kind, {one.key: (one.name, one.color) for one in project.choices.all()})


@register.filter
def drawn(value: Any, by: ShapesOfProject | None) -> DrawnShapes | None:
    """An answer to be drawn; None for what is none of shapes."""
    found = None if by is None else by.kind.drawn(value)
    if by is None or found is None:
        return None
    shapes = [DrawnShape(one.path, *by.labels.get(one.label, (one.label, OTHER))) for one in found.paths]
    words = by.kind.in_words(value, {key: name for key, (name, _color) in by.labels.items()})
    return DrawnShapes(words or "", found, shapes)
