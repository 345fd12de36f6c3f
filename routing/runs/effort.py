"""How long people need for a label, as it was measured in the project."""

from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from annotation.labelling.label_queries import imported_batches
from annotation.models import Label, Project

# Of so many newest labels: a plan is looked at while it is typed.
MOST_LABELS = 2_000
LEAST_LABELS = 10
ASSUMED_SECONDS = 15


@dataclass(frozen=True)
class Effort:
    """Seconds for a label: the median of `labels` newest ones, or where there are too few an assumption
    (`labels` is 0).
    """

    seconds: int
    labels: int


def effort_of(project: Project) -> Effort:
    newest = (
        Label.objects.filter(item__project=project, version=1, lead_time_ms__isnull=False)
        .exclude(work_item__batch__in=imported_batches(project))
        .order_by("-id")
        .values_list("lead_time_ms", flat=True)[:MOST_LABELS]
    )
    times = [time for time in newest if time is not None]
    if len(times) < LEAST_LABELS:
        return Effort(ASSUMED_SECONDS, 0)
    return Effort(max(1, round(median(times) / 1000)), len(times))


@dataclass(frozen=True)
class Hours:
    """Time of people, in seconds, for a plan."""

    calibration: float
    least: float
    everything: float


def hours_of(*, labels: Decimal, least: Decimal, items: int, people_per_item: Decimal, seconds: int) -> Hours:
    """`labels` calibration items, at least `least` and at most `items` in all, each looked at by
    `people_per_item` on average.
    """
    each = float(people_per_item) * seconds
    return Hours(float(labels) * each, float(least) * each, items * each)
