"""One's own tokens of the API: a list, making one, revoking one."""

from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.access import signed_in
from annotation.common.forms import add_error
from annotation.errors import InputError
from annotation.models import ApiToken, Membership, Project, User
from annotation.models.projects import LONG_COLUMNS
from annotation.people.tokens import MOST_TOKENS, make_token, revoke_token


class TokenForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("What it is for"),
        max_length=100,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    days = forms.IntegerField(
        label=gettext_lazy("For how many days"),
        min_value=1,
        help_text=gettext_lazy("Then it ends by itself. It also ends with your password."),
    )
    role = forms.ChoiceField(
        label=gettext_lazy("As"),
        required=False,
        choices=[("", gettext_lazy("what I am in each project")), *Membership.Role.choices],
        help_text=gettext_lazy("A role takes away what that role may not do; it adds nothing."),
    )
    project = forms.ModelChoiceField(
        label=gettext_lazy("For the project"),
        required=False,
        queryset=Project.objects.none(),
        empty_label=gettext_lazy("all of mine"),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        mine = Project.objects.filter(memberships__user=user, memberships__is_active=True)
        mine = mine.defer(*LONG_COLUMNS).order_by("name")
        self.fields["project"].queryset = mine  # type: ignore[attr-defined]
        self.fields["days"].initial = settings.HYPAC_TOKEN_DAYS
        self.fields["days"].widget.attrs["max"] = settings.HYPAC_TOKEN_MAX_DAYS


@signed_in("GET", "POST")
def tokens(request: HttpRequest) -> HttpResponseBase:
    """The token is in the answer to the form and nowhere else: no redirect, no message that is stored."""
    user = cast(User, request.user)
    form = TokenForm(request.POST or None, user=user)
    if request.method == "POST" and form.is_valid():
        try:
            token, secret = make_token(user=user, **form.cleaned_data)
        except InputError as error:
            add_error(form, error)
        else:
            response = render(request, "registration/token_made.html", {"token": token, "secret": secret})
            response.headers["Cache-Control"] = "no-store, private"
            return response
    mine = ApiToken.objects.filter(user=user).select_related("project")
    mine = mine.defer(*(f"project__{name}" for name in LONG_COLUMNS))[: 2 * MOST_TOKENS]
    return render(request, "registration/tokens.html", {"form": form, "tokens": mine, "now": timezone.now()})


@signed_in("POST")
def token_revoke(request: HttpRequest, token_id: int) -> HttpResponseBase:
    user = cast(User, request.user)
    token = ApiToken.objects.filter(user=user, pk=token_id).first()
    if token is None:
        raise Http404
    revoke_token(token=token, actor=user)
    messages.success(request, _("The token is revoked. Programs that used it have to log in by another one."))
    return redirect("tokens")


urlpatterns = [
    path("account/tokens/", tokens, name="tokens"),
    path("account/tokens/<row:token_id>/revoke/", token_revoke, name="token_revoke"),
]
