"""What a project asks for each item. A new one is one file and one line here.

Everything that depends on it asks the task type: forms and pages, imports and deliveries, prompts, schemas,
agreement. A task type speaks of values only, and nothing here needs a database.
"""

from typing import Any

from annotation.task_types.base import MISSING, Labels, Read, Reading, TaskType, Value, ValueReason, as_text
from annotation.task_types.boxes import Boxes
from annotation.task_types.code import Code
from annotation.task_types.long_text import LongText
from annotation.task_types.masks import Masks
from annotation.task_types.math import Math
from annotation.task_types.multiple_choice import MultipleChoice
from annotation.task_types.number import Number
from annotation.task_types.opaque import Opaque
from annotation.task_types.shapes import Shapes
from annotation.task_types.short_text import ShortText
from annotation.task_types.single_choice import SingleChoice

__all__ = [
    "DEFAULT",
    "MISSING",
    "SHAPES",
    "TASK_TYPES",
    "Labels",
    "Read",
    "Reading",
    "Shapes",
    "TaskType",
    "Value",
    "ValueReason",
    "as_text",
    "task_type_titles",
]

TASK_TYPES: dict[str, TaskType] = {
    kind.name: kind
    for kind in (
        *(SingleChoice(), MultipleChoice(), Number(), Math(), ShortText(), LongText(), Code()),
        *(Boxes(), Masks(), Opaque()),
    )
}
"""By the name that a project stores, in the order of the page on which a project is made."""
SHAPES: tuple[Shapes[Any], ...] = tuple(kind for kind in TASK_TYPES.values() if isinstance(kind, Shapes))
"""Those whose values are drawn on an image."""
DEFAULT = SingleChoice.name


def task_type_titles() -> list[tuple[str, str]]:
    """(name, title) of all there are, for fields in which one is chosen."""
    return [(name, str(kind.title)) for name, kind in TASK_TYPES.items()]
