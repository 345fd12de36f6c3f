"""Fields of the forms of runs: shares, parameters, and what their controls say of help and faults."""

import json
from decimal import Decimal
from typing import Any, NoReturn

from django import forms
from django.utils.translation import gettext_lazy as _


def described(name: str, **attrs: Any) -> dict[str, Any]:
    """Attributes of a control whose help, and what is wrong with it, may change while it is filled in."""
    return {"aria-describedby": f"id_{name}_helptext id_{name}_error", **attrs}


class ShareField(forms.DecimalField):
    """A share between 0 and 1; "8 %" is 0.08, as the page itself says it."""

    def to_python(self, value: Any) -> Decimal | None:  # type: ignore[override]  # the stubs say int
        text = value.strip() if isinstance(value, str) else value
        if not isinstance(text, str) or not text.endswith("%"):
            return super().to_python(value)
        number = super().to_python(text.removesuffix("%").strip())
        return None if number is None else number.scaleb(-2)


def share_field(name: str, **options: Any) -> forms.DecimalField:
    return ShareField(
        max_digits=9,
        decimal_places=8,
        localize=False,
        widget=forms.TextInput(attrs=described(name, inputmode="decimal", autocomplete="off")),
        error_messages={"invalid": _("Write a number such as 0.05.")},
        **options,
    )


class ParametersField(forms.CharField):
    """Parameters as lines "name = value", or as a JSON object; the value is a mapping."""

    def __init__(self, name: str, **options: Any) -> None:
        widget = forms.Textarea(attrs=described(name, rows=2, spellcheck="false", autocomplete="off"))
        super().__init__(required=False, max_length=2_000, widget=widget, **options)

    def clean(self, value: Any) -> dict[str, Any]:
        text = super().clean(value)
        if text.startswith("{"):
            try:
                read = json.loads(text, parse_constant=_no_number)
            except (ValueError, RecursionError) as error:
                raise forms.ValidationError(
                    _("This is no JSON object: %(error)s"), params={"error": error}
                ) from None
            return dict(read)
        found: dict[str, Any] = {}
        for line in filter(None, map(str.strip, text.splitlines())):
            name, sign, given = (part.strip() for part in line.partition("="))
            if not sign or not name or not given:
                raise forms.ValidationError(_("Write one parameter on each line, as name = value."))
            if name in found:
                raise forms.ValidationError(_("%(name)s is given twice."), params={"name": name})
            found[name] = _value(given)
        return found


def _value(text: str) -> Any:
    """Numbers stay text where they have a point, so that they are read exactly."""
    try:
        return json.loads(text, parse_float=str, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")
