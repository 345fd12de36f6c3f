"""What a certificate says of items that several people answered."""

from typing import Any

from django.db.models import Q

from annotation.models import Label, Settlement, WorkItem
from routing.core.exact import plain
from routing.models import Run


def overlap_document(run: Run) -> dict[str, Any]:
    """How many people were asked, and how the labels of record of the calibration set came about, as it was
    when its labels were locked.
    """
    batch = run.calibration_batch
    if batch is None or batch.locked_at is None:
        raise ValueError("The calibration labels are not locked.")
    several = WorkItem.objects.filter(batch=batch, slot=1)
    answers = Label.objects.filter(work_item__batch=batch, version=1, created_at__lte=batch.locked_at)
    # Of each item the version that held then.
    later = Q(superseded_by__isnull=False, superseded_by__created_at__lte=batch.locked_at)
    settled = Settlement.objects.filter(
        batch=batch, created_at__lte=batch.locked_at, value__isnull=False
    ).exclude(later)
    methods = {
        method: settled.filter(method=method).count()
        for method in (Settlement.Method.MAJORITY, Settlement.Method.ADJUDICATED)
    }
    return {
        "people": run.overlap,
        "share": plain(run.overlap_share),
        "people_cost_per_item": plain(run.cost_per_item),
        "items_with_several": several.count(),
        "answers": answers.count(),
        "settled_by": {method.value: count for method, count in methods.items()},
        "outside_calibration": run.consensus,
    }
