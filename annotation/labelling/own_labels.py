"""One's own answers in a project, to look for one and correct it."""

import json

from django.db.models import Q, QuerySet

from annotation.labelling.label_queries import with_choice
from annotation.models import Label, Project, User
from annotation.task_types import TASK_TYPES

MAX_SEARCH = 200
"""Characters."""


def own_labels(project: Project, user: User, *, search: str = "") -> QuerySet[Label]:
    """The newest version of each label that this person has given here, newest first: all of them, as what is
    left out would tell which items people are asked about anew.

    `search` is part of the item's text or of its name without folders, of the comment, or of the answer.
    """
    labels = Label.objects.select_related("item__image", "work_item__batch").filter(
        annotator=user,
        work_item__batch__project=project,
        work_item__batch__imported_by__isnull=True,
        superseded_by__isnull=True,
    )
    if words := search.strip()[:MAX_SEARCH]:
        labels = labels.filter(_found(labels, project, words))
    return labels.order_by("-pk")


def _found(labels: QuerySet[Label], project: Project, words: str) -> Q:
    found = Q(item__text__icontains=words) | Q(comment__icontains=words)
    if "/" not in words:
        found |= Q(item__external_id__icontains=words) & ~Q(item__external_id__contains="/")
        found |= Q(item__external_id__iendswith=words)
    if TASK_TYPES[project.task_type].has_labels:
        for key in project.choices.filter(name__icontains=words).values_list("key", flat=True):
            found |= Q(pk__in=with_choice(labels, project, key).values("pk"))
        return found
    # One database stores other letters than those of ASCII as they are, the other escaped.
    return found | Q(value__icontains=words) | Q(value__icontains=json.dumps(words)[1:-1])
