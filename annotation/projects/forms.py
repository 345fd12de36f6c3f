"""Forms of the project pages. They turn what was typed into values; the services say what is allowed."""

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.common.forms import price_field, told_beside
from annotation.common.one_line import checked_line
from annotation.common.tolerance import NUMERIC, ToleranceFields
from annotation.models import MAX_OVERLAP, Project
from annotation.models.projects import HEX_COLOR
from annotation.ports import LossOffer, routing_port
from annotation.projects.choices import PALETTE, ChoiceSpec, complete
from annotation.projects.guidelines import refuse_too_long
from annotation.projects.label_studio_config import read_config
from annotation.task_types import DEFAULT, TASK_TYPES, TaskType, task_type_titles


class ProjectBasicsForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=200)
    question = forms.CharField(
        label=_("Question"),
        max_length=200,
        required=False,
        help_text=_(
            "What people are asked about each item: it stands above the item. For example: "
            "“What is the mail about?”"
        ),
    )
    guidelines = forms.CharField(
        label=_("Guidelines"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 8}),
        help_text=_("What people should know when they label. Markdown; shown beside every item."),
    )
    human_cost = price_field(label=_("Price of one label by a person"), initial=Decimal(1))
    currency = forms.CharField(
        label=_("Currency or unit"),
        max_length=12,
        initial="USD",
        help_text=_("All prices of the project are in it."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for name in ("name", "question", "currency"):
            if (text := cleaned.get(name, "")) != self.initial.get(name):  # what is stored stays as it is
                with told_beside(self, name):
                    checked_line(text, where=name)
        with told_beside(self, "guidelines"):
            refuse_too_long(cleaned.get("guidelines", ""), before=self.initial.get("guidelines", ""))
        return cleaned


class NewProjectForm(ToleranceFields, ProjectBasicsForm):
    task_type = forms.ChoiceField(
        label=_("What is asked for each item?"),
        choices=task_type_titles,
        initial=DEFAULT,
        widget=forms.RadioSelect,
    )
    labels = forms.CharField(
        label=_("Labels"),
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 6, "placeholder": _("cat\ndog\nneither"), "spellcheck": "false"}
        ),
        help_text=_(
            "One on each line, at least two. Each gets a shortcut key and a colour; "
            "both can be changed in the settings."
        ),
    )
    label_config = forms.CharField(
        label=_("Label Studio configuration"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
        help_text=_(
            "XML from Settings, Labeling Interface, Code. It says what is asked and which labels there are, "
            "in place of the fields above."
        ),
    )
    field_order = [
        *("name", "task_type", "question", "labels", "label_config", "guidelines", "human_cost", "currency")
    ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offers = {name: routing_port().losses_offered(task_type=name) for name in TASK_TYPES}
        for name, offers in self.offers.items():
            if len(offers) > 1:
                self.fields[_loss_of(name)] = forms.ChoiceField(
                    label=_("What counts as an error"),
                    choices=[(offer.name, offer.title) for offer in offers],
                    initial=offers[0].name,
                    required=False,
                )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if config := cleaned.get("label_config", "").strip():
            with told_beside(self, "label_config"):
                read_config(config)
        elif (kind := TASK_TYPES.get(cleaned.get("task_type", ""))) and kind.has_labels:
            with told_beside(self, "labels"):
                complete(self.specs(), to_choose=kind.has_choices)
        return cleaned

    def task_types(self) -> list[tuple[TaskType, forms.BoundField | None, Sequence[LossOffer], bool]]:
        """Every task type, with the field of its loss and what that offers where there is a choice, and
        whether a tolerance belongs to it.
        """
        return [
            (
                kind,
                self[_loss_of(name)] if _loss_of(name) in self.fields else None,
                self.offers[name],
                kind.losses[:1] == (NUMERIC,),
            )
            for name, kind in TASK_TYPES.items()
        ]

    def loss(self) -> tuple[str, dict[str, str]]:
        """The one that was chosen for the task type, with its parameters; "" for what suits it.

        A configuration of Label Studio may say another task type than the form.
        """
        if self.cleaned_data["label_config"].strip():
            return "", {}
        name = self.cleaned_data["task_type"]
        loss = self.cleaned_data.get(_loss_of(name), "")
        if (loss or next(iter(TASK_TYPES[name].losses), "")) == NUMERIC:
            return NUMERIC, self.tolerance_params()
        return loss, {}

    def specs(self) -> list[ChoiceSpec]:
        """The labels; none where the task type has none, whatever was typed before it was chosen, nor where a
        configuration has them.
        """
        if self.cleaned_data["label_config"].strip():
            return []
        if not TASK_TYPES[self.cleaned_data["task_type"]].has_labels:
            return []
        lines = self.cleaned_data["labels"].splitlines()
        return [ChoiceSpec(name=line.strip()) for line in lines if line.strip()]


def _loss_of(task_type: str) -> str:
    """Name of the field that says what counts as an error for it."""
    return f"loss_{task_type}"


class SettingsForm(ProjectBasicsForm):
    lease_seconds = forms.IntegerField(
        label=_("Seconds an item stays with the person who opened it"),
        min_value=30,
        max_value=7 * 24 * 3600,
        help_text=_("After that somebody else may get it. The page keeps it for as long as it is open."),
    )
    text_format = forms.ChoiceField(
        label=_("How the texts of the items are shown"), choices=Project.TextFormat.choices
    )
    overlap = forms.IntegerField(
        label=_("People per item"),
        min_value=1,
        max_value=MAX_OVERLAP,
        help_text=_("1: one person labels an item. From 2 on their answers are compared."),
    )
    overlap_share = forms.DecimalField(
        label=_("On which share of the items"),
        min_value=Decimal("0.0001"),
        max_value=Decimal(1),
        max_digits=5,
        decimal_places=4,
        error_messages={
            "min_value": _(
                "Write a share above 0 and at most 1. Where one person is enough, set their number to 1."
            )
        },
        help_text=_("1 is all of them; with 0.25 it is a random quarter, and one person labels the others."),
    )
    consensus = forms.ChoiceField(
        label=_("Where people differ"),
        choices=Project.Consensus.choices,
        help_text=_(
            "In the calibration set it is always a reviewer who decides where no label has more than half."
        ),
    )

    def __init__(self, data: Any = None, *, project: Project) -> None:
        initial = {name: getattr(project, name) for name in self.base_fields}
        for name in ("human_cost", "overlap_share"):
            initial[name] = f"{initial[name].normalize():f}"
        super().__init__(data, initial=initial)
        if not TASK_TYPES[project.task_type].one_choice:
            del self.fields["consensus"]  # a reviewer decides


class ChoiceForm(forms.Form):
    key = forms.CharField(required=False, max_length=100, strip=False, widget=forms.HiddenInput)
    name = forms.CharField(label=_("Name"), max_length=100)
    hotkey = forms.CharField(label=_("Key"), required=False, max_length=1)
    color = forms.CharField(
        label=_("Colour"),
        required=False,
        validators=[HEX_COLOR],
        widget=forms.TextInput(attrs={"type": "color"}),
    )


if TYPE_CHECKING:  # generic for the type checker only
    _FormSet = forms.BaseFormSet[ChoiceForm]
else:
    _FormSet = forms.BaseFormSet


class _ChoiceFormSet(_FormSet):
    def add_fields(self, form: ChoiceForm, index: int | None) -> None:
        super().add_fields(form, index)
        words = {
            "name": _("Name of label %d"),
            "hotkey": _("Key of label %d"),
            "color": _("Colour of label %d"),
        }
        if index is not None and index >= self.initial_form_count():
            form.fields["color"].initial = PALETTE[index % len(PALETTE)]  # a colour field cannot be empty
        for name, text in words.items():
            form.fields[name].widget.attrs["aria-label"] = text % ((index or 0) + 1)

    def specs(self) -> list[ChoiceSpec]:
        """The labels in their order, without those that are to go and without empty rows."""
        kept = [form.cleaned_data for form in self.forms if form.cleaned_data.get("name")]
        return [
            ChoiceSpec(data["name"], key=data["key"], hotkey=data["hotkey"], color=data["color"])
            for data in kept
            if not data.get("DELETE")
        ]


ChoiceFormSet = cast(
    type[_ChoiceFormSet],
    forms.formset_factory(
        ChoiceForm, formset=_ChoiceFormSet, extra=2, can_delete=True, max_num=500, absolute_max=510
    ),
)
