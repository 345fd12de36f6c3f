"""Who can still give the answers that are missing in a run, where others have nothing left to do."""

from dataclasses import dataclass

from django.utils.translation import gettext as _, ngettext

from annotation.labelling import queue
from annotation.models import Skip, WorkBatch, WorkItem
from routing.common.states import State
from routing.models import Run

# Where more is open, nearly everybody has something left, and finding out takes longer.
MOST_OPEN = 1_000
NAMED = 5


@dataclass(frozen=True)
class PeopleLeft:
    """`names` of those who can still label something, fewer than all who label; `skipped`: how many of the
    items were skipped, 0 where that may not be told.
    """

    names: tuple[str, ...]
    skipped: int


def people_left_in(run: Run) -> PeopleLeft | None:
    """None where everybody who labels can go on, or nobody can, or the work is given out by a roster."""
    batches: tuple[WorkBatch | None, ...] = (run.calibration_batch,) if run.state == State.CALIBRATING else ()
    if run.state == State.LABELLING:
        batches = (run.routed_batch, run.later_audit_batch)
    asking = [batch for batch in batches if batch is not None]
    unfinished = WorkItem.objects.filter(batch__in=asking, state__in=WorkItem.UNFINISHED)
    if any(batch.rostered for batch in asking) or not 0 < unfinished.count() <= MOST_OPEN:
        return None
    left: set[str] = set()
    label: set[str] = set()
    for batch in asking:
        can, may = queue.who_is_left(batch)
        left |= can
        label |= may
    if not left or left == label:
        return None
    told = unfinished.filter(batch__blind=False).exclude(batch=run.later_audit_batch_id)
    skips = Skip.objects.filter(work_item__batch__in=asking, cleared_at__isnull=True)
    skipped = told.filter(item__in=skips.values("work_item__item"))
    return PeopleLeft(tuple(sorted(left)), skipped.values("item").distinct().count())


def only_they_can(left: PeopleLeft, reader: str) -> str:
    """In a sentence, or two, for the person with this username."""
    if left.names == (reader,):
        said = _("Only you can still give what is missing: everybody else has answered it or skipped it.")
    else:
        names = ", ".join(left.names[:NAMED]) + (" …" if len(left.names) > NAMED else "")
        said = _(
            "Only %(names)s can still give what is missing: everybody else has answered it or skipped it."
        )
        said = said % {"names": names}
    if not left.skipped:
        return said
    skipped = ngettext(
        "%(count)s item was skipped; its page says by whom and why.",
        "%(count)s items were skipped; their pages say by whom and why.",
        left.skipped,
    )
    return f"{said} {skipped % {'count': f'{left.skipped:,}'}}"
