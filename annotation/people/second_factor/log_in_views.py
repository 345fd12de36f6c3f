"""The second step of a log-in, and logging in by a passkey alone."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters

from annotation.common.access import public
from annotation.models import User
from annotation.people import attempt_limits
from annotation.people.attempt_limits import throttled
from annotation.people.log_in import PasswordBackend
from annotation.people.second_factor import change, codes, passkeys, steps
from annotation.people.second_factor.forms import CodeForm, CredentialForm
from annotation.people.sign_on_views import link

_STATE = "passkey_asked"  # in the session


@public("GET", "POST")
@throttled
@sensitive_post_parameters("code")
def second_step(request: HttpRequest) -> HttpResponseBase:
    """A code, a recovery code or a passkey of whoever knew the password a moment ago, or came by the provider
    to an account that has a second step.
    """
    user = steps.pending_user(request)
    if request.user.is_authenticated:
        return redirect("project_list")
    if user is None:
        messages.error(request, _("Log in with your password first."))
        return redirect("login")
    form, refused = CodeForm(request.POST if "code" in request.POST else None), ""
    if request.method == "POST":
        attempt_limits.count_second_step(request, user)
        if _lets_in(request, user, form):
            if steps.is_vouched_for(request):
                return link(request, user)
            return redirect(steps.finish(request, user))
        change.note_failure(user)
        refused = _("That does not let you in: it is wrong, too old, or was used before.")
        if form.is_valid():
            form.add_error("code", refused)
    shown: dict[str, Any] = {"form": form, "has_app": hasattr(user, "authenticator_app")}
    shown["provider"] = settings.HYPAC_OIDC_NAME if steps.is_vouched_for(request) else ""
    shown["problem"] = "" if form.is_bound else refused
    if user.passkeys.exists():
        shown["options"] = _asked(request, user)
    return render(request, "registration/second_factor/step.html", shown)


@public("GET", "POST")
@throttled
def passkey_log_in(request: HttpRequest) -> HttpResponseBase:
    """Whose passkey it is tells the passkey; nobody has to say a name, and none can be tried."""
    wanted = request.GET.get("next", "")
    if request.user.is_authenticated:
        return redirect(steps.after_log_in(wanted))
    problem = ""
    if request.method == "POST":
        attempt_limits.count(request)
        user = _holder(request)
        if isinstance(user, User):
            steps.log_in(request, user)
            return redirect(steps.after_log_in(wanted))
        problem = user
    shown = {"options": _asked(request, None), "problem": problem}
    return render(request, "registration/second_factor/passkey.html", shown)


def _lets_in(request: HttpRequest, user: User, form: CodeForm) -> bool:
    if "credential" in request.POST:
        passkey = _shown(request)
        return passkey is not None and passkey.user_id == user.pk
    by = codes.use_code(user, form.cleaned_data["code"]) if form.is_valid() else ""
    if by == codes.RECOVERY:
        change.note(user, "account.recovery_code_used", by=user)
        left = user.recovery_codes.count()
        messages.warning(
            request, _("That recovery code is used up. How many you still have: %(left)s.") % {"left": left}
        )
    return bool(by)


def _holder(request: HttpRequest) -> User | str:
    """Whom the passkey lets in; else why it does not."""
    passkey = _shown(request)
    user = PasswordBackend().get_user(passkey.user_id) if passkey else None
    if passkey is None or not isinstance(user, User):
        return _(
            "That passkey does not let you in. If this page was open for more than five minutes, try it "
            "once more."
        )
    if not passkeys.works_without_password(passkey):
        return _(
            "Somebody else made your account, and may have made this passkey. Log in with your password and "
            "use it as the second step; a passkey that you add then lets you in by itself."
        )
    return user


def _asked(request: HttpRequest, user: User | None) -> str:
    asked = passkeys.begin_authentication(request, user)
    request.session[_STATE] = asked.state
    return asked.options


def _shown(request: HttpRequest) -> Any:
    """The passkey that answered what was asked last; asked once, it is answered once."""
    state, form = request.session.pop(_STATE, None), CredentialForm(request.POST)
    if state is None or not form.is_valid():
        return None
    return passkeys.finish_authentication(request, state, form.cleaned_data["credential"])


urlpatterns = [
    path("login/second-step/", second_step, name="second_step"),
    path("login/passkey/", passkey_log_in, name="passkey_log_in"),
]
