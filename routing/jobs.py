"""The kinds of background work that routing does."""

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext_noop

from annotation.jobs import jobs
from annotation.models import Job
from routing.by_people.start import KIND as GIVE, give_to_people
from routing.common.computed_losses import KIND as COMPUTE
from routing.delivery.deliver import deliver_run
from routing.delivery.exports import KIND as EXPORT, run_export
from routing.delivery.write_back import write_newer
from routing.items.changes import CHANGE_KIND as CHANGE, UNDO, run_change, run_undo
from routing.models import MeasuredSource, RunSource, Source
from routing.runs.certify import analyse_run
from routing.runs.complete import settle_run
from routing.runs.compute_losses import compute_losses
from routing.runs.expert.ask import bring_to_expert
from routing.runs.expert.final import (
    ANALYSE as ANALYSE_FINAL,
    DRAW as DRAW_FINAL,
    analyse_sample,
    draw_sample,
)
from routing.runs.later.intakes import KIND as TAKE_IN
from routing.runs.later.take_in import take_in_items
from routing.runs.measure import run_measurement
from routing.runs.measurements import KIND as MEASURE
from routing.runs.route import route_run
from routing.runs.start import prepare_run
from routing.sample.make import KIND as SAMPLE, fill_sample
from routing.sources.backends import backends_that
from routing.sources.sent_answers import KIND as PREDICTIONS, take_answers
from routing.sources.trials import KIND as TRY, try_source
from routing.workshop.candidates import KIND as CANDIDATE, ask_candidate

GPU = "gpu"


def queue_of_run(job: Job) -> str:
    """The queue of a job about a run: "gpu" where one of the run's sources needs it."""
    sources = RunSource.objects.filter(run=job.params["run"], run__project=job.project_id)
    return _queue_of(sources.values_list("source__backend", flat=True))


def queue_of_measurement(job: Job) -> str:
    """The same of a job that measures."""
    measured = MeasuredSource.objects.filter(measurement__project=job.project_id)
    sources = measured.filter(measurement=job.params["measurement"])
    return _queue_of(sources.values_list("source__backend", flat=True))


def queue_of_try(job: Job) -> str:
    """The same of a job that asks one source."""
    sources = Source.objects.filter(pk=job.params["source"], project=job.project_id)
    return _queue_of(sources.values_list("backend", flat=True))


def _queue_of(backends: Iterable[str]) -> str:
    """That of workers with a GPU where one of `backends` holds its model in the worker's own process."""
    return GPU if backends_that(lambda backend: backend.in_process).intersection(backends) else "default"


def register() -> None:
    # What calls models is done by a worker that has them, and can be paused between calls.
    models: dict[str, Any] = {"queue": queue_of_run, "can_pause": True}
    measuring: dict[str, Any] = {"queue": queue_of_measurement, "can_pause": True}
    jobs.register("prepare_run", prepare_run, title=gettext_noop("Predicting and drawing"), **models)
    jobs.register(MEASURE, run_measurement, title=gettext_noop("Measuring the models"), **measuring)
    jobs.register(SAMPLE, fill_sample, title=gettext_noop("Making the sample"))
    jobs.register("ask_expert", bring_to_expert, title=gettext_noop("Asking the expert"))
    jobs.register("analyse_run", analyse_run, title=gettext_noop("The analysis"), **models)
    jobs.register("route_run", route_run, title=gettext_noop("The routing"), **models)
    jobs.register(TAKE_IN, take_in_items, title=gettext_noop("Taking in new items"), **models)
    jobs.register(DRAW_FINAL, draw_sample, title=gettext_noop("Drawing the final audit"))
    jobs.register(ANALYSE_FINAL, analyse_sample, title=gettext_noop("Analysing the final audit"))
    jobs.register(GIVE, give_to_people, title=gettext_noop("Giving items to people"))
    jobs.register(
        COMPUTE,
        compute_losses,
        title=gettext_noop("Computing losses"),
        stops_itself=True,
        by_looks=True,
        is_news=lambda result: False,
    )
    jobs.register("settle_run", settle_run, title=gettext_noop("Settling what people differ about"))
    jobs.register("deliver_run", deliver_run, title=gettext_noop("The delivery"), copies_items=True)
    jobs.register(
        EXPORT, run_export, title=gettext_noop("Sending a delivery to a store"), finished=write_newer
    )
    jobs.register(PREDICTIONS, take_answers, title=gettext_noop("Taking in predictions"), copies_items=True)
    jobs.register(
        TRY,
        try_source,
        title=gettext_noop("Trying a model"),
        queue=queue_of_try,
        stops_itself=True,
        copies_items=True,
    )
    jobs.register(
        CANDIDATE,
        ask_candidate,
        title=gettext_noop("Running a candidate prompt"),
        queue=queue_of_try,
        can_pause=True,
        copies_items=True,
    )
    jobs.register(CHANGE, run_change, title=gettext_noop("A change to items"))
    jobs.register(UNDO, run_undo, title=gettext_noop("Taking back a change to items"))
