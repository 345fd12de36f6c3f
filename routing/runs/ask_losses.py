"""The step between labels and analysis of a run whose losses are measured elsewhere: a manager locks the
calibration labels, and only then are models' answers given out to be measured, so that whoever labels has not
seen them.
"""

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.models import User
from routing.common.states import State, change_state
from routing.models import Run
from routing.runs.certify import refuse_unfinished
from routing.runs.losses_to_measure import note_wanted, refuse_computed_here


def ask_losses(*, run: Run, user: User | None) -> None:
    """Lock the calibration labels, and have the losses of models' answers asked for.

    Raises ConflictError, in words, where the run's losses are computed here, it is not at this point, or an
    asked item is neither labelled nor given up.
    """
    run.refresh_from_db()
    refuse_computed_here(run)
    refusal = ConflictError(
        _("Losses of run %(run)s cannot be asked for now: %(state)s.")
        % {"run": run.number, "state": run.get_state_display().lower()},
        code="cannot_ask_losses_now",
    )
    if run.state != State.CALIBRATING or run.calibration_batch is None:
        raise refusal
    with transaction.atomic():
        refuse_unfinished(run.calibration_batch)
        note_wanted(run, queue.lock_batch(batch=run.calibration_batch))
        change_state(run, before=State.CALIBRATING, after=State.LOSSES, refusal=refusal)
        audit.record(project=run.project, actor=user, action="run.losses_asked", target=f"run:{run.number}")
