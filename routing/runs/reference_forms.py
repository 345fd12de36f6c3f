"""The part of a plan's form that says whose label is right, and who labels."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from annotation.models import Project
from annotation.permissions import members_who_label
from routing.core.exact import plain
from routing.models import Run
from routing.runs.form_fields import ParametersField, described, share_field
from routing.runs.plan_options import Option
from routing.runs.reference import PRICE_OF_EXPERTS
from routing.runs.roster import may_be_experts

Reference = Run.Reference


class ReferenceFields(forms.Form):
    """The part of a plan's form about that; who may be chosen depends on the project."""

    reference = forms.CharField(label=_("Whose label is right"), initial="", required=False)
    roster = forms.MultipleChoiceField(
        label=_("Who labels"),
        required=False,
        widget=forms.CheckboxSelectMultiple(attrs={"aria-describedby": "id_roster_helptext id_roster_error"}),
        help_text=_(
            "Each item is then one person's, by chance, and nobody else takes it over. Nobody chosen: with "
            "the first reference whoever is free takes the next item, with the others all annotators."
        ),
    )
    shares = ParametersField(
        "shares",
        label=_("Shares of the work"),
        help_text=_("One on each line, as name = 0.25, together 1. Left empty: as much for each."),
    )
    expert = forms.MultipleChoiceField(
        label=_("Expert"),
        required=False,
        widget=forms.CheckboxSelectMultiple(attrs={"aria-describedby": "id_expert_helptext id_expert_error"}),
        help_text=_(
            "An annotator of the project, who sees neither what models answer nor what others label, and "
            "does not annotate in this run. The certificate names her. Of several each item is one's, by "
            "chance: right is the expert whose item it is, so two of them never label the same item and "
            "cannot disagree on it. How much they differ among themselves is not known."
        ),
    )
    expert_shares = ParametersField(
        "expert_shares",
        label=_("Shares of the experts' work"),
        help_text=_(
            "Where there are several: one on each line, as name = 0.25, together 1. Left empty: as much for "
            "each."
        ),
    )
    expert_cost = forms.DecimalField(
        label=_("Price of a label by the expert"),
        required=False,
        min_value=0,
        max_digits=14,
        decimal_places=6,
        localize=False,
        widget=forms.TextInput(attrs=described("expert_cost", inputmode="decimal", autocomplete="off")),
        error_messages={"invalid": _("Write an amount such as 25.50.")},
    )
    recheck_share = share_field(
        "recheck_share",
        label=_("Share of the asked items that the expert labels in any case"),
        required=False,
        help_text=_(
            "Left empty: 0.5. 1 where people and models tend to make the same mistakes, or few items are "
            "asked about."
        ),
    )
    audit_share = share_field(
        "audit_share",
        label=_("Share of people's later labels that the expert looks at, too"),
        required=False,
        help_text=_(
            "Left empty: 0.02. It shows whether people get worse after the calibration; 0: no audit."
        ),
    )
    accepted_error = share_field(
        "accepted_error",
        label=_("Share of people's labels there that may differ from the expert's"),
        required=False,
        help_text=_("Left empty: 0.05. The audit warns where they differ more often."),
    )
    final_sample = forms.IntegerField(
        label=_("Final audit: labels by people that the expert labels, too, once all are there"),
        required=False,
        min_value=1,
        localize=False,
        widget=forms.TextInput(attrs=described("final_sample", inputmode="numeric", autocomplete="off")),
        help_text=_(
            "Left empty: no final audit. It is a second certificate, which does not assume that people go on "
            "labelling as they labelled the calibration set."
        ),
    )
    final_models_error = share_field(
        "final_models_error",
        label=_("Final audit: share of all items that models may get wrong"),
        required=False,
        help_text=_("Left empty: half of epsilon. The other half is left to people."),
    )
    final_models_alpha = share_field(
        "final_models_alpha",
        label=_("Final audit: how often its test of the models may be missed"),
        required=False,
        help_text=_("Left empty: half of alpha."),
    )
    final_people_alpha = share_field(
        "final_people_alpha",
        label=_("Final audit: how often its test of people may be missed"),
        required=False,
        help_text=_("Left empty: half of alpha. Both together are at most alpha."),
    )


def reference_menu() -> list[Option]:
    """Whose label is right, as a menu; what cannot be chosen the plan itself refuses, in words."""
    about = {
        Reference.PERSON: _(
            "People's own mistakes are not counted: the promise is about how often labels differ from what "
            "one of them gave or would have given."
        ),
        Reference.SETTLED: _(
            "Two people label each item, blind, and a third decides where they differ. Twice the labels; a "
            "mistake that two make alike is not counted."
        ),
        Reference.EXPERT: _(
            "Mistakes of models and of people are counted. The expert labels a part of the calibration set, "
            "and what models and people cannot be trusted with."
        ),
    }
    return [
        Option(
            name=reference.value,
            title=str(reference.label),
            summary=str(about[reference]),
            refusal="",
            recommended=reference == Reference.PERSON,
            parameters={},
        )
        for reference in Reference
    ]


def roster_choices(project: Project) -> list[tuple[str, str]]:
    """Everybody who may label."""
    rows = members_who_label(project.pk).select_related("user").order_by("user__username")
    return [(row.user.username, f"{row.user.username} ({row.get_role_display()})") for row in rows]


def expert_choices(project: Project) -> list[tuple[str, str]]:
    return [(user.username, user.username) for user in may_be_experts(project)]


def price_help(project: Project) -> Any:
    return format_lazy(
        _("Left empty: {price} {currency}, {times} times the price of a label by an annotator."),
        price=plain(PRICE_OF_EXPERTS * project.human_cost),
        currency=project.currency,
        times=PRICE_OF_EXPERTS,
    )


def roster_of_form(chosen: list[str], shares: Mapping[str, Any]) -> dict[str, Fraction | None]:
    """Who labels, with the share of each; None for equal shares. Raises forms.ValidationError for a share
    that is none, or of somebody who was not chosen.
    """
    if unknown := [name for name in shares if name not in chosen]:
        raise forms.ValidationError(
            _("%(name)s has a share of the work and is not chosen."), params={"name": unknown[0]}
        )
    return {name: share_in(name, shares[name]) if name in shares else None for name in chosen}


def share_in(name: str, given: Any) -> Fraction:
    """A share such as 0.25, 25 % or 1/4. Raises forms.ValidationError."""
    text = str(given).strip()
    try:
        if "/" in text:
            return Fraction(text)
        percent = text.endswith("%")
        number = Decimal(text.removesuffix("%").strip())
        if not number.is_finite() or abs(number.adjusted()) > 12:
            raise InvalidOperation
        return Fraction(number) / (100 if percent else 1)
    except (InvalidOperation, ValueError, ZeroDivisionError):
        raise forms.ValidationError(
            _("The share of %(name)s cannot be read: write it like 0.25, 25 %% or 1/4."),
            params={"name": name},
        ) from None
