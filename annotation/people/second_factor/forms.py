from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from annotation.models import User
from annotation.people import attempt_limits
from annotation.people.second_factor.passkeys import MOST_BYTES

_CODE = {"autocomplete": "one-time-code", "autocapitalize": "none", "spellcheck": "false"}


class PasswordForm(forms.Form):
    """Asks whoever is logged in for their password again: an open session may be found by somebody else."""

    password = forms.CharField(
        label=_("Your password"),
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, *args: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request, self.user = request, user

    def clean(self) -> dict[str, Any]:
        """The password comes last: it is not hashed where something else is missing."""
        data = super().clean() or {}
        if not self.errors:
            attempt_limits.count(self.request)
            if not self.user.check_password(data["password"]):
                self.add_error("password", _("That is not your password."))
        return data


class AppForm(PasswordForm):
    code = forms.CharField(
        label=_("Code that the app shows"),
        max_length=20,
        widget=forms.TextInput(attrs={**_CODE, "inputmode": "numeric"}),
    )
    field_order = ["code", "password"]


class PasskeyForm(PasswordForm):
    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        help_text=_("By which you tell it from others: “laptop”, “blue key”."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    field_order = ["name", "password"]


class CodeForm(forms.Form):
    code = forms.CharField(
        label=_("Code"), max_length=50, widget=forms.TextInput(attrs={**_CODE, "autofocus": True})
    )


class CredentialForm(forms.Form):
    """What a browser says of a passkey, written by a script."""

    credential = forms.CharField(max_length=MOST_BYTES, required=True)
