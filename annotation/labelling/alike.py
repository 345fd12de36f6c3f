"""Which answers to one item are the same. Mostly equal ones are; where no two people give quite the same
value, as with boxes, those are between which the project's loss is 0.
"""

from collections.abc import Hashable, Sequence

from annotation.common.replaced_labels import replaced_labels
from annotation.common.value_reader import Value
from annotation.models import Project
from annotation.ports import routing_port
from annotation.task_types import TASK_TYPES


def are_alike(project: Project, first: Value, second: Value) -> bool:
    """Of two answers as they are now, after labels that were merged."""
    kind = TASK_TYPES[project.task_type]
    if kind.comparable(first) == kind.comparable(second):
        return True
    return kind.compared_by_loss and routing_port().same_answer(
        project=project, first=str(first), second=str(second)
    )


def as_first(project: Project, values: Sequence[Value]) -> list[Value]:
    """The answers to one item, each in place of those that are the same as it and come later."""
    if not TASK_TYPES[project.task_type].compared_by_loss:
        return list(values)
    firsts: list[Value] = []
    found = []
    for value in values:
        same = next((first for first in firsts if are_alike(project, first, value)), None)
        if same is None:
            firsts.append(value)
        found.append(value if same is None else same)
    return found


def comparable_answers(project: Project, values: Sequence[Value]) -> list[Hashable]:
    """What of the answers to one item counts when they are compared."""
    kind, now = TASK_TYPES[project.task_type], replaced_labels(project).now
    return [kind.comparable(value) for value in as_first(project, [now(value) for value in values])]
