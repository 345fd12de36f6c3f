"""What a plan may be made of: every target, bound and rule with its words, and why some do not fit others."""

from __future__ import annotations

from dataclasses import dataclass

from routing.core.bounds import BOUNDS
from routing.core.messages import Message
from routing.core.rules import RULES, every_score, fixed_sequence
from routing.core.targets import TARGETS

DEFAULT_TARGET = "dataset"


def default_rule(*, later_scores: bool) -> str:
    """The rule that serves where none is chosen: every model's own score decides where there are several."""
    return every_score.RULE.name if later_scores else fixed_sequence.RULE.name


@dataclass(frozen=True)
class Choice:
    """One entry of a menu.

    Attributes
    ----------
    name, title : str
        In the registry, and in words.
    summary : str
        One plain sentence.
    valid : bool
        Whether it can be chosen beside the rest.
    refused : message or None
        Why not, naming what to use instead; '' where it is valid.
    default : bool
        Whether it is what serves where nothing is chosen.
    """

    name: str
    title: str
    summary: str
    valid: bool
    refused: Message | None
    default: bool


@dataclass(frozen=True)
class Choices:
    """The three menus of a plan, each in the order of its registry."""

    targets: tuple[Choice, ...]
    bounds: tuple[Choice, ...]
    rules: tuple[Choice, ...]


def choices(
    target: str = DEFAULT_TARGET,
    *,
    binary: bool = True,
    constant_p: bool = True,
    later_scores: bool = False,
) -> Choices:
    """All targets, bounds and rules beside ``target``, a loss and a way of asking people.

    Parameters
    ----------
    target
        Name of the chosen target.
    binary
        Whether the loss takes the values 0 and 1 only.
    constant_p
        Whether every drawn item is asked about with one probability.
    later_scores
        Whether a model after the first has a score of its own.

    Raises
    ------
    UnknownNameError
        There is no such target.
    """
    default_bound = TARGETS.get(target).default_bound(binary=binary, constant_p=constant_p)
    return Choices(
        targets=tuple(
            _choice(entry.name, entry.title, entry.summary, None, entry.name == DEFAULT_TARGET)
            for entry in TARGETS
        ),
        bounds=tuple(
            _choice(
                entry.name,
                entry.title,
                entry.summary,
                entry.refusal(target=target, binary=binary, constant_p=constant_p),
                entry.name == default_bound,
            )
            for entry in BOUNDS
        ),
        rules=tuple(
            _choice(
                entry.name,
                entry.title,
                entry.description,
                entry.refusal(constant_p=constant_p),
                entry.name == default_rule(later_scores=later_scores),
            )
            for entry in RULES
        ),
    )


def _choice(name: str, title: str, summary: str, refusal: Message | None, default: bool) -> Choice:
    return Choice(name, title or name, summary, refusal is None, refusal, default)
