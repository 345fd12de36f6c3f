"""The field of a run's budget, on the page of a plan and on that of a run."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from routing.core.exact import plain
from routing.models import Run


def budget_field() -> forms.DecimalField:
    attrs: dict[str, Any] = {
        "aria-describedby": "id_budget_helptext id_budget_error",
        "inputmode": "decimal",
        "autocomplete": "off",
    }
    return forms.DecimalField(
        label=_("Budget of the models"),
        required=False,
        min_value=0,
        max_digits=20,
        decimal_places=6,
        localize=False,
        widget=forms.TextInput(attrs=attrs),
        error_messages={"invalid": _("Write an amount such as 25.50.")},
        help_text=_(
            "The run stops before its models cost more than this. Once you raise it, they go on where "
            "they stopped. What people are paid is no part of it. Left empty: no limit."
        ),
    )


class BudgetForm(forms.Form):
    budget = budget_field()

    @staticmethod
    def initial_of(run: Run) -> dict[str, Any]:
        return {"budget": "" if run.budget is None else plain(run.budget)}
