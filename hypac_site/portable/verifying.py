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
from routing.delivery.verify_deliveries import verify_deliveries
from routing.models import Certificate, Delivery, FinalCertificate, Route, Run
from routing.runs.verification import DiffersError, NotComputedError
from routing.runs.verify_certificate import verify_certificate, verify_final_certificate
from routing.runs.verify_routes import verify_routes
from routing.runs.verify_run import verify_run


def verify_runs(project: Project, losses: SlowLosses) -> None:
    """Raises InputError where draw, commitments or routing of a run are not what its rows give."""
    for run in _runs(project):
        with _refusing(run, Run, f"Run {run.number} does not follow from the other rows", losses):
            tally = verify_run(run)
            if tally != run.tally:
                Run.objects.filter(pk=run.pk).update(tally=tally)


def verified_certificates(project: Project, rows: Iterator[Row], losses: SlowLosses) -> Iterator[Row]:
    """Rows of certificates, to be stored when all others are, with the figures that they give here.

    Raises InputError where one is not what the rows of its run give.
    """
    runs = {run.pk: run for run in _runs(project)}
    for row in rows:
        columns: dict[str, Any] = {**row, "run": runs[row["run"]]}
        run = columns["run"]
        with _refusing(
            run, Certificate, f"The certificate of run {run.number} is not what its rows give", losses
        ):
            shown = verify_certificate(Certificate(**columns))
            row |= {"figures": shown.figures, "messages": shown.messages}
        yield row


def verify_rest(project: Project, losses: SlowLosses) -> None:
    """Once the certificates are stored, too: raises InputError where a final audit, the routes or a delivery
    are not what certificate and rows give.
    """
    finals = FinalCertificate.objects.select_related("audit__run__certificate", "audit__run__project")
    for run in _runs(project):
        words = f"The final audit of run {run.number} is not what its rows give"
        with _refusing(run, FinalCertificate, words, losses):
            for final in finals.filter(audit__run=run):
                verify_final_certificate(final)
        with _refusing(run, Route, f"Run {run.number} was not routed by its certificate", losses):
            verify_routes(run)
        with _refusing(run, Delivery, f"What run {run.number} delivered does not hold together", losses):
            verify_deliveries(run)


def _runs(project: Project) -> list[Run]:
    runs = Run.objects.filter(project=project).select_related("project", "calibration_batch")
    return list(runs.order_by("number"))


@contextmanager
def _refusing(run: Run, model: Model, words: str, losses: SlowLosses) -> Iterator[None]:
    try:
        with looked_up(losses.lookup_for(run)):
            yield
    except NotComputedError as error:
        if not isinstance(error.why, LossNotComputedError):
            raise not_computed(run.number, run.loss, error.why) from error
    except DiffersError as error:
        raise InputError(f"{words}: {error}.", where=part_of(model)) from error
