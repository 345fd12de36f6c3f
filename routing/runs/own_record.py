"""Which labels by people count in a run: where one person's word is right any, else those it asked for."""

from django.db.models import Q

from annotation.labelling.labels_of_record import has_record
from routing.models import Run


def has_own_record(run: Run, *, item: str) -> Q:
    """Whether an item of the run's pool has a label that counts, for rows that name it by `item`."""
    return has_record(run.project, item=item, only=run.only_batches)
