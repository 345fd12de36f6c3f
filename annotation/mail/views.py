"""Confirming an address, asking for a new password, ending letters."""

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters

from annotation.common.access import PageRequest, public, signed_in
from annotation.common.forms import add_error
from annotation.common.mail import ask_to_confirm, is_on
from annotation.errors import ConflictError, InputError
from annotation.mail import wishes
from annotation.people import attempt_limits
from annotation.people.attempt_limits import throttled


class ConfirmForm(forms.Form):
    password = forms.CharField(
        label=gettext_lazy("Your password"),
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class ForgottenForm(forms.Form):
    named = forms.CharField(
        label=gettext_lazy("Username or e-mail"),
        max_length=254,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )


@signed_in("GET", "POST")
@sensitive_post_parameters("password")
def mail_confirm(request: PageRequest, token: str) -> HttpResponseBase:
    """Where the letter leads. Whoever found an open session lacks the password, and gets no further."""
    _only_with_mail()
    form = ConfirmForm(request.POST or None)
    if request.method == "POST":
        attempt_limits.count(request)
        if form.is_valid():
            try:
                wishes.confirm(user=request.user, token=token, password=form.cleaned_data["password"])
            except InputError as error:
                add_error(form, error)
            except ConflictError as error:
                messages.error(request, str(error))
                return redirect("account")
            else:
                messages.success(request, _("The address is confirmed."))
                return redirect("account")
    return render(request, "annotation/mail/confirm.html", {"form": form})


@signed_in("POST")
def mail_ask(request: PageRequest) -> HttpResponseBase:
    """Send the e-mail with the link once more."""
    _only_with_mail()
    ask_to_confirm(request.user)
    messages.success(request, _("An e-mail is on its way. Its link holds for three days."))
    return redirect("account")


@public("GET", "POST")
@throttled
def forgotten(request: HttpRequest) -> HttpResponseBase:
    _only_with_mail()
    form = ForgottenForm(request.POST or None)
    sent = False
    if request.method == "POST":
        attempt_limits.count(request)
        if form.is_valid():
            wishes.forgotten(form.cleaned_data["named"].strip())
            sent = True
    return render(request, "annotation/mail/forgotten.html", {"form": form, "sent": sent})


@csrf_exempt  # mail programs ask for it, without a page (RFC 8058); the token is the right
@public("GET", "POST")
@throttled
def mail_ends(request: HttpRequest, token: str) -> HttpResponseBase:
    """End letters of one kind, by a link in them and without logging in. Looking at it changes nothing."""
    found = wishes.person_and_wish(token)
    if found is None:
        raise Http404("no such link")
    ended = request.method == "POST"
    if ended:
        wishes.end_letters(*found)
    return render(request, "annotation/mail/ends.html", {"wish": found[1], "ended": ended})


def _only_with_mail() -> None:
    if not is_on():
        raise Http404("this server sends no mail")


urlpatterns = [
    path("account/mail/", mail_ask, name="mail_ask"),
    path("account/mail/<str:token>/", mail_confirm, name="mail_confirm"),
    path("mail/ends/<str:token>/", mail_ends, name="mail_ends"),
    path("forgotten/", forgotten, name="password_forgotten"),
]
