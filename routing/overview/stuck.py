"""What happened to the items that nobody is left to label, for whoever decides about them."""

from collections import defaultdict
from dataclasses import dataclass, field

from django.db.models import Q

from annotation.common.replaced_labels import names_as_given
from annotation.labelling import queue
from annotation.labelling.label_queries import in_words
from annotation.models import Skip, WorkItem
from annotation.permissions import Access
from routing.visibility import view_permission

SHOWN_STUCK = 20


@dataclass(frozen=True)
class StuckItem:
    """`skips` that nobody took back, and `answers` as (person, label in words). `blind`: nothing of both may
    be seen yet, as labels of its batch are compared with models.
    """

    work: WorkItem
    blind: bool
    skips: list[Skip] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)


def stuck_items_of(access: Access) -> list[StuckItem]:
    """The first SHOWN_STUCK in the order of the queue."""
    found = list(queue.stuck_items(access.project).select_related("item__image", "batch")[:SHOWN_STUCK])
    permission = view_permission(access.project, access)
    closed = permission.hidden | permission.audits
    asked_anew = set(permission.in_open_calibration([work.item_id for work in found]))
    blind = {
        work.pk for work in found if work.batch.blind or work.batch_id in closed or work.item_id in asked_anew
    }
    of = Q(
        work_item__batch__in={work.batch_id for work in found if work.pk not in blind},
        work_item__item__in=[work.item_id for work in found if work.pk not in blind],
    )
    skips: dict[tuple[int, int], list[Skip]] = defaultdict(list)
    shown = permission.skips().filter(of, cleared_at__isnull=True).select_related("user", "work_item")
    for skip in shown.order_by("pk"):
        skips[skip.work_item.batch_id, skip.work_item.item_id].append(skip)
    answers: dict[tuple[int, int], list[tuple[str, str]]] = defaultdict(list)
    names = names_as_given(access.project)
    labels = permission.labels().filter(of).select_related("annotator", "work_item")
    for label in labels.order_by("work_item__slot", "pk"):
        given = (label.annotator.get_username(), in_words(label.value, names))
        answers[label.work_item.batch_id, label.item_id].append(given)
    return [
        StuckItem(
            work,
            blind=work.pk in blind,
            skips=[] if work.pk in blind else skips[work.batch_id, work.item_id],
            answers=[] if work.pk in blind else answers[work.batch_id, work.item_id],
        )
        for work in found
    ]
