"""Which answers to one item are the same. Mostly equal ones are; where no two people give quite the same
value, as with boxes, those are between which the project's loss is 0.
"""

import json
from collections import Counter
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


def alike_by_loss(project: Project, first: Value, second: Value) -> bool:
    """The same for answers that are not equal; False for types of which only equal ones are the same."""
    return TASK_TYPES[project.task_type].compared_by_loss and are_alike(project, first, second)


def given_by_most(project: Project, values: Sequence[Value]) -> Value | None:
    """What more than half of the answers to one item are, or are the same as; None where there is nothing.

    Of answers that are the same without being equal it is the one that most of them are the same as, of
    several such the first. That A is the same as B and B as C does not say that A is the same as C.
    """
    counts = _counts(project, values)
    most = max(counts, default=0)
    return values[counts.index(most)] if 2 * most > len(values) else None


def comparable_answers(project: Project, values: Sequence[Value]) -> list[Hashable]:
    """What of the answers to one item counts when they are compared, in whatever order they come: where they
    can be the same without being equal, the one that most of them are the same as stands for these.
    """
    kind, now = TASK_TYPES[project.task_type], replaced_labels(project).now
    found: list[Hashable] = [kind.comparable(now(value)) for value in values]
    if not kind.compared_by_loss:
        return found
    left = sorted(range(len(values)), key=lambda place: str(found[place]))
    answers = [now(value) for value in values]
    while left:
        counts = _counts(project, [answers[place] for place in left])
        chosen = left[counts.index(max(counts))]
        same = [place for place in left if are_alike(project, answers[chosen], answers[place])]
        for place in same:
            found[place] = found[chosen]
        left = [place for place in left if place not in same]
    return found


def _counts(project: Project, values: Sequence[Value]) -> list[int]:
    """Of each answer how many are the same as it, itself among them."""
    kind = TASK_TYPES[project.task_type]
    if not kind.compared_by_loss:
        texts = [json.dumps(value) for value in values]
        number = Counter(texts)
        return [number[text] for text in texts]
    return [sum(are_alike(project, one, other) for other in values) for one in values]
