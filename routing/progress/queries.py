"""What the page of a project's progress shows: counted by the database, or on a bounded sample of items."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from django.db.models import Count, Q, Sum
from django.utils.translation import gettext as _

from annotation.common.replaced_labels import replaced_labels
from annotation.labelling.limits import midnight
from annotation.models import Choice, Project
from annotation.people.queries import SHOWN_DAYS, Person, labels_per_day, of_a_sample, people
from annotation.permissions import Access
from annotation.task_types import TASK_TYPES
from routing.core.losses import LossNotComputedError
from routing.models import Run, Source, Spend
from routing.runs.budget import spends_of_models
from routing.sources.measured import MeasuredAccuracy, measured_accuracy
from routing.visibility import ViewPermission, view_permission

SHOWN_PEOPLE = 50
SHOWN_RUNS = 10
ZERO = Decimal(0)


@dataclass(frozen=True)
class DayLabels:
    """Labels of one day in the current time zone; `share` of the best day shown, in [0, 1]."""

    day: date
    labels: int
    share: float


@dataclass(frozen=True)
class ClassLabels:
    """How many of the labels that count now give this choice; `share` is of all labels, in [0, 1]."""

    choice: Choice
    labels: int
    share: float


@dataclass(frozen=True)
class RunMoney:
    """What a run's models and people were paid; `budget` is that of the models, None where there is none."""

    run: Run
    budget: Decimal | None
    models: Decimal
    people: Decimal

    @property
    def used(self) -> float | None:
        """The share of the budget that is spent, in [0, 1]."""
        return float(self.models / self.budget) if self.budget else None


@dataclass(frozen=True)
class OtherMoney:
    """What was paid beside the runs that are shown, so that all rows together are what was paid in all."""

    what: str
    models: Decimal
    people: Decimal


@dataclass(frozen=True)
class ProjectProgress:
    """Attributes
    ----------
    days
        The last SHOWN_DAYS days, the oldest first, those without a label included.
    classes
        In the order of the project's labels; empty where people write their answers.
    labelled
        Labels that `classes` are counted on. What is hidden before its run is analysed is not among them.
    people
        Those who have labelled, most labels first, at most SHOWN_PEOPLE.
    of_a_sample
        Whether the agreement of these is that of a random sample of items.
    sources
        Models beside people, on what analysed runs drew; empty until this person may see model output.
    computing
        Sources whose losses are still being computed, which are not among `sources` until then.
    money
        Of the newest SHOWN_RUNS runs, the newest first; `models` and `by_people` are of the whole project.
    other_money
        The rest of these, by what it was paid for; empty where there is none.
    """

    days: list[DayLabels]
    classes: list[ClassLabels]
    labelled: int
    people: list[Person]
    of_a_sample: bool
    sources: list[tuple[Source, MeasuredAccuracy]]
    computing: list[Source]
    money: list[RunMoney]
    models: Decimal
    by_people: Decimal
    other_money: list[OtherMoney]


def read_progress(project: Project, access: Access) -> ProjectProgress:
    """What this person may see of how the project comes on."""
    permission = view_permission(project, access)
    classes, labelled = _classes(permission)
    everybody = [person for person in people(project, sort="labels") if person.work.labels]
    sums = Spend.objects.filter(project=project).aggregate(
        models=Sum("amount", filter=Q(source__isnull=False)),
        people=Sum("amount", filter=Q(source__isnull=True)),
    )
    paid = {of: amount or ZERO for of, amount in sums.items()}
    money = _money(project.runs.order_by("-number")[:SHOWN_RUNS])
    measured, computing = _sources(project, access) if permission.output else ([], [])
    return ProjectProgress(
        days=_days(project),
        classes=classes,
        labelled=labelled,
        people=everybody[:SHOWN_PEOPLE],
        of_a_sample=of_a_sample(everybody),
        sources=measured,
        computing=computing,
        money=money,
        models=paid["models"],
        by_people=paid["people"],
        other_money=_other_money(project, paid, money),
    )


def _days(project: Project) -> list[DayLabels]:
    known = {row.day: row for row in labels_per_day(project)}
    today = midnight().date()
    days = [today - timedelta(days=ago) for ago in reversed(range(SHOWN_DAYS))]
    return [
        DayLabels(day, known[day].labels, known[day].share) if day in known else DayLabels(day, 0, 0.0)
        for day in days
    ]


def _classes(permission: ViewPermission) -> tuple[list[ClassLabels], int]:
    project = permission.project
    if not TASK_TYPES[project.task_type].has_choices:
        return [], 0
    # Practice, gold and guideline rounds are nobody's labels of record.
    batches = project.work_batches.filter(pk__in=permission.batches, for_round=False, for_gold=False)
    labels = permission.labels().filter(work_item__batch__in=list(batches.values_list("pk", flat=True)))
    counts: dict[str, int] = {}
    total, now = 0, replaced_labels(project).now
    for value, n in labels.order_by().values_list("value").annotate(n=Count("pk")):
        total += n
        read = now(value)
        for key in read if isinstance(read, list) else [read]:
            counts[key] = counts.get(key, 0) + n
    choices = project.choices.order_by("position")
    return [
        ClassLabels(one, counts.get(one.key, 0), counts.get(one.key, 0) / total if total else 0.0)
        for one in choices
    ], total


def _sources(project: Project, access: Access) -> tuple[list[tuple[Source, MeasuredAccuracy]], list[Source]]:
    """Those that are measured, and those whose losses are still being computed."""
    found: list[tuple[Source, MeasuredAccuracy]] = []
    computing: list[Source] = []
    for source in project.sources.order_by("position"):
        try:
            measured = measured_accuracy(source, access)
        except LossNotComputedError:
            computing.append(source)
        else:
            found += [(source, measured)] if measured is not None else []
    return found, computing


def _money(newest_first: Iterable[Run]) -> list[RunMoney]:
    rows: list[RunMoney] = []
    counted = set[int | None]()
    for run in newest_first:
        people = Spend.objects.filter(run=run, source__isnull=True).aggregate(total=Sum("amount"))["total"]
        spends = spends_of_models(run)
        # A cancelled run leaves its measurement to the next one: what was paid for it stands with the newest.
        if run.measurement_id in counted:
            spends = spends.filter(measurement=None)
        elif run.measurement_id is not None:
            counted.add(run.measurement_id)
        models = spends.aggregate(total=Sum("amount"))["total"]
        rows.append(RunMoney(run, run.budget, models or ZERO, people or ZERO))
    return rows


def _other_money(project: Project, paid: dict[str, Decimal], shown: Sequence[RunMoney]) -> list[OtherMoney]:
    """Nobody is paid for a label outside of a run."""
    spends = Spend.objects.filter(project=project, run=None)
    rested_on = project.runs.filter(measurement__isnull=False).values("measurement")
    for_none = Q(measurement__isnull=False) & ~Q(measurement__in=rested_on)
    sums = spends.aggregate(
        measured=Sum("amount", filter=for_none), prompts=Sum("amount", filter=Q(candidate__isnull=False))
    )
    measured, prompts = sums["measured"] or ZERO, sums["prompts"] or ZERO
    models = paid["models"] - measured - prompts - sum((row.models for row in shown), ZERO)
    people = paid["people"] - sum((row.people for row in shown), ZERO)
    found = [
        OtherMoney(_("Earlier runs"), models, people),
        OtherMoney(_("Measurements that no run rests on"), measured, ZERO),
        OtherMoney(_("Comparing prompts"), prompts, ZERO),
    ]
    return [row for row in found if row.models or row.people]
