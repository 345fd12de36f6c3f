"""Fields of the forms of runs: shares, parameters, and what their controls say of help and faults."""

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NoReturn

from django import forms
from django.utils.translation import gettext_lazy as _

from routing.core.exact import plain


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


class PercentField(forms.DecimalField):
    """A share that is typed in percent: "5", "5 %" and "5,0" are 0.05. A bare number below 1 could be meant
    as a share, and is asked about.
    """

    def to_python(self, value: Any) -> Decimal | None:  # type: ignore[override]  # the stubs say int
        text = str(value).strip() if value is not None else ""
        signed = text.endswith("%")
        written = text.removesuffix("%").strip()
        if "." not in written and written.count(",") == 1:
            written = written.replace(",", ".")
        number = super().to_python(written)
        if number is None and not signed:
            return None
        if number is None or not number.is_finite():
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        if not signed and 0 < number < 1:
            raise forms.ValidationError(
                _("Do you mean %(percent)s %% or %(share)s %%? Write it with the sign: “%(percent)s %%”."),
                code="unclear",
                params={"percent": plain(number), "share": plain(number.scaleb(2))},
            )
        if not 0 < number < 100:
            raise forms.ValidationError(_("Write a percentage above 0 and below 100."), code="range")
        return number.scaleb(-2)

    def prepare_value(self, value: Any) -> Any:
        """In percent, beside a sign that stands there already: only below 1 it is kept."""
        if isinstance(value, Decimal):
            value = typed_percent(value)
        if not isinstance(value, str) or not value.strip().endswith("%"):
            return value
        bare = value.strip().removesuffix("%").strip()
        return value if bare.startswith(("0", ".", ",")) else bare


def typed_percent(share: Decimal) -> str:
    """As somebody would type it: 0.05 is "5 %"."""
    return f"{plain(share.scaleb(2))} %"


def percent_field(name: str, **options: Any) -> forms.DecimalField:
    return PercentField(
        max_digits=9,
        decimal_places=8,
        localize=False,
        widget=forms.TextInput(attrs=described(name, inputmode="decimal", autocomplete="off")),
        error_messages={"invalid": _("Write a percentage such as 5 or 0.5 %.")},
        **options,
    )


_PARAMETER = re.compile(r"([^=:]*[^=:\s])\s*[=:]\s*(\S.*)")


class ParametersField(forms.CharField):
    """Parameters as lines "name = value" or "name: value", or a JSON object; the value is a mapping."""

    def __init__(self, name: str, **options: Any) -> None:
        widget = forms.Textarea(attrs=described(name, rows=2, spellcheck="false", autocomplete="off"))
        super().__init__(required=False, max_length=2_000, widget=widget, **options)

    def prepare_value(self, value: Any) -> Any:
        return lines_of_parameters(value) if isinstance(value, Mapping) else value

    def clean(self, value: Any) -> dict[str, Any]:
        text = super().clean(lines_of_parameters(value) if isinstance(value, Mapping) else value)
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
            written = _PARAMETER.fullmatch(line)
            if written is None:
                raise forms.ValidationError(_("Write one parameter on each line, as name = value."))
            name, given = written.groups()
            if name in found:
                raise forms.ValidationError(_("%(name)s is given twice."), params={"name": name})
            found[name] = _value(given)
        return found


def lines_of_parameters(params: Mapping[str, Any]) -> str:
    """Parameters as they are typed: lines where all are plain, else JSON."""
    if any(isinstance(value, dict | list) for value in params.values()):
        return json.dumps(params, ensure_ascii=False)
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in params.items())


def _value(text: str) -> Any:
    """Numbers stay text where they have a point, so that they are read exactly."""
    try:
        return json.loads(text, parse_float=str, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")
