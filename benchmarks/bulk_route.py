"""The part `route` of benchmarks/bulk.py: a project of any size, and a run that goes all the way in it."""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from runner import Row, measured

LABELS = ("cat", "dog", "emu", "fox")
TEXT = (
    "Item {} has a text of some length. "
    + "It goes on for a while, as texts do that people are asked about. " * 2
)
# Items are made in groups of so many, each from a seed of its own, so that the truth needs no memory.
GROUP = 50_000
PLAN: dict[str, Any] = {
    "epsilon": Decimal("0.02"),
    "alpha": Decimal("0.05"),
    "m": 3000,
    "p": Decimal("0.9"),
}


class RouteRun:
    """A run, stage by stage: plan, freeze, predict, draw, certify, route, pages, deletion.

    Items are written past the import; all else is done by the services and jobs of the application, in this
    process, with two sources whose answers are recorded, and people. People's labels are written past the
    queue, of calibration items alone. A stage of a job begins with dots. Pages: the middle of three looks.
    The note says what processor time this process spent: that of the database is not in it.
    """

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--undeleted", action="store_true", help="stop before the project is deleted")
        parser.add_argument("--m", type=int, default=PLAN["m"], help="items that are drawn")

    def rows(self, options: argparse.Namespace) -> Iterator[Row]:
        from django.test import Client

        from routing.runs.certify import analyse
        from routing.runs.route import route
        from routing.runs.start import start_run

        watch = Watch(options.size)
        with watch.stage("items, written past the import"):
            world = make(options.size)
        project, manager = world.project, world.manager
        browser = Client()
        browser.force_login(manager)
        here = f"/projects/{project.slug}/"

        def pages(when: str, number: int = 0) -> Iterator[Row]:
            watch.look(browser, f"overview, {when}", here)
            watch.look(browser, f"its poll, {when}", here, **{"HX-Request": "true"})
            if number:
                page, state = f"{here}runs/{number}/", project.runs.get(number=number).state
                watch.look(browser, f"run, {when}", page)
                watch.look(browser, f"its poll, {when}", f"{page}?state={state}", **{"HX-Request": "true"})
            yield from watch.ended()

        watch.look(browser, "plan", f"{here}plan/")
        yield from pages("before the run")
        with watch.stage("start of the run, in the request"):
            run = start_run(project=project, user=manager, entropy=1, **{**PLAN, "m": options.m})
        yield from pages("models at work", run.number)
        work(watch, project, "prepare_run")
        run.refresh_from_db()
        yield from pages("people calibrate", run.number)
        with watch.stage("labels of people, written past the queue", options.m):
            label(run, world.annotator)
        with watch.stage("analysis asked for, in the request", options.m):
            analyse(run=run, user=manager)
        work(watch, project, "analyse_run")
        yield from pages("analysed", run.number)
        with watch.stage("routing asked for, in the request", 0):
            route(run=run, user=manager)
        work(watch, project, "route_run")
        run.refresh_from_db()
        yield from pages("routed", run.number)
        watch.look(browser, "plan of the next run", f"{here}plan/")
        with watch.stage("claim and submit of an annotator", 3):
            claim_and_submit(world)
        yield from watch.ended()
        if not options.undeleted:
            remove(watch, run, project, manager)
        yield from watch.ended()


class Watch:
    """Collects a row per stage."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._rows: list[Row] = []

    def ended(self) -> Iterator[Row]:
        """What has been measured since this was asked last."""
        rows, self._rows = self._rows, []
        yield from rows

    @contextmanager
    def stage(self, name: str, count: int | None = None) -> Iterator[None]:
        with measured(name, self.size, count) as row:
            yield
        self._rows.append(row)

    @contextmanager
    def stages_of_jobs(self) -> Iterator[None]:
        """A row for each thing that a job says it is doing, from the moment it says so."""
        from annotation.jobs.context import JobContext

        write, under_way = JobContext._write, ExitStack()
        name = "its beginning"
        under_way.enter_context(self.stage(f"... {name}"))

        def watched(context: JobContext, **changes: Any) -> None:
            nonlocal name
            if (stage := changes.get("stage")) is not None and stage != name:
                name = stage
                under_way.close()
                under_way.enter_context(self.stage(f"... {name}"))
            write(context, **changes)

        JobContext._write = watched  # type: ignore[method-assign]
        try:
            yield
        finally:
            JobContext._write = write  # type: ignore[method-assign]
            under_way.close()

    def look(self, browser: Any, name: str, path: str, **headers: str) -> None:
        looks = []
        for _ in range(3):
            with measured(f"page: {name}", self.size, 0) as row:
                answer = browser.get(path, headers=headers)
            assert answer.status_code in (200, 286), (name, answer.status_code)
            looks.append(row)
        self._rows.append(sorted(looks, key=lambda row: row.seconds)[1])


def work(watch: Watch, project: Any, kind: str) -> None:
    """Do the newest job of the kind as a worker does."""
    from annotation.jobs import running as jobs
    from annotation.models import Job

    job = project.jobs.filter(kind=kind).order_by("-id")[0]
    with watch.stage(f"job {kind}"), watch.stages_of_jobs():
        jobs.run(job.pk)
    job.refresh_from_db()
    if job.state != Job.State.DONE:
        raise SystemExit(f"The job {kind} failed: {job.error}")


def label(run: Any, annotator: Any) -> None:
    """What people leave behind who label the whole calibration set."""
    from django.utils import timezone

    from annotation.common.bulk import copy_rows
    from annotation.models import Label, WorkItem

    waiting = WorkItem.objects.filter(batch=run.calibration_batch)
    rows = list(waiting.order_by("item__position").values_list("item", "pk", "item__position"))
    copy_rows(
        Label,
        ("item", "work_item", "annotator", "value", "idempotency_key"),
        [(item, pk, annotator.pk, true_label(place), f"bulk-{pk}") for item, pk, place in rows],
    )
    waiting.update(state=WorkItem.State.DONE, finished_at=timezone.now())


def claim_and_submit(world: "World") -> None:
    from annotation.labelling import queue

    for number in range(3):
        claimed = queue.claim(project=world.project, user=world.annotator)
        assert claimed is not None
        queue.submit(
            user=world.annotator,
            work_item_id=claimed.work_item.pk,
            token=claimed.token,
            value="cat",
            idempotency_key=f"routed-{number}",
        )


def remove(watch: Watch, run: Any, project: Any, manager: Any) -> None:
    from annotation.jobs import running as jobs
    from annotation.labelling import batches
    from annotation.models import Job, Project
    from annotation.projects import removal as project_removal
    from annotation.projects.life import archive_project, delete_project
    from routing.runs.cancel import cancel_run

    with watch.stage("run cancelled (in the request)"):
        cancel_run(run=run, user=manager)
    if project.jobs.filter(kind=batches.KIND).exists():
        work(watch, project, batches.KIND)
    with watch.stage("project archived (in the request)"):
        archive_project(project=project, actor=manager)
    with watch.stage("project deleted (in the request)"):
        delete_project(project=project, actor=manager, name=project.name)
    with watch.stage("... its removal (a job)"):
        jobs.run(Job.objects.get(project=project, kind=project_removal.KIND).pk)
    if Project.objects.filter(pk=project.pk).exists():
        raise SystemExit("The project was not removed.")


# --- The project ---


class World(NamedTuple):
    project: Any
    manager: Any
    annotator: Any


class Facts(NamedTuple):
    """Of one group of items: indices into LABELS, and uncertainties."""

    true: Any
    answers: tuple[Any, Any]
    u: tuple[Any, Any]


def facts(group: int) -> Facts:
    """The first source errs at u with 0.4 u, the second with 0.1 u; few digits make ties."""
    random = np.random.default_rng(group)
    u = np.round(random.random(GROUP) ** 2, 4)
    true = random.integers(0, len(LABELS), GROUP)
    first, second = (
        np.where(random.random(GROUP) < share * u, (true + 1) % len(LABELS), true) for share in (0.4, 0.1)
    )
    return Facts(true, (first, second), (u, np.round(u / 4, 4)))


_groups: dict[int, Facts] = {}


def true_label(position: int) -> str:
    """Asked in the order of positions, it makes each group once."""
    group = position // GROUP
    if group not in _groups:
        _groups.clear()
        _groups[group] = facts(group)
    return LABELS[_groups[group].true[position % GROUP]]


def make(size: int) -> World:
    from django.db import connection

    from annotation.common.bulk import copy_rows
    from annotation.models import Item
    from routing.sources.manage import save_source
    from testbed.factories import add_member, make_project

    project = make_project(choices=LABELS, human_cost=Decimal("0.1"), currency="USD")
    project.columns = ["text", "model_1", "confidence_1", "model_2", "confidence_2"]
    project.save(update_fields=["columns"])
    for number, cost in enumerate(("0.0001", "0.001"), start=1):
        save_source(
            project=project,
            user=project.created_by,
            name=f"Model {number}",
            backend="recorded",
            params={"label_column": f"model_{number}", "confidence_column": f"confidence_{number}"},
            cost_per_label=Decimal(cost),
        )
    copy_rows(
        Item,
        ("project", "external_id", "position", "text", "fields", "data", "content_hash"),
        ((project.pk, f"t{place}", place, *content) for place, content in enumerate(contents(size))),
    )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE annotation_item" if connection.vendor == "postgresql" else "ANALYZE")
    return World(project, project.created_by, add_member(project))


def contents(size: int) -> Iterator[tuple[Any, ...]]:
    """Text, fields, data and hash of every item."""
    from annotation.imports.identity import text_hash

    for start in range(0, size, GROUP):
        group = facts(start // GROUP)
        lists = [values.tolist()[: size - start] for values in (*group.answers, *group.u)]
        for place, (one, two, u_one, u_two) in enumerate(zip(*lists, strict=True), start):
            text = TEXT.format(place)
            data = {"text": text, "model_1": LABELS[one], "confidence_1": f"{1 - u_one:.4f}"}
            data |= {"model_2": LABELS[two], "confidence_2": f"{1 - u_two:.4f}"}
            yield text, [], data, text_hash(text)
