"""Deciding what a label is about which people differ, as a reviewer."""

from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import ConflictError
from annotation.labelling.settlement import adjudicate
from annotation.models import Project, Settlement, User, WorkItem
from annotation.review.queries import dispute_of, was_decided


class NoDisputeError(ConflictError):
    """The item does not wait for a decision, and this person has made none about it."""


def decide_dispute(
    *,
    project: Project,
    actor: User,
    work_item: WorkItem,
    value: Any,
    comment: str = "",
    confirmed: bool = False,
) -> Settlement:
    """Decide about an item of the project; `work_item` is that of slot 0. Whoever decided may change it.

    Once its labels are locked, `confirmed` has to say that what rests on them becomes invalid. Raises
    NoDisputeError, and what `adjudicate` raises.
    """
    if dispute_of(project, actor, work_item.pk) is None and not was_decided(work_item):
        # Nothing is told of an item that never waited for a reviewer, not even whether it was asked about.
        raise NoDisputeError(_("This item does not wait for a decision any more."), code="no_dispute")
    return adjudicate(
        batch=work_item.batch,
        item=work_item.item,
        actor=actor,
        value=value,
        comment=comment.strip(),
        confirmed=confirmed,
    )
