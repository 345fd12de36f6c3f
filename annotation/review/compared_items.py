"""Which of the items that several people have labelled are compared: all, or of many a random sample."""

import random
from collections.abc import Collection

from django.db.models import QuerySet, Sum, TextField
from django.db.models.functions import Cast, Length

from annotation.models import Label, Project
from annotation.task_types import TASK_TYPES

Unit = tuple[int, int]
"""A batch and an item, by their keys."""

MAX_ITEMS = 4000
"""Of more items a random sample is taken, the same one each time."""
MAX_CHARACTERS = 10_000_000
"""Of answers that a loss compares, as it does boxes and masks, those to so few items are read, drawn at
random, that they have no more together if they are as long as all on average: a second or two of work.
"""


def compared_units(project: Project, units: Collection[Unit], *, secret: str) -> set[Unit]:
    """Those of `units` that are compared: the beginning of a random order, which `secret` makes, so that
    nobody who labels knows which these will be.

    They are a simple random sample, but for `MAX_CHARACTERS`: how many they are then depends on how long the
    answers to those at the beginning are. What is exact for a sample whose size is fixed then holds only if
    long answers agree as often as short ones.
    """
    drawn = random.Random(f"compared items {secret}")  # noqa: S311
    chosen = drawn.sample(sorted(units), min(len(units), MAX_ITEMS))
    if chosen and TASK_TYPES[project.task_type].compared_by_loss:
        long = answers_to(chosen).aggregate(long=Sum(Length(Cast("value", TextField()))))["long"] or 0
        if long > MAX_CHARACTERS:
            chosen = chosen[: max(len(chosen) * MAX_CHARACTERS // long, 1)]
    return set(chosen)


def answers_to(units: Collection[Unit]) -> QuerySet[Label]:
    """What people say of these items, and maybe of others of their batches."""
    labels = Label.objects.filter(
        item__in={item for _, item in units},
        work_item__batch__in={batch for batch, _ in units},
        superseded_by__isnull=True,
    )
    # Who decides where two differ is asked only there: such answers would make people seem to differ less.
    return labels.exclude(work_item__batch__third_decides=True, work_item__slot__gt=1)
