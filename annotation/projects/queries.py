"""Reading projects."""

from dataclasses import dataclass

from django.core.cache import cache
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.utils.translation import gettext as _

from annotation.common.query_timeout import TookTooLongError, limit_query_time
from annotation.labelling.label_queries import labels_of
from annotation.labelling.queries import waiting_for
from annotation.models import Item, Job, Label, Project, Skip, StoredFile, User, WorkBatch, WorkItem
from annotation.models.projects import LONG_COLUMNS
from annotation.permissions import ROLES_BY_ACTION, Access
from annotation.ports import routing_port

BADGE_SECONDS = 30
BADGE_TAKES_SECONDS = 1


def projects_of(user: User, *, archived: bool = False, search: str = "") -> QuerySet[Project]:
    """Projects that the person takes part in, by name, each with their `role` and without LONG_COLUMNS."""
    mine = Project.objects.filter(
        memberships__user=user, memberships__is_active=True, archived_at__isnull=not archived
    )
    if search:
        mine = mine.filter(name__icontains=search)
    return mine.annotate(role=F("memberships__role")).defer(*LONG_COLUMNS).order_by("name", "id")


@dataclass(frozen=True)
class ProjectCard:
    """`waiting` items for this person's label; `step` for leaders, "" where there is none."""

    project: Project
    role: str
    items: int
    waiting: int
    step: str = ""


def project_cards(projects: list[Project], user: User) -> list[ProjectCard]:
    """What the list shows of each of these projects, which come from `projects_of`. Call it for one page: a
    project in which work waits or that the person leads takes some queries.
    """
    ids = [project.pk for project in projects]
    # Rows, not their keys, which PostgreSQL would fetch from the table.
    counted = Item.objects.filter(project__in=ids).order_by().values_list("project").annotate(n=Count("*"))
    items = dict(counted)
    unfinished = WorkItem.objects.filter(batch=OuterRef("pk"), state__in=WorkItem.UNFINISHED)
    batches = WorkBatch.objects.filter(
        Exists(unfinished), project__in=ids, locked_at__isnull=True, withdrawn_at__isnull=True
    )
    with_work = set(batches.values_list("project", flat=True))
    cards = []
    for project in projects:
        role = project.role  # type: ignore[attr-defined]
        access = Access(project, user, role)
        waits = project.pk in with_work and access.allows("label")
        leads = access.allows("project.edit")
        step = routing_port().next_step(access=access) if leads else None
        cards.append(
            ProjectCard(
                project=project,
                role=role,
                items=items.get(project.pk, 0),
                waiting=waiting_for(project, user) if waits else 0,
                step=step[0] if step else "",
            )
        )
    return cards


def work_waits(user: User) -> bool:
    """Whether an item waits for this person in one of their projects: one query at most, and none again for
    BADGE_SECONDS. Pages that list the work count it exactly; this is the mark beside the name of the site.

    Blind items count for those alone who see no predictions by their role, since whoever does may not label
    them once a run was analysed.
    """
    key = f"work-waits:{user.pk}"
    known: bool | None = cache.get(key)
    if known is None:
        try:
            with limit_query_time(BADGE_TAKES_SECONDS):
                known = _an_item_for(user).exists()
        except TookTooLongError:
            known = False
        cache.set(key, known, BADGE_SECONDS)
    return known


def _an_item_for(user: User) -> QuerySet[WorkItem]:
    mine = Project.objects.filter(
        memberships__user=user,
        memberships__is_active=True,
        memberships__role__in=ROLES_BY_ACTION["label"],
        archived_at__isnull=True,
    )
    unseeing = mine.exclude(
        pk__in=Project.objects.filter(
            memberships__user=user, memberships__role__in=ROLES_BY_ACTION["predictions.view"]
        ).values("pk")
    )
    batches = WorkBatch.objects.filter(
        Q(blind=False, project__in=mine.values("pk")) | Q(project__in=unseeing.values("pk")),
        locked_at__isnull=True,
        withdrawn_at__isnull=True,
    )
    skipped = Skip.objects.filter(work_item=OuterRef("pk"), user=user, cleared_at__isnull=True)
    labelled = Label.objects.filter(item=OuterRef("item"), annotator=user, work_item__batch=OuterRef("batch"))
    # Not as NOT EXISTS, as in the queue: these are looked up row by row, up to the first row that fits.
    return WorkItem.objects.alias(
        skipped=Subquery(skipped.order_by().values("pk")[:1]),
        labelled=Subquery(labelled.order_by().values("pk")[:1]),
    ).filter(
        batch__in=batches.values("pk"),
        state=WorkItem.State.OPEN,
        skipped__isnull=True,
        labelled__isnull=True,
    )


@dataclass(frozen=True)
class Contents:
    """What goes with a project: (words, how many) in the order of the work; `bytes` of its files."""

    counts: list[tuple[str, int]]
    bytes: int
    unfinished_jobs: int


def contents(project: Project) -> Contents:
    files = StoredFile.objects.filter(project=project).aggregate(n=Count("pk"), bytes=Sum("size"))
    counts = [
        (_("Items"), project.items.count()),
        (_("Labels by people"), labels_of(project).count()),
        *routing_port().project_contents(project=project),
        (_("Files"), files["n"]),
        (_("Members"), project.memberships.count()),
    ]
    unfinished = (Job.State.QUEUED, Job.State.RUNNING, Job.State.PAUSED)
    return Contents(
        counts, files["bytes"] or 0, Job.objects.filter(project=project, state__in=unfinished).count()
    )
