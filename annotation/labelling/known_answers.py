"""Whether what somebody answered is the known answer."""

from annotation.common.replaced_labels import replaced_labels
from annotation.common.value_reader import Value
from annotation.models import Project
from annotation.task_types import TASK_TYPES


def is_right(project: Project, given: Value, known: Value | None) -> bool:
    """As agreement counts two answers as equal in this type of task, after labels that were merged."""
    if known is None:
        return False
    kind, now = TASK_TYPES[project.task_type], replaced_labels(project).now
    return kind.comparable(now(given)) == kind.comparable(now(known))
