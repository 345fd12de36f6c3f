"""Whether what somebody answered is the known answer.

A label that was split is given no more: an item whose known answer it was is not used until a manager has set
the answer anew, and whoever gave it before is not judged by that.
"""

from django.db.models import QuerySet

from annotation.common.replaced_labels import choice_keys, replaced_labels
from annotation.common.value_reader import Value
from annotation.labelling.alike import Alike
from annotation.models import HeldOutItem, Project


def is_right(alike: Alike, given: Value, known: Value | None) -> bool:
    """As agreement counts two answers as equal in this type of task, after labels that were merged."""
    return known is not None and alike.now(known, given)


def with_known_answers(project: Project, purpose: str) -> QuerySet[HeldOutItem]:
    """The items of this purpose whose known answer can be given."""
    found = project.held_out.filter(purpose=purpose, answer__isnull=False, item__erased_at__isnull=True)
    split = replaced_labels(project).split
    if not split:
        return found
    rows = found.values_list("pk", "answer")
    return found.exclude(pk__in=[pk for pk, known in rows if choice_keys(known) & split])


def can_be_judged(project: Project, given: Value) -> bool:
    """Whether an answer can be compared with the known one: not where its label was split since."""
    split = replaced_labels(project).split
    return not split or not choice_keys(replaced_labels(project).now(given)) & split
