"""What a script does with a run that is started again and again, as every night: a step that was done before
is done, one whose work failed goes on, and where people have to label first `NotYetError` says so.
"""

from pathlib import Path

from hypac_client.deliveries import MANIFEST, Delivery, record_of
from hypac_client.errors import HypacError, NotFoundError, NotYetError
from hypac_client.models import LossesAsked
from hypac_client.progress import Progress
from hypac_client.projects import Project
from hypac_client.runs import Run

NEWEST = "newest"
FAILED = ("failed", "cancelled")
MEASURED = "measured_elsewhere"


def run_of(project: Project, named: str) -> Run:
    """By its number, or the newest that was not cancelled."""
    if named == NEWEST:
        run = project.newest_run()
        if run is None:
            raise HypacError("The project has no run.")
        return run
    if not (named.isascii() and named.isdecimal()):
        raise ValueError(f"a run is a number or {NEWEST}, not {named!r}")
    return project.run(int(named))


def analyse(run: Run, *, timeout: float, progress: bool | Progress = False) -> Run:
    """Have its thresholds certified, once all labels of its calibration set are there, and all losses that a
    program of yours measures.
    """
    _go_on(run, ("preparing", "analysing"), timeout, progress)
    if run.state == "calibrating" and run.data["reference"] == "expert":
        raise NotYetError(f"Run {run.number} waits for its expert: have her asked first.")
    if run.state in ("calibrating", "checking", "losses"):
        _refuse_unlabelled(run)
        _refuse_unmeasured(run)
        run.analyse().wait(timeout=timeout, progress=progress)
    elif _before(run, "analysed"):
        raise NotYetError(f"Run {run.number} cannot be analysed yet: {run.state}.")
    return run.refresh()


def ask_losses(run: Run, *, timeout: float, progress: bool | Progress = False) -> Run:
    """Have the losses asked for that a program of yours measures, once all labels of the calibration set are
    there.
    """
    _go_on(run, ("preparing",), timeout, progress)
    if run.state == "calibrating" and run.data["loss"] == MEASURED:
        _refuse_unlabelled(run)
    if run.data["loss"] != MEASURED or run.state in ("calibrating", "cancelled"):
        return run.ask_losses()  # the site says what is wrong
    if _before(run, "calibrating"):
        raise NotYetError(f"The models of run {run.number} are still at work.")
    return run


def route(run: Run, *, timeout: float, progress: bool | Progress = False) -> Run:
    """Send every item to its source, and the rest to people."""
    _go_on(run, ("routing",), timeout, progress)
    if _before(run, "analysed"):
        raise NotYetError(f"Run {run.number} is not analysed yet: {run.state}.")
    if run.state == "analysed":
        run.route().wait(timeout=timeout, progress=progress)
    return run.refresh()


def take_in(run: Run, *, accept_missing: bool, timeout: float, progress: bool | Progress = False) -> int:
    """Have what came later routed; how many items that were. 0 where nothing has come."""
    later, job = run.data["later_items"], run.newest_work("take_in")
    if job is not None and job.state in FAILED:
        job.retry()
    elif job is None or job.state == "done":
        if later and not later["waiting"] and not later["objection"]:
            return 0
        job = run.take_in(accept_missing=accept_missing)
    done = job.wait(timeout=timeout, progress=progress)
    run.refresh()
    return int(done.result["taken_in"])


def refuse_undeliverable(run: Run, *, complete: bool) -> None:
    """Raises NotYetError where the run has nothing to deliver, or is to be `complete` and people label."""
    if _before(run, "labelling"):
        raise NotYetError(f"Run {run.number} has nothing to deliver yet: {run.state}.")
    if complete and run.state == "labelling":
        _refuse_unlabelled(run)
        raise NotYetError(f"Run {run.number} is not complete yet.")


def base_of(project: Project, run: Run, named: str, folder: Path) -> Delivery | int | None:
    """What `--since` means: a delivery by its id, or the one whose files the folder holds. None: everything,
    as where that is of another run whose target is `population`.
    """
    if not named:
        return None
    if named != NEWEST:
        if not (named.isascii() and named.isdecimal()):
            raise ValueError(f"since is the id of a delivery or {NEWEST}, not {named!r}")
        return int(named)
    if not (folder / MANIFEST).is_file():
        return None
    delivery = _held(project, folder)
    if delivery is None or delivery["filters"]:
        return None
    own = delivery["run"] == run.number or run.data["target"] != "population"
    return delivery if own else None


def _held(project: Project, folder: Path) -> Delivery | None:
    """The delivery that was downloaded into the folder: the one of the id that stands there, where its files
    are these (a database that was put back gives an id again), else the newest with the same manifest.
    """
    record = record_of(folder)
    if record.get("project") == project.slug and type(number := record.get("delivery")) is int:
        try:
            delivery = project.delivery(number)
        except NotFoundError:
            return None
        if delivery.is_in(folder):
            return delivery
    return next((one for one in project.deliveries() if one.is_in(folder)), None)


def _before(run: Run, state: str) -> bool:
    if run.state == "cancelled":
        raise HypacError(f"Run {run.number} was cancelled.")
    return not run.is_at(state)


def _refuse_unlabelled(run: Run) -> None:
    if left := run.left_to_label:
        missing = "1 answer is missing" if left == 1 else f"{left:,} answers are missing"
        raise NotYetError(f"Run {run.number} waits for people: {missing}.")


def _refuse_unmeasured(run: Run) -> None:
    if run.state == "calibrating" and run.data["loss"] == MEASURED:
        raise NotYetError(f"Run {run.number} has its labels: have the losses asked for first.")
    if run.state == "losses" and (missing := losses_left(run.losses_asked())):
        items = "1 item" if missing == 1 else f"{missing:,} items"
        raise NotYetError(f"Run {run.number} waits for the losses of answers about {items}.")


def losses_left(asked: LossesAsked) -> int:
    """Of how many items; `missing` names the first alone."""
    return asked["items"] - asked["measured"]


def _go_on(run: Run, states: tuple[str, ...], timeout: float, progress: bool | Progress) -> None:
    """Wait for the work of the run in one of these states; what failed in an earlier night goes on."""
    while run.state in states:
        job = run.work_of_state()
        if job is None:
            return
        if job.state in FAILED:
            job.retry()
        elif job.state == "done":  # the run waits for something else, as the value of its draw
            return
        job.wait(timeout=timeout, progress=progress)
        run.refresh()
