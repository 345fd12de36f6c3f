"""Whether two answers to one item are the same where no two people give quite the same."""

from collections.abc import Callable
from contextlib import suppress

from annotation.errors import InputError
from annotation.models import Project
from annotation.task_types import TASK_TYPES
from routing.core.losses import Loss, alike_by, is_quick, losses_of, make_loss
from routing.core.losses.looked_up import looked_up
from routing.models import Run
from routing.runs.complete import of_batch
from routing.runs.plan_options import loss_of


def same_answers(project: Project, batch: int | None) -> Callable[[str, str], bool]:
    """Whether the loss finds no difference: that of the run the batch was made for, or the project's.

    It is asked while labels are stored: in the place of one that is not the type's own, and does not declare
    to be quick, it is the usual one of the type.
    """
    with looked_up(None):  # those that are left compare two answers in no time
        loss = alike_by(_loss(project, batch))
    return lambda first, second: bool(losses_of(loss, [first], [second])[0] == 0)


def _loss(project: Project, batch: int | None) -> Loss:
    """Where it cannot be computed here, or may be slow, the usual one of the task type."""
    own = TASK_TYPES[project.task_type].losses
    runs = Run.objects.none() if batch is None else Run.objects.filter(of_batch(batch))
    name, params = runs.values_list("loss", "loss_params").first() or ("", {})
    loss = None
    with suppress(InputError):
        loss = loss_of(project, name, params).computed_here
    if loss is not None and (loss.name in own or is_quick(loss)):
        return loss
    return make_loss(own[0])
