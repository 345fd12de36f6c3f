"""A second draw: what the data set that it completes holds beside its own pool."""

from annotation.models import Project
from annotation.selectors.label_values import imported_batches
from annotation.selectors.settled import has_record
from routing.models import Run
from routing.selectors.visibility import hidden_batches


def data_set_size(project: Project, *, target: str, pool_size: int) -> int | None:
    """N_all: items of the data set that a run on the `pool_size` items without a label would complete.

    The other items of the delivery carry labels that people gave before. For the target `dataset` these count
    as right, so the pool may hold as many wrong labels as are allowed in the whole data set. None where there
    are no such items, and for the other targets, which speak about the pool or its source alone.

    An item whose labels may not be shown yet is delivered blank, so it is not counted. Nor is one whose
    label came with an import: nobody gave it for this project, so that it allows no wrong label elsewhere.
    """
    if target != Run.Target.DATASET:
        return None
    aside = hidden_batches(project).union(imported_batches(project))
    labelled = project.items.filter(has_record(project, item="pk", hidden=aside)).count()
    return pool_size + labelled if labelled else None
