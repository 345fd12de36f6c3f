"""People on the roster of a run who have open items: whoever is absent holds the run up."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Q

from annotation.models import Label, User, WorkItem
from annotation.permissions import members_who_label
from routing.common.states import State
from routing.models import Run


@dataclass(frozen=True)
class OpenWork:
    """Of one person on the roster.

    Attributes
    ----------
    open, done : int
        Items of this person in what the run has people label now.
    last : datetime or None
        When they labelled last in this project.
    may_label : bool
        Whether they still may: who is paused is absent.
    expert : bool
    """

    user: User
    open: int
    done: int
    last: datetime | None
    may_label: bool
    expert: bool


def open_work_of(run: Run) -> list[OpenWork]:
    """Of everybody on the roster, those with most open items first; empty where nobody is asked now."""
    batches = _asked_now(run)
    if not batches or not run.roster.exists():
        return []
    counts = {
        row["assigned_to"]: row
        for row in WorkItem.objects.filter(batch__in=batches, assigned_to__isnull=False)
        .values("assigned_to")
        .annotate(
            open=Count("pk", filter=Q(state__in=WorkItem.UNFINISHED)),
            done=Count("pk", filter=Q(state=WorkItem.State.DONE)),
        )
        .order_by()
    }
    entries = [entry for entry in run.roster.select_related("user") if entry.user_id in counts]
    users = [entry.user_id for entry in entries]
    last = dict(
        Label.objects.filter(annotator__in=users, item__project=run.project_id)
        .values_list("annotator")
        .annotate(at=Max("created_at"))
        .order_by()
    )
    able = _able(run, users)
    rows = [
        OpenWork(
            user=entry.user,
            open=counts[entry.user_id]["open"],
            done=counts[entry.user_id]["done"],
            last=last.get(entry.user_id),
            may_label=entry.user_id in able,
            expert=entry.role == entry.Role.EXPERT,
        )
        for entry in entries
    ]
    return sorted(rows, key=lambda row: (-row.open, row.user.username))


def _asked_now(run: Run) -> list[int]:
    batches = {
        State.CALIBRATING: (run.calibration_batch_id,),
        State.CHECKING: (run.expert_batch_id,),
        State.LABELLING: (run.routed_batch_id, run.expert_routed_batch_id, run.later_audit_batch_id),
    }.get(State(run.state), ())
    return [batch for batch in batches if batch is not None]


def _able(run: Run, users: list[int]) -> set[int]:
    return set(
        members_who_label(run.project_id)
        .filter(user__in=users, paused_at__isnull=True)
        .values_list("user", flat=True)
    )
