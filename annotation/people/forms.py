"""Forms about people: invitations, accounts, limits."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib.auth import forms as auth_forms
from django.contrib.auth.password_validation import password_validators_help_texts
from django.utils import timezone
from django.utils.translation import get_language_info, gettext_lazy as _

from annotation.common.mail import is_on
from annotation.models import Membership, User
from annotation.people.invitations import MAX_DAYS, MAX_USES
from annotation.people.members import LARGEST_LIMIT

if TYPE_CHECKING:  # generic for the type checker only
    _ModelForm = forms.ModelForm[User]
    _SetPasswordForm = auth_forms.SetPasswordForm[User]
    _PasswordChangeForm = auth_forms.PasswordChangeForm
else:
    _ModelForm = forms.ModelForm
    _SetPasswordForm = auth_forms.SetPasswordForm
    _PasswordChangeForm = auth_forms.PasswordChangeForm

_NO_CAPITALS = {"autocapitalize": "none", "spellcheck": "false"}


class InvitationForm(forms.Form):
    role = forms.ChoiceField(
        label=_("Role"), choices=Membership.Role.choices, initial=Membership.Role.ANNOTATOR
    )
    max_uses = forms.IntegerField(label=_("For how many people"), min_value=1, max_value=MAX_USES, initial=1)
    days = forms.IntegerField(label=_("For how many days"), min_value=1, max_value=MAX_DAYS, initial=7)
    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=200,
        help_text=_("For whom it is; seen by the owners only."),
    )
    email = forms.EmailField(
        label=_("Send it to"), required=False, help_text=_("The e-mail address of one person.")
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not is_on():
            del self.fields["email"]


class JoinForm(forms.Form):
    username = forms.CharField(
        label=_("Username"),
        max_length=150,
        widget=forms.TextInput(attrs={**_NO_CAPITALS, "autocomplete": "username"}),
        help_text=_("Letters, digits and @ . + - _. The others in the project see it beside your labels."),
    )
    email = forms.EmailField(
        label=_("E-mail"), required=False, widget=forms.EmailInput(attrs={"autocomplete": "email"})
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    again = forms.CharField(
        label=_("The password once more"),
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"].help_text = " ".join(map(str, password_validators_help_texts()))

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("password") and data.get("again") and data["password"] != data["again"]:
            self.add_error("again", _("The two passwords differ."))
        return data


class ResetPasswordForm(_SetPasswordForm):
    """What whoever made the account may know is not taken once more: from then on the password is its
    holder's own.
    """

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not self.errors and self.keeps_password():
            self.add_error("new_password1", _("This is the password that you have. Choose another one."))
        return data

    def keeps_password(self) -> bool:
        return self.user.check_password(self.cleaned_data["new_password1"])

    def save(self, commit: bool = True) -> User:
        self.user.password_chosen_at = timezone.now()
        if self.user.made_in is not None and not self.user.belonged_elsewhere:
            # Whoever made the account may have chosen the last password, and confirmed an address of theirs.
            self.user.email_confirmed_at = None
        return super().save(commit)


class ChangePasswordForm(ResetPasswordForm, _PasswordChangeForm):
    """With the old one, which tells without another hash whether the new one differs."""

    def keeps_password(self) -> bool:
        return bool(self.cleaned_data["new_password1"] == self.cleaned_data["old_password"])


class LimitsForm(forms.Form):
    max_labels = forms.IntegerField(
        label=_("Items in all"), required=False, min_value=0, max_value=LARGEST_LIMIT
    )
    max_per_day = forms.IntegerField(
        label=_("Items in a day"), required=False, min_value=0, max_value=LARGEST_LIMIT
    )


class AccountDetailsForm(_ModelForm):
    """What people say about themselves. The username stays: labels and the audit trail show it."""

    class Meta:
        model = User
        fields = [
            "first_name",
            "last_name",
            "email",
            "language",
            "single_key_shortcuts",
            "mail_notices",
            "mail_work",
        ]
        labels = {
            "first_name": _("First name"),
            "last_name": _("Last name"),
            "email": _("E-mail"),
            "single_key_shortcuts": _("Single keys give labels and commands"),
            "mail_notices": _("E-mails about runs and jobs of projects that I lead"),
            "mail_work": _("E-mails when there is work"),
        }
        help_texts = {
            "single_key_shortcuts": _(
                "On the page where items are labelled. Switch it off if keys are pressed by accident, or by "
                "speech input."
            )
        }

    language = forms.ChoiceField(label=_("Language of the pages"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Read now, not at import: tests and settings may change which languages there are.
        self.fields["language"].choices = [  # type: ignore[attr-defined]
            ("", _("As the browser asks for")),
            *(
                (code, get_language_info(code)["name_local"].capitalize())
                for code, _name in settings.LANGUAGES
            ),
        ]
        if not is_on():
            del self.fields["mail_notices"], self.fields["mail_work"]
        if self.instance.sign_on is not None:
            self.fields["email"].disabled = True
            self.fields["email"].help_text = _("From %(provider)s.") % {"provider": settings.HYPAC_OIDC_NAME}
        self.fields["first_name"].widget.attrs["autocomplete"] = "given-name"
        self.fields["last_name"].widget.attrs["autocomplete"] = "family-name"
        self.fields["email"].widget.attrs["autocomplete"] = "email"

    def wishes(self) -> list[forms.BoundField]:
        """Which letters are wanted, where the server sends any."""
        return [self[name] for name in ("mail_notices", "mail_work") if name in self.fields]

    def save(self, commit: bool = True) -> Any:
        """Nothing else of the row, which may have got a new password, or lost its sessions, meanwhile."""
        if "email" in self.changed_data:  # whoever it belongs to has not shown so yet
            self.instance.email_confirmed_at = None
        saved = super().save(commit=False)
        if commit:
            saved.save(update_fields=[*self.fields, "email_confirmed_at"])
        return saved


class MemberForm(forms.Form):
    username = forms.CharField(
        label=_("Username"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocapitalize": "none", "autocomplete": "off"}),
    )
    role = forms.ChoiceField(
        label=_("Role"), choices=Membership.Role.choices, initial=Membership.Role.ANNOTATOR
    )


class AccountForm(MemberForm):
    email = forms.EmailField(label=_("E-mail"), required=False)
    field_order = ["username", "email", "role"]


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=Membership.Role.choices)
