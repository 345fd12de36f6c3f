"""Groups of the states of a run, and the only way to change one."""

from typing import Any

from annotation.errors import ConflictError
from routing.models import Run

State = Run.State

# Nothing of such a run may be seen by whoever may label in it.
OPEN = (State.PREPARING, State.CALIBRATING, State.ANALYSING)
# Its models may still be called.
BUSY = (*OPEN, State.ROUTING)
# Something is still to be done; another run has to wait, and the choices stay as they are.
UNDER_WAY = (*BUSY, State.LABELLING)
ROUTED = (State.LABELLING, State.COMPLETE)
CANCELLABLE = (*UNDER_WAY, State.ANALYSED)


def move(run: Run, *, before: str | tuple[str, ...], after: str, refusal: str, **changes: Any) -> None:
    """Change the state of a run in one conditional UPDATE.

    Raises ConflictError(refusal) where it has moved on.
    """
    expected = (before,) if isinstance(before, str) else before
    if not Run.objects.filter(pk=run.pk, state__in=expected).update(state=after, **changes):
        raise ConflictError(refusal)
    run.state = after
    for name, value in changes.items():
        setattr(run, name, value)
