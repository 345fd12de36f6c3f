"""When the last routed item is done, the run is complete."""

from django.db.models import Q
from django.utils import timezone

from annotation.models import WorkItem
from routing.models import Run
from routing.services.states import State

# More than can be submitted at one moment: above it, no other request can be finishing the batch meanwhile.
CROWD = 200


def run_of_batch(batch_id: int) -> Run | None:
    """The run that a batch was made for."""
    return (
        Run.objects.filter(Q(calibration_batch=batch_id) | Q(routed_batch=batch_id))
        .select_related("project")
        .first()
    )


def complete_if_done(run: Run, ended: WorkItem) -> bool:
    """Complete the run if nothing of its routed batch is left but `ended`.

    Call it in the transaction that ends that.
    """
    others = WorkItem.objects.filter(
        batch=run.routed_batch, state__in=(WorkItem.State.OPEN, WorkItem.State.LEASED)
    ).exclude(pk=ended.pk)
    if len(others.values_list("pk")[:CROWD]) == CROWD:
        return False
    # Two people who finish the last two items at once do it one after the other; else each would see the
    # other's.
    Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    if others.exists():
        return False
    return bool(
        Run.objects.filter(pk=run.pk, state=State.LABELLING).update(
            state=State.COMPLETE, completed_at=timezone.now()
        )
    )
