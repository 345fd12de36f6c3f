"""Forms of sources and plans. They turn what was typed into values; the services say what is allowed."""

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.models import Project
from routing.models import Run


def _share(**options: Any) -> forms.DecimalField:
    return forms.DecimalField(
        max_digits=9,
        decimal_places=8,
        localize=False,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
        error_messages={"invalid": _("Write a number such as 0.05.")},
        **options,
    )


class PlanForm(forms.Form):
    epsilon = _share(
        label=_("At most this share of wrong labels"),
        initial=Decimal("0.05"),
        help_text=_("0.05 means that at most 5 % of the delivered labels may be wrong."),
    )
    alpha = _share(
        label=_("Accepted risk that this does not hold"),
        initial=Decimal("0.05"),
        help_text=_("0.05: of a hundred such draws at most five may lead to a wrong promise."),
    )
    target = forms.ChoiceField(
        label=_("What the promise is about"),
        choices=Run.Target.choices,
        initial=Run.Target.DATASET,
        widget=forms.RadioSelect,
    )
    m = forms.IntegerField(
        label=_("Items drawn at random for calibration"),
        min_value=1,
        help_text=_("More of them allow thresholds that save more, and cost labels by people."),
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
    )
    p = _share(
        label=_("Share of the drawn items that people are asked about"),
        initial=Decimal("0.9"),
        help_text=_("0.9: people label about nine of ten drawn items."),
    )
    anyway = forms.BooleanField(
        label=_("Start anyway: people will label everything"),
        required=False,  # asked for only where nothing can be certified; see `ask_whether_anyway`
        widget=forms.CheckboxInput(attrs={"required": True}),
    )

    def values(self) -> dict[str, Any]:
        """Arguments of `outlook` and `start_run`."""
        return {name: value for name, value in self.cleaned_data.items() if name != "anyway"}

    def initial_values(self) -> dict[str, Any]:
        """The same of a form that nobody has filled in yet."""
        named = {name: field for name, field in self.fields.items() if name != "anyway"}
        return {name: self.get_initial_for_field(field, name) for name, field in named.items()}

    def ask_whether_anyway(self) -> None:
        self.add_error(
            "anyway",
            _(
                "Nothing was started: with this plan too few labels come together to certify anything, so no "
                "model may label and people get every item. Draw more items, or accept more errors or a "
                "higher risk; otherwise confirm that you want this."
            ),
        )


def suggested_m(project: Project) -> int:
    """A draw that is worth its labels: a fifth of the items, 100 to 1,000, and no more than there are."""
    count = project.items.count()
    return max(1, min(max(100, min(1000, count // 5)), count))
