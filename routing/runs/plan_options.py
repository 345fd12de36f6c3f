"""What can be chosen for a run: each option with one sentence, and why some do not fit the rest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import HypacError, InputError
from annotation.models import Project
from routing.core.bounds import BOUNDS
from routing.core.choices import DEFAULT_TARGET, Choice, choices
from routing.core.losses import LOSSES
from routing.core.rules import RULES
from routing.core.targets import TARGETS
from routing.core_language import in_words, translated
from routing.models import Source
from routing.runs.plan_losses import loss_of, loss_refusal, losses_of_project
from routing.sources.backend_for import backend_for
from routing.sources.score_fields import offered_scores


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
    """The menus of a plan. Only what can yield a certificate is in them."""

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
) -> PlanOptions:
    """The menus beside a target, a loss and a way of asking, each "" or anything else that was typed: what is
    unknown counts as the default.
    """
    suited = losses_of_project(project)
    offered = choices(
        target if target in TARGETS else DEFAULT_TARGET,
        binary=_binary(project, loss if loss in suited else "", loss_params or {}),
        constant_p=not p_varies,
    )
    return PlanOptions(
        target=tuple(_option(choice) for choice in offered.targets),
        rule=tuple(_option(choice) for choice in offered.rules if RULES.get(choice.name).holds_level),
        bound=tuple(_option(choice) for choice in offered.bounds if BOUNDS.get(choice.name).certifies),
        loss=tuple(_loss(name, recommended=name == suited[0]) for name in suited),
        score=_scores(project),
    )


def loss_title(name: str) -> str:
    """A loss in words; its name where there are none."""
    return translated(LOSSES.get(name).title) if name in LOSSES else name


def _option(choice: Choice) -> Option:
    refusal = f"{in_words(choice.refused)}." if choice.refused else ""
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


def _scores(project: Project) -> tuple[Option, ...]:
    first = Source.objects.filter(project=project).order_by("position").first()
    if first is None:
        return ()
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
        return True  # beside the loss stands what is wrong with it
