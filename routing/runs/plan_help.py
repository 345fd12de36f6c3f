"""What stands beside the shares of a plan: each in the words of the share that is typed."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from annotation.templatetags.hypac import number, percent
from routing.core.exact import plain

DIGITS = 6
"""Most digits after the point of a percentage: as many as the fields take."""


def epsilon_label(*, binary: bool) -> str:
    if binary:
        return _("At most this share of labels that differ from the reference")
    return _("At most this mean loss against the reference")


def _about_mean_loss(share: Decimal) -> str:
    return _(
        "%(share)s: over all delivered labels the mean loss, from 0 to 1 for each, may be at most %(mean)s "
        "against the label that a person would give, or two people or an expert where the plan says so "
        "below. The lower it is, the more items go to people."
    ) % {"share": percent(share, DIGITS), "mean": plain(share)}


def _about_epsilon(share: Decimal) -> str:
    part, whole = _counted(share)
    return _(
        "%(share)s: of %(whole)s delivered labels at most %(part)s may differ from the label that a person "
        "would give, or two people or an expert where the plan says so below. The lower it is, the more "
        "items go to people."
    ) % {"share": percent(share, DIGITS), "whole": whole, "part": part}


def _about_alpha(share: Decimal) -> str:
    part, whole = _counted(share)
    return _(
        "%(share)s: of %(whole)s such draws at most %(part)s may lead to a promise that does not hold. The "
        "lower it is, the more labels the calibration needs."
    ) % {"share": percent(share, DIGITS), "whole": whole, "part": part}


def _about_p(share: Decimal) -> str:
    if share == 1:
        return _(
            "1: people label every drawn item. Less than 1 draws items that nobody is asked about: it serves "
            "to follow the draw of the paper to the letter."
        )
    part, whole = _counted(share)
    return _(
        "%(share)s: of %(whole)s drawn items people are asked about %(part)s on average, and nobody about "
        "the others: it serves to follow the draw of the paper to the letter. 1: about every one."
    ) % {"share": plain(share), "whole": whole, "part": part}


ABOUT: dict[str, Callable[[Decimal], str]] = {
    "epsilon": _about_epsilon,
    "alpha": _about_alpha,
    "p": _about_p,
}
"""Field -> its help at a share."""


def follow_what_is_typed(form: forms.Form, *, binary: bool) -> None:
    """Give the fields the help for what the form holds; where that is no share, for what they begin with.
    `binary` says whether its loss counts errors.
    """
    form.fields["epsilon"].label = epsilon_label(binary=binary)
    for name, about in ABOUT.items():
        field = form.fields[name]
        if name == "epsilon" and not binary:
            about = _about_mean_loss
        field.help_text = about(_typed(form, name) or Decimal(field.initial))


def _typed(form: forms.Form, name: str) -> Decimal | None:
    field = form.fields[name]
    value: Any = form.get_initial_for_field(field, name)
    if form.is_bound:
        value = field.widget.value_from_datadict(form.data, form.files, form.add_prefix(name))
    try:
        share = field.clean(value)
    except forms.ValidationError:
        return None
    return share if share is not None and 0 < share <= 1 else None


def _counted(share: Decimal) -> tuple[str, str]:
    """A share as so many of so many: 5 % are 5 of 100, 0.5 % are 5 of 1,000."""
    whole = 100
    while (share * whole) % 1:
        whole *= 10
    return number(share * whole), number(whole)
