"""Groups of the states of a run, and the only way to change one."""

from typing import Any

from django.utils.translation import gettext_noop

from annotation import failures
from annotation.errors import ConflictError, HypacError
from routing.models import Run

State = Run.State

# Nothing of such a run may be seen by whoever may label in it.
OPEN = (State.PREPARING, State.CALIBRATING, State.CHECKING, State.LOSSES, State.ANALYSING)
# Its models may still be called.
BUSY = (*OPEN, State.ROUTING)
# Something is still to be done; another run has to wait, and the choices stay as they are.
UNDER_WAY = (*BUSY, State.LABELLING)
ROUTED = (State.LABELLING, State.COMPLETE)
CANCELLABLE = (*UNDER_WAY, State.ANALYSED)

CANCELLED = failures.register("run_cancelled", gettext_noop("Run %(run)s was cancelled."))
ANALYSED = failures.register("run_analysed", gettext_noop("Run %(run)s has been analysed already."))


def was_cancelled(run: Run) -> HypacError:
    """What a job of a run meets where the run was cancelled meanwhile."""
    return CANCELLED.error(raised_as=ConflictError, run=run.number)


def change_state(
    run: Run, *, before: str | tuple[str, ...], after: str, refusal: HypacError, **changes: Any
) -> None:
    """Change the state of a run in one conditional UPDATE.

    Raises the refusal where it has moved on.
    """
    expected = (before,) if isinstance(before, str) else before
    if not Run.objects.filter(pk=run.pk, state__in=expected).update(state=after, **changes):
        raise refusal
    run.state = after
    for name, value in changes.items():
        setattr(run, name, value)
