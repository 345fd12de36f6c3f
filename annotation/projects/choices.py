"""The labels that can be given: their keys, hotkeys and colours."""

import string
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from annotation.common.one_line import checked_line
from annotation.errors import InputError
from annotation.models.projects import CHOICE_KEY, HEX_COLOR

MAX_CHOICES = 500
# Keys that the annotation page uses itself.
RESERVED_HOTKEYS = frozenset("us?")
HOTKEYS = [key for key in string.digits[1:] + string.ascii_lowercase if key not in RESERVED_HOTKEYS]
# Each has a contrast of at least 4.5 to 1 with white, in both directions (WCAG 2.2, 1.4.3).
PALETTE = (
    "#1f5fa8",
    "#b3401d",
    "#2f7a36",
    "#8a3a9c",
    "#8a6100",
    "#0f7480",
    "#b02a5b",
    "#4c56b8",
    "#5c6f17",
    "#7a4a32",
    "#3f5a73",
    "#a1303a",
)


@dataclass(frozen=True)
class ChoiceSpec:
    """One label as a person describes it. What is left empty is filled in by `complete`."""

    name: str
    key: str = ""
    hotkey: str = ""
    color: str = ""


def complete(
    choices: Iterable[ChoiceSpec], *, to_choose: bool = True, known: Collection[str] = ()
) -> list[ChoiceSpec]:
    """Check the labels and fill in keys (the name), hotkeys and colours.

    Hotkeys are given as 1 to 9 and then letters; where every name is one character (digits, letters), each
    label gets its own name. Where nobody has `to_choose` between them, one is enough. Names that are `known`
    stay, whatever characters they have. Raises InputError that names the label.
    """
    specs = [_stripped(spec) for spec in choices]
    if not specs and not to_choose:
        raise InputError(_("Give at least one label."), where="choices")
    if len(specs) < 2 and to_choose:
        raise InputError(_("Give at least two labels to choose from."), where="choices")
    if len(specs) > MAX_CHOICES:
        raise InputError(
            _("There are %(count)s labels; at most %(max_choices)s can be used.")
            % {"count": len(specs), "max_choices": MAX_CHOICES},
            where="choices",
        )
    for position, spec in enumerate(specs, 1):
        _check(spec, f"label {position}", known)
    _refuse_repeats(
        [spec.name.casefold() for spec in specs],
        specs,
        _("The label %(label)r is there twice; names must differ."),
    )
    _refuse_repeats(
        [spec.key for spec in specs], specs, _("The label %(label)r has a key that another label has too.")
    )
    taken = [spec.hotkey for spec in specs]
    _refuse_repeats(taken, specs, _("The label %(label)r has a shortcut key that another label has too."))
    free = _free_hotkeys(specs, set(taken))
    return [
        replace(
            spec,
            hotkey=spec.hotkey or free.get(index, ""),
            color=spec.color or PALETTE[index % len(PALETTE)],
        )
        for index, spec in enumerate(specs)
    ]


def _stripped(spec: ChoiceSpec) -> ChoiceSpec:
    name = spec.name.strip()
    return ChoiceSpec(
        name=name, key=spec.key or name, hotkey=spec.hotkey.strip().lower(), color=spec.color.strip()
    )


def _check(spec: ChoiceSpec, where: str, known: Collection[str]) -> None:
    if not spec.name:
        raise InputError(_("A label needs a name."), where=where)
    if len(spec.name) > 100:
        raise InputError(_("A label's name has at most 100 characters."), where=where)
    if spec.name not in known:
        checked_line(spec.name, where=where)
    try:
        CHOICE_KEY(spec.name)
        CHOICE_KEY(spec.key)
        if spec.color:
            HEX_COLOR(spec.color)
    except ValidationError as error:
        raise InputError(" ".join(error.messages), where=where) from None
    if spec.hotkey and (len(spec.hotkey) != 1 or not spec.hotkey.isprintable() or spec.hotkey.isspace()):
        raise InputError(
            _("The shortcut key %(hotkey)r is not one character.") % {"hotkey": spec.hotkey}, where=where
        )
    if spec.hotkey in RESERVED_HOTKEYS and spec.hotkey:
        raise InputError(
            _(
                "The shortcut key %(hotkey)r has a meaning on the annotation page already (u takes "
                "back, s skips, ? shows the shortcuts). Choose another one."
            )
            % {"hotkey": spec.hotkey},
            where=where,
        )


def _refuse_repeats(values: Sequence[str], specs: Sequence[ChoiceSpec], message: str) -> None:
    seen: set[str] = set()
    for value, spec in zip(values, specs, strict=True):
        if value and value in seen:
            raise InputError(message % {"label": spec.name}, where="choices")
        seen.add(value)


def _free_hotkeys(specs: Sequence[ChoiceSpec], taken: set[str]) -> dict[int, str]:
    """Hotkeys for the labels that have none, by their index."""
    missing = [index for index, spec in enumerate(specs) if not spec.hotkey]
    own = [specs[index].name.lower() for index in missing]
    usable = all(len(key) == 1 and key.isalnum() and key not in RESERVED_HOTKEYS | taken for key in own)
    if usable and len(set(own)) == len(own):
        return dict(zip(missing, own, strict=True))
    return dict(zip(missing, (key for key in HOTKEYS if key not in taken), strict=False))
