"""A run at size, stage by stage: plan, freeze, predict, draw, certify, route, pages, deletion.

Items are written past the import (bulk_route_world.py); all else is done by the services and jobs of the
application, in this process, with two sources whose answers are recorded, and people. People's labels are
written past the queue, of calibration items alone. A stage of a job begins with dots. Pages: the middle of
three looks. The note says what processor time this process spent: that of the database is not in it.
"""

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from typing import Any

from bulk_route_world import World, make, truth
from bulk_tools import Row, measured

PLAN: dict[str, Any] = {
    "epsilon": Decimal("0.02"),
    "alpha": Decimal("0.05"),
    "m": 3000,
    "p": Decimal("0.9"),
}


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
        began = time.process_time()
        with measured(name, self.size, count) as row:
            yield
        row.note = f"{time.process_time() - began:.2f} s"
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
            began = time.process_time()
            with measured(f"page: {name}", self.size, 0) as row:
                answer = browser.get(path, headers=headers)
            assert answer.status_code in (200, 286), (name, answer.status_code)
            row.note = f"{time.process_time() - began:.2f} s"
            looks.append(row)
        self._rows.append(sorted(looks, key=lambda row: row.seconds)[1])


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--undeleted", action="store_true", help="stop before the project is deleted")


def run(options: argparse.Namespace) -> Iterator[Row]:
    os.environ["DJANGO_ALLOWED_HOSTS"] = "testserver"
    from django.conf import settings
    from django.test import Client

    from routing.models import Run
    from routing.runs.certify import analyse
    from routing.runs.route import route
    from routing.runs.start import start_run

    settings.ALLOWED_HOSTS = ["testserver"]
    watch = Watch(options.size)
    with watch.stage("items, written past the import"):
        world = make(options.size)
    project, manager = world.project, world.manager
    browser = Client()
    browser.force_login(manager)
    here = f"/projects/{project.slug}/"
    htmx = {"HX-Request": "true"}

    def pages(when: str, number: int | None = None) -> Iterator[Row]:
        watch.look(browser, f"overview, {when}", here)
        watch.look(browser, f"its poll, {when}", here, **htmx)
        if number:
            state = Run.objects.get(project=project, number=number).state
            watch.look(browser, f"run, {when}", f"{here}runs/{number}/")
            watch.look(browser, f"its poll, {when}", f"{here}runs/{number}/?state={state}", **htmx)
        yield from watch.ended()

    watch.look(browser, "plan", f"{here}plan/")
    yield from pages("before the run")
    with watch.stage("start of the run, in the request"):
        run = start_run(project=project, user=manager, entropy=1, **PLAN)
    yield from pages("models at work", run.number)
    work(watch, project, "prepare_run")
    run.refresh_from_db()
    yield from pages("people calibrate", run.number)
    with watch.stage("labels of people, written past the queue", PLAN["m"]):
        label(run, world.annotator)
    with watch.stage("analysis asked for, in the request", PLAN["m"]):
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

    from annotation.models import Label, WorkItem

    waiting = WorkItem.objects.filter(batch=run.calibration_batch).select_related("item")
    rows = sorted(waiting, key=lambda row: row.item.position)
    names = truth([row.item.position for row in rows])
    Label.objects.bulk_create(
        [
            Label(
                item=row.item,
                work_item=row,
                annotator=annotator,
                value=names[row.item.position],
                idempotency_key=f"bulk-{row.pk}",
            )
            for row in rows
        ],
        batch_size=1000,
    )
    waiting.update(state=WorkItem.State.DONE, finished_at=timezone.now())


def claim_and_submit(world: World) -> None:
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
    from annotation.labelling import withdrawal
    from annotation.models import Job, Project
    from annotation.projects import removal as project_removal
    from annotation.projects.deletion import delete_project
    from annotation.projects.life import archive_project
    from routing.runs.cancel import cancel_run

    with watch.stage("run cancelled (in the request)"):
        cancel_run(run=run, user=manager)
    if project.jobs.filter(kind=withdrawal.KIND).exists():
        work(watch, project, withdrawal.KIND)
    with watch.stage("project archived (in the request)"):
        archive_project(project=project, actor=manager)
    with watch.stage("project deleted (in the request)"):
        delete_project(project=project, actor=manager, name=project.name)
    with watch.stage("... its removal (a job)"):
        jobs.run(Job.objects.get(project=project, kind=project_removal.KIND).pk)
    if Project.objects.filter(pk=project.pk).exists():
        raise SystemExit("The project was not removed.")
