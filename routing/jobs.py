"""The kinds of background work that routing does."""

from typing import Any

from annotation import jobs
from annotation.models import Job
from routing.models import RunSource, Source
from routing.services.analysis import analyse_run
from routing.services.bands import route_run
from routing.services.completion import settle_run
from routing.services.deliveries import deliver_run
from routing.services.item_changes import KIND as CHANGE
from routing.services.item_changes import UNDO, run_change, run_undo
from routing.services.prepare import prepare
from routing.services.tries import KIND as TRY
from routing.services.tries import try_source

# Backends that hold their model in the worker's own process, and so need one with a GPU.
IN_PROCESS = ("vllm",)
GPU = "gpu"


def queue_of_run(job: Job) -> str:
    """The queue of a job about a run: "gpu" where one of the run's sources needs it."""
    needs = RunSource.objects.filter(run=job.params["run"], source__backend__in=IN_PROCESS)
    return GPU if needs.exists() else "default"


def queue_of_try(job: Job) -> str:
    """The same of a job that tries one source."""
    return (
        GPU if Source.objects.filter(pk=job.params["source"], backend__in=IN_PROCESS).exists() else "default"
    )


def register() -> None:
    # What calls models is done by a worker that has them, and can be paused between calls.
    models: dict[str, Any] = {"queue": queue_of_run, "can_pause": True}
    jobs.register("prepare_run", prepare, title="Predicting and drawing", **models)
    jobs.register("analyse_run", analyse_run, title="The analysis")
    jobs.register("route_run", route_run, title="The routing", **models)
    jobs.register("settle_run", settle_run, title="Settling what people differ about")
    jobs.register("deliver_run", deliver_run, title="The delivery")
    jobs.register(TRY, try_source, title="Trying a model", queue=queue_of_try, stops_itself=True)
    jobs.register(CHANGE, run_change, title="A change to items")
    jobs.register(UNDO, run_undo, title="Taking back a change to items")
