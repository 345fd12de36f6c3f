"""The kinds of background work that routing does."""

from annotation import jobs
from routing.services.analysis import analyse_run
from routing.services.bands import route_run
from routing.services.deliveries import deliver_run
from routing.services.prepare import prepare


def register() -> None:
    jobs.register("prepare_run", prepare, title="Predicting and drawing")
    jobs.register("analyse_run", analyse_run, title="The analysis")
    jobs.register("route_run", route_run, title="The routing")
    jobs.register("deliver_run", deliver_run, title="The delivery")
