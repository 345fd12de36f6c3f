"""The parts `route` and `export` of benchmarks/bulk.py: a run that goes all the way, and its delivery."""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from bulk_world import half_labelled, make, plan_of
from runner import measured, stage


def route(_options: argparse.Namespace, size: int) -> None:
    """Items are written past the import, and people's labels past the queue; all else is done by the jobs of
    the application, in this process, with two sources whose answers are recorded.
    """
    from routing.runs import certify, route

    with stage("items, written past the import", size):
        world = make(size)

    def work(kind: str) -> None:
        with stage(f"job {kind}", size), stages_of_jobs(size):
            world.do(kind)

    run = world.start(**plan_of(size))
    work("prepare_run")
    world.finish()
    for ask, kind in ((certify.analyse, "analyse_run"), (route.route, "route_run")):
        run.refresh_from_db()
        ask(run=run, user=world.manager)
        work(kind)


@contextmanager
def stages_of_jobs(size: int) -> Iterator[None]:
    """A row for each thing that a job says it is doing, from the moment it says so; it begins with dots."""
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


def export(options: argparse.Namespace, size: int) -> None:
    """A text of 160 characters is among the imported columns; a rate counts items, however many files."""
    from routing.delivery.deliver import deliver
    from routing.models import Delivery

    world = half_labelled(size)
    run = world.project.runs.get(number=1)
    for formats in (options.formats or "csv,jsonl,csv+jsonl").split(","):
        deliver(run=run, user=world.manager, formats=formats.split("+"))
        with measured(formats, size) as row:
            job = world.do("deliver_run")
        delivery = Delivery.objects.get(pk=job.result["delivery"])
        assert delivery.rows == size
        for entry in delivery.files.filter(name__startswith="labels.").select_related("file"):
            row.note += f"; {entry.name} {entry.file.size / 1e6:,.0f} MB"
        row.show()
