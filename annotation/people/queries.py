"""Reading what the people of a project have done: a few queries for all of them, none for each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection
from django.db.models import Aggregate, Count, Exists, F, FloatField, Max, OuterRef, Q, QuerySet, Sum, Window
from django.db.models.functions import RowNumber, TruncDate

from annotation.labelling.label_queries import labels_of
from annotation.labelling.limits import midnight
from annotation.models import Comment, Label, Membership, Project, Skip, User
from annotation.ports import routing_port
from annotation.review.agreement_queries import AnnotatorAgreement, agreement_by_annotator

MS_PER_HOUR = 3_600_000
SHOWN_DAYS = 30


@dataclass(frozen=True)
class Work:
    """What one person has done here. Times in seconds, as the page measured them without idle time.

    `labels` and `today` count items, a correction being no further one; `active` is the time of all answers,
    corrections included. `pace` is items per hour of that time, `cost` what the labels cost at the project's
    price of today. None: nothing to tell it from.
    """

    labels: int = 0
    today: int = 0
    skips: int = 0
    flags: int = 0
    median: float | None = None
    active: float | None = None
    pace: float | None = None
    last: datetime | None = None
    cost: Decimal = Decimal(0)
    agreement: AnnotatorAgreement | None = None


@dataclass(frozen=True)
class Person:
    membership: Membership
    work: Work

    @property
    def user(self) -> User:
        return self.membership.user


def people(project: Project, *, sort: str = "name") -> list[Person]:
    """All members with their work, sorted by one of SORTS; an unknown one is by name."""
    memberships = list(project.memberships.select_related("user").order_by("user__username"))
    work = _work(project)
    found = [Person(membership, work.get(membership.user_id, Work())) for membership in memberships]
    key = SORTS.get(sort)
    return sorted(found, key=key) if key else found


def person(project: Project, membership: Membership) -> Person:
    """One member with their work."""
    return Person(membership, _work(project, membership.user).get(membership.user_id, Work()))


def of_a_sample(people: Iterable[Person]) -> bool:
    """Whether their agreement is that of a random sample of the items that several people have labelled."""
    return any(person.work.agreement is not None and person.work.agreement.sampled for person in people)


# Most first, and by name where two are equal, since `people` comes sorted by name.
SORTS: dict[str, Callable[[Person], Any]] = {
    "role": lambda person: list(Membership.Role).index(Membership.Role(person.membership.role)),
    "labels": lambda person: -person.work.labels,
    "today": lambda person: -person.work.today,
    "skips": lambda person: -person.work.skips,
    "flags": lambda person: -person.work.flags,
    "median": lambda person: -(person.work.median or 0),
    "active": lambda person: -(person.work.active or 0),
    "pace": lambda person: -(person.work.pace or 0),
    "last": lambda person: -(person.work.last.timestamp() if person.work.last else 0),
    "cost": lambda person: -person.work.cost,
    "agreement": lambda person: -(_share(person) or 0),
}


@dataclass(frozen=True)
class Day:
    """Labels of one day; `share` of the best day shown, in [0, 1]."""

    day: date
    labels: int
    share: float


def labels_per_day(project: Project, user: User | None = None, *, days: int = SHOWN_DAYS) -> list[Day]:
    """The last `days` days in the current time zone that have labels of this person, or of anybody, newest
    first.
    """
    since = midnight() - timedelta(days=days - 1)
    counts = (
        labels_of(project, imported=False)
        .filter(version=1, created_at__gte=since, **({"annotator": user} if user else {}))
        .order_by()
        .values(day=TruncDate("created_at"))
        .annotate(labels=Count("pk"))
        .order_by("-day")
    )
    rows = [(row["day"], row["labels"]) for row in counts]
    best = max((labels for _, labels in rows), default=1)
    return [Day(day, labels, labels / best) for day, labels in rows]


def latest_labels(project: Project, user: User, *, most: int = 20) -> tuple[list[Label], bool]:
    """The person's newest labels, and whether others may not be listed: which items are in a calibration set
    is nobody's to see before its run is analysed.
    """
    hidden = routing_port().hidden_batches(project=project)
    # Not by superseded_by__isnull: PostgreSQL takes the join that it makes for one that leaves one row.
    newer = Label.objects.filter(supersedes=OuterRef("pk"))
    labels = labels_of(project, imported=False).filter(~Exists(newer), annotator=user)
    unseen = Q(work_item__batch__in=hidden) | routing_port().hidden_items(project=project, item_path="item")
    kept_back = labels.filter(unseen).exists()
    labels = labels.exclude(unseen)
    newest = list(labels.order_by("-id").values_list("pk", flat=True)[:most])
    shown = (
        Label.objects.filter(pk__in=newest)
        .select_related("item")
        .defer("item__data", "item__typed", "item__text")
    )
    return list(shown.order_by("-id")), kept_back


def _work(project: Project, user: User | None = None) -> dict[int, Work]:
    """By the id of the person; of everybody, or of one."""
    who = {"annotator": user} if user else {}
    labels = labels_of(project, imported=False).filter(**who).order_by()
    counts: dict[int, dict[str, Any]] = {
        row["annotator"]: dict(row)
        for row in labels.values("annotator").annotate(
            labels=Count("pk", filter=Q(version=1)),
            today=Count("pk", filter=Q(version=1, created_at__gte=midnight())),
            timed=Count("lead_time_ms", filter=Q(version=1)),
            timed_ms=Sum("lead_time_ms", filter=Q(version=1)),
            active_ms=Sum("lead_time_ms"),
            last=Max("created_at"),
        )
    }
    medians = _medians(labels)
    skips = _counted(
        Skip.objects.filter(work_item__batch__project=project, **({"user": user} if user else {})), "user"
    )
    flags = _counted(
        Comment.objects.filter(item__project=project, is_flag=True, **({"author": user} if user else {})),
        "author",
    )
    agreement = agreement_by_annotator(project)
    found = {}
    for pk in {*counts, *skips, *flags}:
        row = counts.get(pk, {})
        skipped, last_skip = skips.get(pk, (0, None))
        flagged, last_flag = flags.get(pk, (0, None))
        given = row.get("labels", 0)
        found[pk] = Work(
            labels=given,
            today=row.get("today", 0),
            skips=skipped,
            flags=flagged,
            median=medians.get(pk),
            active=row["active_ms"] / 1000 if row.get("active_ms") else None,
            pace=row["timed"] * MS_PER_HOUR / row["timed_ms"] if row.get("timed_ms") else None,
            last=max(filter(None, (row.get("last"), last_skip, last_flag)), default=None),
            cost=given * project.human_cost,
            agreement=agreement.get(pk),
        )
    return found


def _counted(rows: QuerySet[Any], who: str) -> dict[int, tuple[int, datetime]]:
    """How many rows there are of each person, and when the last one was made."""
    counts = rows.order_by().values_list(who).annotate(n=Count("pk"), last=Max("created_at"))
    return {pk: (n, last) for pk, n, last in counts}


def _medians(labels: QuerySet[Label]) -> dict[int, float]:
    """Seconds from opening an item to its first answer."""
    if connection.vendor == "postgresql":
        timed = labels.filter(version=1, lead_time_ms__isnull=False).values_list("annotator")
        return {pk: median / 1000 for pk, median in timed.annotate(median=_Median("lead_time_ms"))}
    # SQLite has no function for it.
    by_person = F("annotator")
    middle = (
        labels.filter(version=1, lead_time_ms__isnull=False)
        .annotate(
            place=Window(RowNumber(), partition_by=by_person, order_by=F("lead_time_ms").asc()),
            all=Window(Count("pk"), partition_by=by_person),
        )
        # The one in the middle, or the two of them.
        .filter(place__gte=F("all") / 2.0, place__lte=F("all") / 2.0 + 1)
        .values_list("annotator", "lead_time_ms")
    )
    times: dict[int, list[int]] = {}
    for pk, lead_time in middle:
        times.setdefault(pk, []).append(lead_time or 0)
    return {pk: sum(found) / len(found) / 1000 for pk, found in times.items()}


class _Median(Aggregate):
    """The middle value, or the mean of the two in the middle; on PostgreSQL."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


def _share(person: Person) -> float | None:
    return person.work.agreement.share_equal_to_record if person.work.agreement else None
