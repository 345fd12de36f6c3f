"""How far off a number may be and still be right: two fields that forms share, and what they say as
parameters of the loss `numeric`.
"""

from collections.abc import Mapping
from decimal import Decimal, DecimalException
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

NUMERIC = "numeric"


def _amount(label: Any, *, invalid: Any, help_text: Any) -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        min_value=0,
        max_digits=30,
        decimal_places=15,
        required=False,
        localize=False,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
        error_messages={"invalid": invalid},
        help_text=help_text,
    )


class ToleranceFields(forms.Form):
    tolerance = _amount(
        _("Largest difference that still counts as right"),
        invalid=_("Write a number such as 0.5."),
        help_text=_(
            "With 0.5, 10.4 is right where the label is 10. Left empty: only the same number is right."
        ),
    )
    tolerance_percent = _amount(
        _("The same as a share of the label"),
        invalid=_("Write a percentage such as 1 or 0.5."),
        help_text=_(
            "With 1 %, 198 is right where the label is 200. Where both are given, the larger counts."
        ),
    )

    def tolerance_params(self) -> dict[str, str]:
        """Of a valid form: exact decimals, as text; nothing of what is 0."""
        absolute = self.cleaned_data.get("tolerance") or Decimal(0)
        relative = (self.cleaned_data.get("tolerance_percent") or Decimal(0)).scaleb(-2)
        given = {"absolute": absolute, "relative": relative}
        return {name: f"{value.normalize():f}" for name, value in given.items() if value}


def typed_tolerance(params: Mapping[str, Any]) -> dict[str, str]:
    """What would be typed into these fields for such parameters."""
    found: dict[str, str] = {}
    for name, field, places in (("absolute", "tolerance", 0), ("relative", "tolerance_percent", 2)):
        try:
            value = Decimal(str(params.get(name, 0))).scaleb(places)
        except DecimalException:
            continue
        if value:
            found[field] = f"{value.normalize():f}"
    return found
