"""One's own second step: app, passkeys, recovery codes. Each change asks for the password, and ends all other
sessions.
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, cast
from urllib.parse import urlsplit

import segno
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters

from annotation.common.access import signed_in
from annotation.common.forms import add_error
from annotation.errors import HypacError, InputError
from annotation.models import AuthenticatorApp, Passkey, User
from annotation.outside.secrets import decrypt, encrypt
from annotation.people import attempt_limits
from annotation.people.log_in import may_use_password
from annotation.people.second_factor import change, codes, passkeys
from annotation.people.second_factor.forms import AppForm, CredentialForm, PasskeyForm, PasswordForm
from annotation.people.second_factor.policy import has_second_factor, must_have_second_factor
from annotation.people.sessions import keep_current

SECONDS = 600
_SECRET, _PASSKEY = "authenticator_secret", "passkey_begun"


def _with_password(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """For accounts that log in by password here."""

    @wraps(view)
    @sensitive_post_parameters("password", "code")
    def checked(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        user = cast(User, request.user)
        if not may_use_password(user):
            messages.error(
                request,
                _("You log in by %(provider)s, which asks for a second step as it likes.")
                % {"provider": settings.HYPAC_OIDC_NAME},
            )
            return redirect("account")
        return view(request, user, **kwargs)

    return checked


@signed_in("GET")
@_with_password
def second_factor(request: HttpRequest, user: User) -> HttpResponseBase:
    """What there is, and what can be set up."""
    app = AuthenticatorApp.objects.filter(user=user).first()
    mine = list(user.passkeys.all())
    return render(
        request,
        "registration/second_factor/page.html",
        {
            "app": app,
            "passkeys": [(passkey, passkeys.works_without_password(passkey)) for passkey in mine],
            "is_on": bool(app or mine),
            "codes_left": user.recovery_codes.count(),
            "must": not (app or mine) and must_have_second_factor(user),
        },
    )


@signed_in("GET", "POST")
@_with_password
def app_set_up(request: HttpRequest, user: User) -> HttpResponseBase:
    """The secret is that of the page that was shown last; it counts once the app has shown a code of it."""
    if AuthenticatorApp.objects.filter(user=user).exists():
        return redirect("second_factor")
    secret = _secret_shown(request) if request.method == "POST" else ""
    form = AppForm(request.POST if secret else None, request=request, user=user)
    if secret and form.is_valid():
        try:
            made = change.set_up_app(user=user, secret=secret, code=form.cleaned_data["code"])
        except HypacError as error:
            add_error(form, error)
        else:
            del request.session[_SECRET]
            return _done(request, made, _("The authenticator app is set up."))
    if not secret:
        secret = codes.new_secret()
        request.session[_SECRET] = encrypt(secret)
    host = urlsplit(f"//{request.get_host()}").hostname
    square = segno.make(
        codes.provisioning_uri(secret, name=f"{user.username}@{host}"), error="l", micro=False
    )
    spaced = " ".join(secret[start : start + 4] for start in range(0, len(secret), 4))
    shown = {"form": form, "secret": spaced, "square": square.svg_data_uri(scale=5, border=3, light="#fff")}
    return _kept_nowhere(render(request, "registration/second_factor/app.html", shown))


@signed_in("GET", "POST")
@_with_password
def app_remove(request: HttpRequest, user: User) -> HttpResponseBase:
    if not AuthenticatorApp.objects.filter(user=user).exists():
        return redirect("second_factor")
    asked = {
        "title": _("Remove the authenticator app"),
        "words": _("Its codes let you in no more."),
        "button": _("Remove"),
        "danger": True,
    }
    form = PasswordForm(request.POST or None, request=request, user=user)
    if request.method == "POST" and form.is_valid():
        change.remove_app(user=user)
        return _done(request, [], _("The authenticator app is removed."))
    return render(request, "registration/second_factor/confirm.html", {"form": form, **asked})


@signed_in("GET", "POST")
@_with_password
def passkey_new(request: HttpRequest, user: User) -> HttpResponseBase:
    """Name and password; on the next page the browser makes the passkey."""
    form = PasskeyForm(request.POST or None, request=request, user=user)
    if request.method == "POST" and form.is_valid():
        try:
            change.check_room(user)
        except InputError as error:
            add_error(form, error)
        else:
            request.session[_PASSKEY] = {
                "name": form.cleaned_data["name"],
                "handle": passkeys.new_handle(user),
                "until": int(time.time()) + SECONDS,
            }
            return redirect("passkey_create")
    asked = {"title": _("Add a passkey"), "words": "", "button": _("Go on")}
    return render(request, "registration/second_factor/confirm.html", {"form": form, **asked})


@signed_in("GET", "POST")
@_with_password
def passkey_create(request: HttpRequest, user: User) -> HttpResponseBase:
    begun = request.session.get(_PASSKEY)
    if begun is None or begun["until"] < time.time():
        return redirect("passkey_new")
    problem = ""
    form = CredentialForm(request.POST)
    if request.method == "POST":
        attempt_limits.count(request)
        state = begun.pop("state", None)
        request.session.modified = True
        made = (
            state
            and form.is_valid()
            and passkeys.finish_registration(request, state, form.cleaned_data["credential"])
        )
        try:
            if not made:
                raise InputError(_("That did not succeed. Try it once more."))
            new = change.add_passkey(user=user, name=begun["name"], handle=begun["handle"], made=made)
        except HypacError as error:
            problem = error.message
        else:
            del request.session[_PASSKEY]
            return _done(request, new, _("The passkey “%(name)s” is added.") % {"name": begun["name"]})
    asked = passkeys.begin_registration(request, user, handle=begun["handle"])
    request.session[_PASSKEY] = {**begun, "state": asked.state}
    shown = {"name": begun["name"], "options": asked.options, "problem": problem}
    return render(request, "registration/second_factor/create.html", shown)


@signed_in("GET", "POST")
@_with_password
def passkey_remove(request: HttpRequest, user: User, passkey_id: int) -> HttpResponseBase:
    passkey = Passkey.objects.filter(user=user, pk=passkey_id).first()
    if passkey is None:
        raise Http404
    asked = {
        "title": _("Remove the passkey “%(name)s”") % {"name": passkey.name},
        "words": _("It lets you in no more. Remove it on your device, too: there it stays."),
        "button": _("Remove"),
        "danger": True,
    }
    form = PasswordForm(request.POST or None, request=request, user=user)
    if request.method == "POST" and form.is_valid():
        change.remove_passkey(user=user, passkey=passkey)
        return _done(request, [], _("The passkey “%(name)s” is removed.") % {"name": passkey.name})
    return render(request, "registration/second_factor/confirm.html", {"form": form, **asked})


@signed_in("GET", "POST")
@_with_password
def recovery_codes(request: HttpRequest, user: User) -> HttpResponseBase:
    if not has_second_factor(user):
        return redirect("second_factor")
    form = PasswordForm(request.POST or None, request=request, user=user)
    if request.method == "POST" and form.is_valid():
        made = change.new_recovery_codes(user=user)
        return _done(request, made, _("Your recovery codes are new. Those of before hold no more."))
    asked = {
        "title": _("New recovery codes"),
        "words": _("Those that you have hold no more from then on."),
        "button": _("Make new codes"),
    }
    return render(request, "registration/second_factor/confirm.html", {"form": form, **asked})


def _secret_shown(request: HttpRequest) -> str:
    """ "" where that was in another session, or under another key of the server."""
    try:
        return decrypt(request.session.get(_SECRET, ""))
    except InputError:
        return ""


def _done(request: HttpRequest, made: list[str], words: str) -> HttpResponseBase:
    """Codes are in the answer to the form and nowhere else: no redirect, no message that is stored."""
    keep_current(request, cast(User, request.user))
    words = f"{words} {_('Other devices have to log in again.')}"
    if made:
        shown = {"codes": made, "words": words}
        return _kept_nowhere(render(request, "registration/second_factor/codes.html", shown))
    messages.success(request, words)
    return redirect("second_factor")


def _kept_nowhere(response: HttpResponseBase) -> HttpResponseBase:
    response.headers["Cache-Control"] = "no-store, private"
    return response


urlpatterns = [
    path("account/second-step/", second_factor, name="second_factor"),
    path("account/second-step/app/", app_set_up, name="app_set_up"),
    path("account/second-step/app/remove/", app_remove, name="app_remove"),
    path("account/second-step/passkeys/new/", passkey_new, name="passkey_new"),
    path("account/second-step/passkeys/create/", passkey_create, name="passkey_create"),
    path("account/second-step/passkeys/<row:passkey_id>/remove/", passkey_remove, name="passkey_remove"),
    path("account/second-step/codes/", recovery_codes, name="recovery_codes"),
]
