"""How long people need for a label, how fast they label a batch, when they will be done at that pace, and who
is at work now.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from statistics import median

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from annotation.labelling.label_queries import imported_batches
from annotation.labelling.queue import BatchProgress, batch_progress, progress_together
from annotation.labelling.validation import GIVEN_ELSEWHERE
from annotation.models import Label, Project, WorkBatch, WorkItem
from routing.models import Run
from routing.runs.expert.delivered import batches_of_experts
from routing.runs.people_left import PeopleLeft, people_left_in

# Of so many newest labels: a plan is looked at while it is typed.
MOST_LABELS = 2_000
LEAST_LABELS = 10
ASSUMED_SECONDS = 15


@dataclass(frozen=True)
class LabellingTime:
    """Seconds for a label: the median of `labels` newest ones, or where there are too few an assumption
    (`labels` is 0).
    """

    seconds: int
    labels: int


def labelling_time_of(project: Project) -> LabellingTime:
    """Of annotators: what was labelled as the expert of a run is left out."""
    labels = _timed(project)
    if experts := batches_of_experts(project):
        labels = labels.exclude(work_item__batch__in=experts)
    return _time_of(labels, ASSUMED_SECONDS)


def expert_time_of(project: Project, *, experts: Collection[str], people: int) -> LabellingTime:
    """Of the experts with these usernames, by whatever they labelled here; where there are none, of those who
    were experts of an earlier run. Where too few labels were timed, `people` seconds, as annotators need.
    """
    labels = _timed(project)
    if experts:
        return _time_of(labels.filter(annotator__username__in=list(experts)), people)
    return _time_of(labels.filter(work_item__batch__in=batches_of_experts(project)), people)


def _timed(project: Project) -> QuerySet[Label]:
    labels = Label.objects.filter(item__project=project, version=1, lead_time_ms__isnull=False)
    return labels.exclude(work_item__batch__in=imported_batches(project))


def _time_of(labels: QuerySet[Label], assumed: int) -> LabellingTime:
    newest = labels.order_by("-id").values_list("lead_time_ms", flat=True)[:MOST_LABELS]
    times = [time for time in newest if time is not None]
    if len(times) < LEAST_LABELS:
        return LabellingTime(assumed, 0)
    return LabellingTime(max(1, round(median(times) / 1000)), len(times))


@dataclass(frozen=True)
class PeopleTime:
    """Time of people, in seconds, for a plan."""

    calibration: float
    least: float
    everything: float


def people_time_of(
    *, labels: Decimal, least: Decimal, items: int, people_per_item: Decimal, seconds: int
) -> PeopleTime:
    """`labels` calibration items, at least `least` and at most `items` in all, each looked at by
    `people_per_item` on average.
    """
    each = float(people_per_item) * seconds
    return PeopleTime(float(labels) * each, float(least) * each, items * each)


State = WorkItem.State
HOUR = timedelta(hours=1)
# Over less than so many seconds a pace says more about the start than about the work.
SETTLED_SECONDS = 60
SHOWN_PEOPLE = 8


@dataclass(frozen=True)
class LabellingProgress:
    """People at work on one batch.

    Attributes
    ----------
    last_hour : int
        Items labelled in it; those that a manager gave up are none.
    per_hour : float or None
        Items ended here in the last hour, per hour since the first of them; None where there is none.
    seconds_left : float or None
        For what is left, at that pace; None where those who labelled can give none of it.
    at_work : list of str
        Names of those who hold an item now, at most SHOWN_PEOPLE; `people` counts all of them.
    """

    progress: BatchProgress
    last_hour: int
    per_hour: float | None
    seconds_left: float | None
    at_work: list[str]
    people: int

    @property
    def ended(self) -> int:
        return self.progress.done + self.progress.unlabelable

    @property
    def left(self) -> int:
        return self.progress.open + self.progress.leased


def labelling_progress_of(
    batch: WorkBatch, progress: BatchProgress, people_left: PeopleLeft | None = None
) -> LabellingProgress:
    """`people_left`: who can go on, where that is not everybody."""
    now = timezone.now()
    work = WorkItem.objects.filter(batch=batch)
    ended = work.filter(state__in=(State.DONE, State.UNLABELABLE), finished_at__gte=now - HOUR)
    # Labels from another program come many at once, which tells nothing of when the next ones do.
    elsewhere = Label.objects.filter(work_item=OuterRef("pk"), idempotency_key__startswith=GIVEN_ELSEWHERE)
    here = ~Exists(elsewhere)
    found = ended.aggregate(
        labels=Count("pk", filter=Q(state=State.DONE)),
        here=Count("pk", filter=here),
        since=Min("finished_at", filter=here),
    )
    per_hour = left = None
    if found["here"]:
        seconds = max((now - found["since"]).total_seconds(), SETTLED_SECONDS)
        per_hour = found["here"] * 3600 / seconds
        if not progress.all_stuck and _pace_holds(batch, people_left, now):
            left = (progress.open + progress.leased) * 3600 / per_hour
    held = work.filter(state=State.LEASED, lease_expires_at__gt=now)
    names = sorted(set(held.values_list("leased_to__username", flat=True)))
    return LabellingProgress(progress, found["labels"], per_hour, left, names[:SHOWN_PEOPLE], len(names))


def _pace_holds(batch: WorkBatch, people_left: PeopleLeft | None, now: datetime) -> bool:
    """Whether any of those who labelled in the last hour can go on."""
    if people_left is None:
        return True
    labels = Label.objects.filter(work_item__batch=batch, created_at__gte=now - HOUR)
    return labels.filter(annotator__username__in=people_left.names).exists()


def routed_progress(run: Run) -> BatchProgress | None:
    """Of what people label since the routing, audited later items included; the expert apart."""
    batches = [batch for batch in (run.routed_batch, run.later_audit_batch) if batch is not None]
    progresses = [batch_progress(batch) for batch in batches]
    return progress_together(*progresses) if len(progresses) > 1 else next(iter(progresses), None)


def run_labelling(
    run: Run, calibration: BatchProgress | None, routed: BatchProgress | None
) -> LabellingProgress | None:
    """Of the batch that people label for the run now; None while they label none."""
    if run.state == Run.State.CALIBRATING and run.calibration_batch and calibration:
        return labelling_progress_of(run.calibration_batch, calibration, people_left_in(run))
    if run.state == Run.State.CHECKING and run.expert_batch:
        return labelling_progress_of(run.expert_batch, batch_progress(run.expert_batch))
    if run.state == Run.State.LABELLING and run.expert_routed_batch and not (routed and _left(routed)):
        return labelling_progress_of(run.expert_routed_batch, batch_progress(run.expert_routed_batch))
    batch = run.routed_batch or run.later_audit_batch
    if run.state == Run.State.LABELLING and batch and routed:
        return labelling_progress_of(batch, routed, people_left_in(run))
    return None


def _left(progress: BatchProgress) -> int:
    return progress.open + progress.leased
