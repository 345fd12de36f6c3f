"""A small project that goes all the way from import to delivery, and what has to be there in the end."""

import io
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import Any, Self

from django.db.models import Count, Exists, OuterRef, Sum

from annotation.common.files import store_file
from annotation.imports.columns import ColumnMapping
from annotation.imports.upload import start_import
from annotation.models import Item, Job, Label
from routing.delivery.deliver import deliver
from routing.models import (
    Certificate,
    Delivery,
    ItemScore,
    PilotItem,
    Prediction,
    Reservation,
    Route,
    Run,
    Source,
    Spend,
)
from routing.runs.certify import analyse
from routing.runs.route import route
from routing.sources.backends import Prompt
from routing.sources.manage import save_source
from testbed import worlds
from testbed.factories import add_member, make_project

ITEMS = 70
CONCURRENCY = 4
TRUE = "right"
_numbers = count(1)


def fast(item: int) -> tuple[str, float]:
    """Answer and log-probability: sure of the first half of the items, and wrong about the others."""
    place = item % ITEMS
    return (TRUE, -0.001 * (1 + place)) if place < ITEMS // 2 else ("wrong", -1.0 - 0.01 * place)


def slow(item: int) -> tuple[str, float]:
    return TRUE, -0.001 * (1 + item % ITEMS)


@dataclass
class World(worlds.World):
    """`first` is the number of its first item: no two worlds share one."""

    first: int = 0

    @classmethod
    def make(cls) -> Self:
        project = make_project(choices=[], task_type="short_text")
        truth: dict[str, Any] = defaultdict(lambda: TRUE)
        first = next(_numbers) * 100 * ITEMS
        return cls(project, project.created_by, [add_member(project)], truth, first=first)

    # Each starts a job and returns it.

    def start_import(self) -> Job:
        lines = (f"t{n},item {n}" for n in range(self.first, self.first + ITEMS))
        content = io.BytesIO(("id,text\n" + "\n".join(lines)).encode())
        stored = store_file(
            project=self.project, content=content, original_name="items.csv", media_type="text/csv"
        )
        mapping = ColumnMapping(id_column="id", text_column="text")
        return start_import(project=self.project, user=self.manager, stored_file=stored, mapping=mapping)

    def start_run(self, models: dict[str, str]) -> Job:
        """`models`: name and address of each, the cheapest first."""
        for position, (name, url) in enumerate(models.items(), start=1):
            save_source(
                project=self.project,
                user=self.manager,
                name=name,
                backend="openai_api",
                params={"url": url, "model": name, "concurrency": CONCURRENCY, "max_tokens": 8, "retries": 0},
                cost_per_label=Decimal(position) / 100,
                prompt=Prompt("{{ text }}"),
            )
        self.start(
            epsilon=Decimal("0.2"),
            alpha=Decimal("0.2"),
            m=30,
            budget=Decimal(100),
            accept_unusable=True,  # models are made to fail, and the run is to go on
            rule="",
            entropy=self.first,  # the same draw each time, and so a band that is large enough
        )
        return self.newest("prepare_run")

    def start_analysis(self) -> Job:
        self.finish()
        analyse(run=self.run, user=self.manager)
        return self.newest("analyse_run")

    def start_routing(self) -> Job:
        route(run=self.run, user=self.manager)
        return self.newest("route_run")

    def start_delivery(self) -> Job:
        self.finish()
        deliver(run=self.run, user=self.manager)
        return self.newest("deliver_run")

    @property
    def run(self) -> Run:
        return self.project.runs.get()

    def newest(self, kind: str) -> Job:
        return self.project.jobs.filter(kind=kind).order_by("-id")[0]

    def predictions(self) -> int:
        return Prediction.objects.filter(source__project=self.project).count()


@dataclass
class Row:
    """One line of the table, whose columns faults.py explains; `wrong` says in words what is amiss."""

    fault: str
    times: int = 0
    jobs: int = 0
    calls: int = 0
    extra: int = 0
    in_flight: int = 0
    unexplained: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return bool(self.lost or self.doubled or self.unexplained or self.wrong)

    def count(self, what: str, there: int, wanted: int) -> None:
        self.lost += max(wanted - there, 0)
        self.doubled += max(there - wanted, 0)
        if there != wanted:
            self.wrong.append(f"{what}: {there} are there, {wanted} wanted")


def check(world: World, row: Row) -> None:
    """Compare what is stored of all that the world has done so far with what it should be. Where a constraint
    lets nothing be there twice, a count tells all.
    """
    items = Item.objects.filter(project=world.project)
    row.count("items", items.count(), ITEMS)
    row.count("places of items", items.filter(position__lt=ITEMS).count(), ITEMS)
    if run := world.project.runs.first():
        _check_run(row, run)


def _check_run(row: Row, run: Run) -> None:
    state = Run.State
    prepared = run.state != state.PREPARING
    for source in Source.objects.filter(project=run.project).order_by("position"):
        made = Prediction.objects.filter(source=source)
        if prepared:
            asked = _asked(run, source)
            answered = asked.filter(Exists(made.filter(item=OuterRef("pk"))))
            row.count(f"answers of {source.name}", answered.count(), asked.count())
        items = made.values("item").distinct().count()
        row.count(f"answers of {source.name}, each item once", made.count(), items)
        scores = ItemScore.objects.filter(prediction__source=source).count()
        row.count(f"scores of {source.name}", scores, made.count())
        _check_money(row, run, source)
    if prepared:
        row.count("calibration set", run.calibration_batch.work_items.count(), run.draw.n)  # type: ignore[union-attr]
        row.count("batches", run.project.work_batches.count(), 2 if run.routed_batch_id else 1)
    if run.state in (state.ANALYSED, state.ROUTING, state.LABELLING, state.COMPLETE):
        row.count("certificates", Certificate.objects.filter(run=run).count(), 1)
    if run.state in (state.LABELLING, state.COMPLETE):
        row.count("routes", Route.objects.filter(run=run).count(), run.pool_size)
    deliveries = Delivery.objects.filter(run=run)
    jobs = run.project.jobs.filter(kind="deliver_run", state=Job.State.DONE).count()
    row.count("deliveries", deliveries.count(), jobs)
    for delivery in deliveries:
        row.count("rows", delivery.rows, run.pool_size)


def _asked(run: Run, source: Source) -> Any:
    """The items for which a source has to have an answer by now."""
    pool = Item.objects.filter(project=run.project)
    if source.position == 1:
        return pool
    wanted = Exists(PilotItem.objects.filter(run=run, item=OuterRef("pk")))
    wanted |= Exists(run.draw.items.filter(item=OuterRef("pk"), asked=True))
    if run.state in (Run.State.LABELLING, Run.State.COMPLETE):
        band = Exists(Route.objects.filter(run=run, item=OuterRef("pk"), position=2))
        wanted |= band & ~Exists(Label.objects.filter(item=OuterRef("pk")))
    return pool.filter(wanted)


def _check_money(row: Row, run: Run, source: Source) -> None:
    paid = Spend.objects.filter(run=run, source=source).aggregate(q=Sum("quantity"), a=Sum("amount"))
    cost = Prediction.objects.filter(source=source).aggregate(q=Count("pk"), a=Sum("cost"))
    if (paid["q"] or 0, paid["a"] or 0) != (cost["q"], cost["a"] or 0):
        row.wrong.append(f"ledger of {source.name}: {paid}, predictions: {cost}")
    if not run.project.jobs.filter(state__in=(Job.State.QUEUED, Job.State.RUNNING)).exists():
        kept = Reservation.objects.filter(run=run, source=source, state=Reservation.State.OPEN, calls__gt=0)
        if kept.exists():
            row.wrong.append(f"{source.name}: money still set aside")
