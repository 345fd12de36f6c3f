"""Losses that suit the labels of a project, and the one that a plan names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _, gettext_lazy

from annotation.errors import InputError
from annotation.models import Project
from annotation.task_types import TASK_TYPES, TaskType
from routing.core.losses import LOSSES, Loss, LossError, make_loss
from routing.core.losses.numeric import read_number
from routing.core.registry import UnknownNameError
from routing.core_language import refusal_in_words
from routing.embeddings import EMBEDDER, configured

COSINE = "cosine_distance"
NO_EMBEDDINGS = gettext_lazy(
    "Long texts are compared by their meaning, and this server names no embedding model: whoever runs it "
    "sets HYPAC_EMBEDDINGS_URL and HYPAC_EMBEDDINGS_MODEL (docs/methods.md)."
)
HAS_EMBEDDINGS = gettext_lazy("This server has an embedding model: runs can be planned.")
HAS_LOSS = gettext_lazy("This server has a loss of its own: runs can be planned with it.")


def needs_of(task_type: str) -> tuple[bool, str] | None:
    """What runs of projects with this task type need on the server, as (whether it has that, words); None
    where they need nothing.
    """
    kind = TASK_TYPES[task_type]
    losses = _suited(kind)
    if set(losses) - {COSINE}:
        return None
    if losses and configured():
        return True, str(HAS_EMBEDDINGS)
    if settings.HYPAC_LOSSES:
        return True, str(HAS_LOSS)
    then = _("Until then no run of such a project can be planned.")
    lacks = NO_EMBEDDINGS if losses else kind.no_loss
    return False, f"{lacks} {then}"


@dataclass(frozen=True)
class ChosenLoss:
    """A loss with the parameters that a run freezes, and made of both."""

    name: str
    params: Mapping[str, Any]
    function: Loss


def losses_of_project(project: Project) -> tuple[str, ...]:
    """Names of the losses that suit the labels of the project, the default first; none where only a loss of
    one's own would do.

    The settings may add losses of one's own (HYPAC_LOSSES): nobody can name code from a page.
    """
    kind = TASK_TYPES[project.task_type]
    suited = _suited(kind)
    if kind.losses_of_numbers:
        keys = project.choices.values_list("key", flat=True)
        if all(read_number(key) is not None for key in keys):
            suited += kind.losses_of_numbers
    return tuple(dict.fromkeys((*suited, *settings.HYPAC_LOSSES)))


def _suited(kind: TaskType) -> tuple[str, ...]:
    return (*kind.losses, *(loss.name for loss in LOSSES if kind.name in loss.suits))


def loss_refusal(name: str) -> str:
    """Why a loss that suits a project cannot be used on this server, in a sentence; "" where it can."""
    return str(NO_EMBEDDINGS) if name == COSINE and not configured() else ""


def loss_of(project: Project, name: str, params: Mapping[str, Any]) -> ChosenLoss:
    """The loss called `name`, "" for the default of the project.

    Raises InputError, whose `where` is "loss" or "loss_params".
    """
    names = losses_of_project(project)
    if not names:
        raise InputError(str(TASK_TYPES[project.task_type].no_loss), where="loss")
    name = name or names[0]
    if name not in names:
        sentences = [
            _("There is no loss %(name)r for this project; choose one of %(names)s.")
            % {"name": name, "names": ", ".join(names)}
        ]
        if name in LOSSES:
            sentences.append(_("This loss is for other kinds of labels."))
        raise InputError(" ".join(sentences), where="loss")
    if refusal := loss_refusal(name):
        raise InputError(refusal, where="loss")
    where = "loss_params" if params else "loss"
    try:
        params = _with_ours(name, params)
        if TASK_TYPES[project.task_type].several and name in LOSSES and "separator" in params:
            raise InputError(
                _("Labels are stored as lists: leave the parameter 'separator' out."), where="loss_params"
            )
        return ChosenLoss(name, params, make_loss(name, params))
    except UnknownNameError as error:
        raise InputError(refusal_in_words(error), where="loss") from None
    except LossError as error:
        raise InputError(refusal_in_words(error), where=where) from None


def _with_ours(name: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters with what this server sets: an embedder is code, and a run keeps to one model."""
    if name != COSINE:
        return dict(params)
    ours = {"embedder": EMBEDDER, "model": settings.HYPAC_EMBEDDINGS_MODEL}
    for key, value in params.items():
        if key in ours and value != ours[key]:
            raise InputError(
                _("The parameter %(name)r is set by whoever runs this server; leave it out.") % {"name": key},
                where="loss_params",
            )
    return {**params, **ours}
