"""The part `route` of benchmarks/bulk.py: a project of any size, and a run that goes all the way in it."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from bulk_world import PLAN, make
from runner import measured, middle, stage

OPTIONS = {
    "undeleted": (False, "stop before the project is deleted"),
    "m": (3000, "items that are drawn"),
    "rule": ("fixed_sequence", "how thresholds are chosen"),
}


def measure(options: argparse.Namespace) -> None:
    """A run, stage by stage: plan, freeze, predict, draw, certify, route, pages, deletion.

    Items are written past the import; all else is done by the services and jobs of the application, in this
    process, with two sources whose answers are recorded, and people. People's labels are written past the
    queue, of calibration items alone. A stage of a job begins with dots. Pages: the middle of three looks.
    The note says what processor time this process spent: that of the database is not in it.
    """
    from django.test import Client

    from routing.runs.certify import analyse
    from routing.runs.route import route

    size = options.size
    with stage("items, written past the import", size):
        world = make(size)
    project, manager = world.project, world.manager
    browser = Client()
    browser.force_login(manager)
    look = partial(look_at, browser, size)
    here = f"/projects/{project.slug}/"

    def pages(when: str, number: int = 0) -> None:
        look(f"overview, {when}", here)
        look(f"its poll, {when}", here, **{"HX-Request": "true"})
        if number:
            page, state = f"{here}runs/{number}/", project.runs.get(number=number).state
            look(f"run, {when}", page)
            look(f"its poll, {when}", f"{page}?state={state}", **{"HX-Request": "true"})

    def work(kind: str) -> None:
        with stage(f"job {kind}", size), stages_of_jobs(size):
            world.do(kind)

    look("plan", f"{here}plan/")
    pages("before the run")
    with stage("start of the run, in the request", size):
        run = world.start(entropy=1, **{**PLAN, "m": options.m, "rule": options.rule})
    pages("models at work", run.number)
    work("prepare_run")
    pages("people calibrate", run.number)
    with stage("labels of people, written past the queue", size, options.m):
        world.finish()
    run.refresh_from_db()
    with stage("analysis asked for, in the request", size, options.m):
        analyse(run=run, user=manager)
    work("analyse_run")
    pages("analysed", run.number)
    with stage("routing asked for, in the request", size, 0):
        route(run=run, user=manager)
    work("route_run")
    run.refresh_from_db()
    pages("routed", run.number)
    look("plan of the next run", f"{here}plan/")
    with stage("claim and submit of an annotator", size, 3):
        world.label(limit=3)
    if not options.undeleted:
        remove(size, run, world, work)


def look_at(browser: Any, size: int, name: str, path: str, **headers: str) -> None:
    looks = []
    for _ in range(3):
        with measured(f"page: {name}", size, 0) as row:
            answer = browser.get(path, headers=headers)
        assert answer.status_code in (200, 286), (name, answer.status_code)
        looks.append(row)
    middle(looks).show()


@contextmanager
def stages_of_jobs(size: int) -> Iterator[None]:
    """A row for each thing that a job says it is doing, from the moment it says so."""
    from annotation.jobs.context import JobContext

    write, under_way = JobContext._write, ExitStack()
    stages = ["its beginning"]
    under_way.enter_context(stage(f"... {stages[-1]}", size))

    def watched(context: JobContext, **changes: Any) -> None:
        if changes.get("stage") not in (None, stages[-1]):
            stages.append(changes["stage"])
            under_way.close()
            under_way.enter_context(stage(f"... {stages[-1]}", size))
        write(context, **changes)

    with patch.object(JobContext, "_write", watched), under_way:
        yield


def remove(size: int, run: Any, world: Any, work: Callable[[str], None]) -> None:
    from annotation.labelling import batches
    from annotation.projects.lifecycle import archive_project, delete_project
    from routing.runs.cancel import cancel_run
    from testbed.factories import remove_deleted

    project, manager = world.project, world.manager
    with stage("run cancelled (in the request)", size):
        cancel_run(run=run, user=manager)
    if project.jobs.filter(kind=batches.KIND).exists():
        work(batches.KIND)
    with stage("project archived (in the request)", size):
        archive_project(project=project, actor=manager)
    with stage("project deleted (in the request)", size):
        delete_project(project=project, actor=manager, name=project.name)
    with stage("... its removal (a job)", size):
        remove_deleted(project)
