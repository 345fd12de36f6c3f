"""What in a project file follows from its other rows, computed once more when all of them are stored: whoever
takes the file in is given no certificate that its own labels, predictions and draws do not give.

What waits for a slow loss that is not computed yet is passed over: `SlowLosses.require_all` then ends all.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from annotation.errors import InputError
from annotation.models import Project
from hypac_site.portable.archive import part_of
from hypac_site.portable.slow_losses import SlowLosses, not_computed
from hypac_site.portable.tables import Model, Row
from routing.core.losses import LossNotComputedError
from routing.core.losses.looked_up import looked_up
from routing.delivery.delivered_again import hold_deliveries
from routing.models import Certificate, Delivery, FinalCertificate, Route, Run
from routing.runs.again import DiffersError, NotComputedError
from routing.runs.certified_again import hold_certificate, hold_final_certificate
from routing.runs.routes_again import hold_routes
from routing.runs.run_again import hold_run


def hold_rest(project: Project, losses: SlowLosses) -> None:
    """Look at what rests on the certificates, when these are stored, too. Raises InputError."""
    _hold_final_certificates(project, losses)
    _hold_routes_of(project, losses)
    _hold_deliveries_of(project, losses)


def hold_runs(project: Project, losses: SlowLosses) -> None:
    """Raises InputError where draw, commitments or routing of a run are not what its rows give."""
    for run in _runs(project):
        with _told(run, Run, f"Run {run.number} does not follow from the other rows", losses):
            tally = hold_run(run)
            if tally != run.tally:
                Run.objects.filter(pk=run.pk).update(tally=tally)


def held_certificates(project: Project, rows: Iterator[Row], losses: SlowLosses) -> Iterator[Row]:
    """Rows of certificates, to be stored when all others are, with the figures that they give here.

    Raises InputError where one is not what the rows of its run give.
    """
    runs = {run.pk: run for run in _runs(project)}
    for row in rows:
        columns: dict[str, Any] = {**row, "run": runs[row["run"]]}
        run = columns["run"]
        with _told(
            run, Certificate, f"The certificate of run {run.number} is not what its rows give", losses
        ):
            shown = hold_certificate(Certificate(**columns))
            row |= {"figures": shown.figures, "messages": shown.messages}
        yield row


def _hold_final_certificates(project: Project, losses: SlowLosses) -> None:
    """The same of those of final audits, which are stored, as their runs' are."""
    finals = FinalCertificate.objects.filter(audit__run__project=project)
    for final in finals.select_related("audit__run__certificate", "audit__run__project"):
        run = final.audit.run
        with _told(
            run, FinalCertificate, f"The final audit of run {run.number} is not what its rows give", losses
        ):
            hold_final_certificate(final)


def _hold_routes_of(project: Project, losses: SlowLosses) -> None:
    """Raises InputError where items were sent elsewhere than the stored certificates send them."""
    for run in _runs(project):
        with _told(run, Route, f"Run {run.number} was not routed by its certificate", losses):
            hold_routes(run)


def _hold_deliveries_of(project: Project, losses: SlowLosses) -> None:
    """Raises InputError where a delivery is not what its files say, or has another certificate."""
    for run in _runs(project):
        with _told(run, Delivery, f"What run {run.number} delivered does not hold together", losses):
            hold_deliveries(run)


def _runs(project: Project) -> list[Run]:
    runs = Run.objects.filter(project=project).select_related("project", "calibration_batch")
    return list(runs.order_by("number"))


@contextmanager
def _told(run: Run, model: Model, words: str, losses: SlowLosses) -> Iterator[None]:
    try:
        with looked_up(losses.lookup_for(run)):
            yield
    except NotComputedError as error:
        if not isinstance(error.why, LossNotComputedError):
            raise not_computed(run.number, run.loss, error.why) from error
    except DiffersError as error:
        raise InputError(f"{words}: {error}.", where=part_of(model)) from error
