"""Who may see model output: one rule for tables, pages and the API."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from annotation.errors import HypacError
from annotation.hooks import hidden_batches
from annotation.models import Comment, Label, Project, Settlement, Skip, WorkItem
from annotation.permissions import Access
from routing.models import Certificate, Run, RunSource, Source
from routing.services.opened import open_source
from routing.services.states import OPEN, ROUTED

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Sight:
    """What one person may see of a project's items at this moment. All that pages and the API tell of items,
    and all filters and orders of them, go through it.

    Attributes
    ----------
    output
        Whether answers, scores and routes may be shown.
    hidden
        Ids of batches of which nothing may be shown: not their items, labels, skips or comments.
    batches
        Ids of all other batches of the project.
    run
        The run whose scores and routes are shown; None without `output`, or where none has been analysed.
    """

    project: Project
    output: bool
    hidden: frozenset[int]
    batches: Sequence[int]
    run: Run | None
    run_sources: Sequence[RunSource]

    @property
    def delivers(self) -> bool:
        """Whether answers of the run's models are delivered as labels."""
        return self.run is not None and self.run.state in ROUTED

    def labels(self) -> QuerySet[Label]:
        """Labels that count now: the newest version of each."""
        # Not by superseded_by__isnull: PostgreSQL takes the join that it makes for one that leaves one row.
        newer = Label.objects.filter(supersedes=OuterRef("pk"))
        return self._seen(Label.objects.filter(~Exists(newer)))

    def every_label(self) -> QuerySet[Label]:
        return self._seen(Label.objects.all())

    def settlements(self) -> QuerySet[Settlement]:
        return Settlement.objects.exclude(batch__in=self.hidden)

    def skips(self) -> QuerySet[Skip]:
        return self._seen(Skip.objects.all())

    def work(self) -> QuerySet[WorkItem]:
        # Named one by one, and not by what they are not: the index of the queue begins with the batch.
        return WorkItem.objects.filter(batch__in=self.batches)

    def comments(self) -> QuerySet[Comment]:
        rows = Comment.objects.all()
        if self.hidden:
            rows = rows.filter(Q(work_item__isnull=True) | ~Q(work_item__batch__in=self.hidden))
        return rows

    def _seen(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        return rows.exclude(work_item__batch__in=self.hidden) if self.hidden else rows


def sight_of(project: Project, access: Access, *, run: int | None = None) -> Sight:
    """`run` is the number of the run whose scores and routes are to be shown: else, or where it has no
    certificate, the newest one that has been routed, or without one the newest that has been analysed.
    """
    output = may_see_model_output(project, access)
    hidden = frozenset(hidden_batches(project))
    shown = shown_run(project, run) if output else None
    sources = shown.run_sources.select_related("source", "run").order_by("position") if shown else ()
    batches = project.work_batches.exclude(pk__in=hidden).values_list("pk", flat=True)
    return Sight(project, output, hidden, tuple(batches), shown, tuple(sources))


def shown_run(project: Project, number: int | None = None) -> Run | None:
    analysed = list(
        project.runs.filter(certificate__isnull=False)
        .select_related("certificate", "project")
        .order_by("-number")
    )
    asked = [run for run in analysed if run.number == number]
    routed = [run for run in analysed if run.state in ROUTED]
    return next(iter([*asked, *routed, *analysed]), None)


def may_see_model_output(project: Project, access: Access) -> bool:
    """Whether predictions, scores and routes may be shown to this person now.

    Not before a run has been analysed, not while another one is open, and never to people who label blind.
    """
    return access.allows("predictions.view") and output_is_open(project)


def output_is_open(project: Project) -> bool:
    if project.runs.filter(state__in=OPEN).exists():
        return False
    return Certificate.objects.filter(run__project=project).exists()


def columns_hidden_now(project: Project) -> frozenset[str]:
    """What `hidden_columns` names, as long as nobody may see model output."""
    return frozenset() if output_is_open(project) else hidden_columns(project)


def hidden_columns(project: Project) -> frozenset[str]:
    """Columns of the imported data that are model output: shown only where model output may be.

    With them those that say how likely people are asked about an item: they may follow a model's doubts.
    """
    columns = set(project.runs.exclude(p_column="").values_list("p_column", flat=True))
    for source in Source.objects.filter(project=project):
        try:
            columns |= open_source(source).hidden_columns()
        except HypacError:
            continue  # a source that cannot be opened any more has no columns of ours
    return frozenset(columns)
