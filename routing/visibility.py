"""Who may see model output: one rule for tables, pages and the API."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import Exists, Model, OuterRef, Q, QuerySet, Subquery
from django.db.models.lookups import IsNull

from annotation.labelling.labels_of_record import batches_with_overlap
from annotation.labelling.queue import stuck_items
from annotation.models import Comment, Label, Project, Settlement, Skip, WorkItem
from annotation.permissions import Access
from routing.common.states import OPEN, ROUTED
from routing.models import Certificate, Measurement, PoolItem, Run, RunSource

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class ViewPermission:
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
    audits
        Of these the ones that audit later items: while people are asked about one, nobody may see that.
    open_calibration
        Ids of runs: of what people said about items of their pools nothing may be shown (see
        `open_calibration_runs`).
    run
        The run whose scores and routes are shown; None without `output`, or where none has been analysed.
    """

    project: Project
    output: bool
    hidden: frozenset[int]
    batches: Sequence[int]
    audits: frozenset[int]
    open_calibration: Sequence[int]
    run: Run | None
    run_sources: Sequence[RunSource]

    @property
    def delivers(self) -> bool:
        """Whether answers of the run's models are delivered as labels."""
        return self.run is not None and self.run.state in ROUTED

    @property
    def withholds(self) -> bool:
        """Whether there is anything that is not shown: answers of models, or what is labelled blind."""
        open_ = bool(self.hidden or self.open_calibration)
        return not self.output and (open_ or self.project.sources.exists())

    def labels(self) -> QuerySet[Label]:
        """Labels that count now: the newest version of each."""
        # Not by superseded_by__isnull: PostgreSQL takes the join that it makes for one that leaves one row.
        newer = Label.objects.filter(supersedes=OuterRef("pk"))
        return self._seen(Label.objects.filter(~Exists(newer)))

    def every_label(self) -> QuerySet[Label]:
        return self._seen(Label.objects.all())

    def settlements(self) -> QuerySet[Settlement]:
        return Settlement.objects.exclude(batch__in=self.hidden).exclude(
            in_pools(self.open_calibration, "item")
        )

    def skips(self) -> QuerySet[Skip]:
        return self._seen(Skip.objects.all()).exclude(self._under_audit("work_item__"))

    def work(self) -> QuerySet[WorkItem]:
        # Named one by one, and not by what they are not: the index of the queue begins with the batch.
        return WorkItem.objects.filter(batch__in=self.batches).exclude(self._under_audit())

    def stuck(self) -> QuerySet[WorkItem]:
        """Work that nobody is left to do."""
        stuck = stuck_items(self.project).filter(batch__in=self.batches)
        return stuck.exclude(batch__in=self.audits) if self.audits else stuck

    def comments(self) -> QuerySet[Comment]:
        rows = Comment.objects.all()
        if self.hidden:
            rows = rows.filter(Q(work_item__isnull=True) | ~Q(work_item__batch__in=self.hidden))
        if self.audits:
            rows = rows.filter(Q(work_item__isnull=True) | ~self._under_audit("work_item__"))
        return rows.exclude(in_pools(self.open_calibration, "work_item__item"))

    def in_open_calibration(self, ids: Sequence[int]) -> QuerySet[PoolItem, int]:
        """Of these items those of which nothing may be shown that people said."""
        asked = PoolItem.objects.filter(run__in=self.open_calibration, item__in=ids)
        return asked.values_list("item_id", flat=True)

    def _under_audit(self, prefix: str = "") -> Q:
        """Of work items, or of rows that lead to one by `prefix`."""
        if not self.audits:
            return Q(pk__in=[])
        return Q(**{f"{prefix}batch__in": self.audits, f"{prefix}state__in": WorkItem.UNFINISHED})

    def _seen(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        rows = rows.exclude(work_item__batch__in=self.hidden) if self.hidden else rows
        return rows.exclude(in_pools(self.open_calibration, "work_item__item"))


def view_permission(project: Project, access: Access, *, run: int | None = None) -> ViewPermission:
    """`run` is the number of the run whose scores and routes are to be shown: else, or where it has no
    certificate, the newest one that has been routed, or without one the newest that has been analysed.
    """
    output = may_see_model_output(project, access)
    hidden = frozenset(hidden_batches(project))
    shown = shown_run(project, run) if output else None
    sources = shown.run_sources.select_related("source", "run").order_by("position") if shown else ()
    batches = project.work_batches.exclude(pk__in=hidden).values_list("pk", flat=True)
    audits = project.runs.filter(later_audit_batch__isnull=False).values_list("later_audit_batch", flat=True)
    return ViewPermission(
        project=project,
        output=output,
        hidden=hidden,
        batches=tuple(batches),
        audits=frozenset(audits),
        open_calibration=open_calibration_runs(project),
        run=shown,
        run_sources=tuple(sources),
    )


def hidden_batches(project: Project) -> set[int]:
    """The calibration set of a run that is not analysed yet: not even which items are in it may be seen. And
    a guideline round until it is closed: nobody in it may know what others answered.
    """
    runs = project.runs.filter(state__in=OPEN, calibration_batch__isnull=False)
    found = Q(pk__in=runs.values("calibration_batch")) | Q(pk__in=runs.values("expert_batch"))
    found |= Q(for_round=True, round__closed_at__isnull=True)
    return set(project.work_batches.filter(found).values_list("pk", flat=True))


def open_calibration_runs(project: Project) -> tuple[int, ...]:
    """Open runs whose pool may have items that some of several people have answered about already, for
    another batch: for one of a cancelled run, say. No label of record came of that, so that these items are
    asked about again, blind. Of the whole pool, and not of what is asked: that would tell what was drawn.
    """
    runs = dict(project.runs.filter(state__in=OPEN).values_list("pk", "calibration_batch"))
    if not runs or not set(batches_with_overlap(project)).difference(runs.values()):
        return ()
    return tuple(runs)


def in_open_calibration(project: Project, item: str) -> Q:
    """Of rows that lead to an item by `item` those about one of such a pool."""
    return in_pools(open_calibration_runs(project), item)


def in_pools(runs: Sequence[int], item: str) -> Q:
    """Of rows that lead to an item by `item` those about one of the pools of these runs."""
    if not runs:
        return Q(pk__in=[])
    # Not by EXISTS: PostgreSQL makes a join of that, and reads and sorts all labels for each page of them.
    found = PoolItem.objects.filter(run__in=runs, item=OuterRef(item)).order_by()
    return Q(IsNull(Subquery(found.values("pk")[:1]), False))


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

    Not before a run has been analysed, not while another one is open or what was measured waits for its run,
    and never to people who label blind.
    """
    return access.allows("predictions.view") and output_is_open(project)


def output_is_open(project: Project) -> bool:
    if project.runs.filter(state__in=OPEN).exists() or measured_for_a_plan(project).exists():
        return False
    return Certificate.objects.filter(run__project=project).exists()


def measured_for_a_plan(project: Project) -> QuerySet[Measurement]:
    """What was measured that no run rests on and nobody discarded: people may be asked about any of it."""
    return project.measurements.filter(discarded_at__isnull=True, runs__isnull=True)
