"""What can be chosen for a run: each option with one sentence, and why some do not fit the rest; the losses
that suit the labels of a project, and the one that a plan names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _, gettext_lazy

from annotation.errors import HypacError, InputError
from annotation.models import Project
from annotation.ports import LossOffer
from annotation.task_types import TASK_TYPES, TaskType
from routing.core.bounds import BOUNDS
from routing.core.choices import DEFAULT_TARGET, Choice, choices
from routing.core.losses import (
    LOSSES,
    Loss,
    LossError,
    MeasuredElsewhere,
    make_loss,
    measured_elsewhere,
)
from routing.core.losses.numeric import read_number
from routing.core.registry import UnknownNameError
from routing.core.rules import RULES
from routing.core.targets import TARGETS
from routing.core_language import message_in_words, refusal_in_words, translated
from routing.embeddings import EMBEDDER, configured
from routing.models import Source
from routing.sources.backend_for import backend_for
from routing.sources.score_fields import has_own_score, offered_scores

MENUS = ("target", "rule", "bound", "loss", "score")
COSINE = "cosine_distance"
NO_EMBEDDINGS = gettext_lazy(
    "Long texts are compared by their meaning, and this server names no embedding model: whoever runs it "
    "sets HYPAC_EMBEDDINGS_URL and HYPAC_EMBEDDINGS_MODEL (docs/methods.md)."
)


def losses_offered(task_type: str) -> list[LossOffer]:
    """Of any project with this task type; what works at once comes first."""
    offers = (
        LossOffer(option.name, option.title, option.summary, option.refusal)
        for option in (
            _loss(name, recommended=False)
            for name in dict.fromkeys((*_suited(TASK_TYPES[task_type]), *settings.HYPAC_LOSSES))
        )
    )
    return sorted(offers, key=lambda offer: bool(offer.lacks))


def check_loss(project: Project) -> None:
    """Raise InputError where the project's own loss or its parameters cannot be what its plans begin with. It
    may need what the server does not have yet, or what only a plan says: which program measures.
    """
    if (project.loss, project.loss_params) == (measured_elsewhere.NAME, {}):
        names = losses_of_project(project)
        if project.loss in names:
            return
    if loss_refusal(project.loss) and project.loss in losses_of_project(project):
        return
    if project.loss or project.loss_params:
        loss_of(project, project.loss, project.loss_params)


def loss_lacks(project: Project) -> str:
    """What this server lacks for runs with the project's own loss, in a sentence; "" for nothing."""
    if not (lacks := loss_refusal(project.loss)):
        return ""
    then = _("Until then no run can be planned with it; a plan can name another loss.")
    return f"{lacks} {then}"


@dataclass(frozen=True)
class ChosenLoss:
    """A loss with the parameters that a run freezes, and made of both."""

    name: str
    params: Mapping[str, Any]
    function: Loss

    @property
    def computed_here(self) -> Loss | None:
        """None for one that the team's own program measures."""
        return None if isinstance(self.function, MeasuredElsewhere) else self.function


def losses_of_project(project: Project) -> tuple[str, ...]:
    """Names of the losses that suit the labels of the project, the usual one first.

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


def default_loss(project: Project, suited: Sequence[str]) -> str:
    """Of those that suit the project: its own, else the first that this server can compute."""
    usable = (name for name in suited if not loss_refusal(name))
    return project.loss or next(usable, suited[0])


def loss_of(project: Project, name: str, params: Mapping[str, Any]) -> ChosenLoss:
    """The loss called `name`; "" for the project's own, with its parameters where none are given.

    Raises InputError, whose `where` is "loss" or "loss_params".
    """
    names = losses_of_project(project)
    if not name:
        name, params = default_loss(project, names), params or project.loss_params
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
    where = "loss_params" if params or name == measured_elsewhere.NAME else "loss"
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


@dataclass(frozen=True)
class Option:
    """`refusal` is a sentence that says why it cannot be chosen beside the rest, "" where it can;
    `parameters` are sentences by name."""

    name: str
    title: str
    summary: str
    refusal: str = ""
    recommended: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PlanOptions:
    """The menus of a plan. Only what can yield a certificate is in them. `binary`: the loss counts errors."""

    binary: bool
    target: tuple[Option, ...]
    rule: tuple[Option, ...]
    bound: tuple[Option, ...]
    loss: tuple[Option, ...]
    score: tuple[Option, ...]

    def of(self, name: str) -> tuple[Option, ...]:
        options: tuple[Option, ...] = getattr(self, name)
        return options

    def recommended(self, name: str) -> str:
        """Name of the option that is taken where nothing is chosen."""
        return next((option.name for option in self.of(name) if option.recommended), "")


def plan_options(
    project: Project,
    *,
    target: str = "",
    loss: str = "",
    loss_params: Mapping[str, Any] | None = None,
    p_varies: bool = False,
    leave_out: Sequence[str] = (),
) -> PlanOptions:
    """The menus beside a target, a loss, a way of asking and models that are left out, each "" or anything
    else that was typed: what is unknown counts as the default.
    """
    suited = losses_of_project(project)
    sources = list(Source.objects.filter(project=project).exclude(name__in=leave_out).order_by("position"))
    binary = _binary(project, loss if loss in suited else "", loss_params or {})
    offered = choices(
        target if target in TARGETS else DEFAULT_TARGET,
        binary=binary,
        constant_p=not p_varies,
        later_scores=later_scores(sources),
    )
    return PlanOptions(
        binary=binary,
        target=tuple(_option(choice) for choice in offered.targets),
        rule=tuple(_option(choice) for choice in offered.rules if RULES.get(choice.name).holds_level),
        bound=tuple(_option(choice) for choice in offered.bounds if BOUNDS.get(choice.name).certifies),
        loss=tuple(_loss(name, recommended=name == default_loss(project, suited)) for name in suited),
        score=_scores(sources),
    )


def loss_title(name: str) -> str:
    """A loss in words; its name where there are none."""
    return translated(LOSSES.get(name).title) if name in LOSSES else name


def _option(choice: Choice) -> Option:
    refusal = f"{message_in_words(choice.refused)}." if choice.refused else ""
    return Option(choice.name, translated(choice.title), translated(choice.summary), refusal, choice.default)


def _loss(name: str, *, recommended: bool) -> Option:
    if name not in LOSSES:
        return Option(name, name, _("A loss of this installation."))
    kind = LOSSES.get(name)
    return Option(
        name,
        loss_title(name),
        translated(kind.summary),
        loss_refusal(name),
        recommended,
        _translated(kind.parameters),
    )


def _translated(parameters: Mapping[str, str]) -> dict[str, str]:
    return {name: translated(words) for name, words in parameters.items()}


def later_scores(sources: Sequence[Source]) -> bool:
    """Whether a model after the first, in this order, has a score of its own."""
    try:
        return any(has_own_score(source) for source in sources[1:])
    except HypacError:
        return False  # the outlook says what is wrong with the source


def _scores(sources: Sequence[Source]) -> tuple[Option, ...]:
    if not sources:
        return ()
    first = sources[0]
    try:
        own = backend_for(first).default_score
        offered = offered_scores(first)
    except HypacError:
        return ()  # the outlook says what is wrong with the source
    return tuple(
        Option(
            entry.kind.name,
            translated(entry.kind.title),
            translated(entry.kind.summary),
            entry.refusal,
            entry.kind.name == own,
            _translated(entry.kind.parameters),
        )
        for entry in offered
    )


def _binary(project: Project, name: str, params: Mapping[str, Any]) -> bool:
    try:
        return loss_of(project, name, params).function.binary
    except InputError:
        name = name or default_loss(project, losses_of_project(project))
        return name != measured_elsewhere.NAME  # beside the loss stands what is wrong with it
