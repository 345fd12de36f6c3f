"""To the OpenID Connect provider, and back."""

import logging
import time
from datetime import timedelta
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from requests import RequestException

from annotation.common.access import public
from annotation.errors import HypacError
from annotation.models import User
from annotation.people import back_channel, sessions
from annotation.people.attempt_limits import LinkThrottle, throttled, with_retry_after
from annotation.people.log_in import SIGN_ON_BACKEND, has_sign_on
from annotation.people.second_factor import steps
from annotation.people.sign_on import (
    FAILURES,
    SecondStepFirstError,
    claims_of,
    log_failure,
    provider,
    sign_on,
)

log = logging.getLogger(__name__)

FAILED = "a log-in by the OpenID Connect provider failed"
# In the session.
NEXT, ID_TOKEN, SIGNED_ON_AT = "sign_on_next", "sign_on_id_token", "signed_on_at"


@public("GET")
@throttled
def sign_on_start(request: HttpRequest) -> HttpResponseBase:
    _only_with_sign_on()
    wanted = request.GET.get("next", "")
    # Addresses of this site only, and without a host.
    request.session[NEXT] = wanted if url_has_allowed_host_and_scheme(wanted, allowed_hosts=None) else ""
    try:
        return provider().authorize_redirect(request, address_here(request, "sign_on_done"))
    except FAILURES as error:
        log_failure("the OpenID Connect provider cannot be asked", error)
        return _does_not_answer(request)


@public("GET")
@throttled
def sign_on_done(request: HttpRequest) -> HttpResponseBase:
    """Where the provider sends people back to."""
    _only_with_sign_on()
    if request.GET.get("error") == "access_denied":
        return _refused(request, _("The log-in with %(name)s was cancelled."))
    wanted = request.session.pop(NEXT, "")
    try:
        claims, id_token = claims_of(request)
    except FAILURES as error:
        log_failure(FAILED, error)
        if isinstance(error, RequestException):
            return _does_not_answer(request)
        return _did_not_succeed(request)
    return _enter(request, claims, id_token, wanted)


def link(request: HttpRequest, user: User) -> HttpResponseBase:
    """Go on where a second step came first, which `user` has just shown."""
    kept = steps.pop_pending(request)
    return _enter(request, **kept["by_provider"], wanted=kept["next"], shown=user)


def _enter(
    request: HttpRequest, claims: dict[str, Any], id_token: str, wanted: str, *, shown: User | None = None
) -> HttpResponseBase:
    if sessions.has_ended(issuer=settings.HYPAC_OIDC_ISSUER, claims=claims):
        return _ended_there(request)
    try:
        user = sign_on(claims, shown=shown)
    except SecondStepFirstError as first:
        steps.begin(request, first.user, wanted, by_provider={"claims": claims, "id_token": id_token})
        return redirect("second_step")
    except HypacError as error:
        messages.error(request, error.message)
        return redirect("login")
    except FAILURES:  # claims that nobody thought of
        log.exception(FAILED)
        return _did_not_succeed(request)
    login(request, user, backend=SIGN_ON_BACKEND)
    request.session[ID_TOKEN] = id_token
    request.session[SIGNED_ON_AT] = int(time.time())
    ends_at = timezone.now() + timedelta(hours=settings.HYPAC_OIDC_SESSION_HOURS)
    request.session.set_expiry(ends_at)
    sessions.note_sign_on(request, user, sid=claims.get("sid"), ends_at=ends_at)
    if sessions.has_ended(issuer=settings.HYPAC_OIDC_ISSUER, claims=claims):  # in this very moment
        logout(request)
        return _ended_there(request)
    if shown is not None:
        words = _(
            "From now on you log in by %(name)s. The password and the two-step log-in of before are gone."
        )
        messages.success(request, words % {"name": settings.HYPAC_OIDC_NAME})
    return redirect(steps.after_log_in(wanted))


@csrf_exempt
@public("POST")
@sensitive_post_parameters("logout_token")
def sign_on_log_out(request: HttpRequest) -> HttpResponseBase:
    """What the provider sends where a log-in there is over. What does not hold gets one answer, whyever."""
    _only_with_sign_on()
    throttle = _LogOutThrottle()
    if not throttle.allow_request(cast(Any, request), cast(Any, None)):
        return with_retry_after(_log_out_refused(), int(throttle.wait() or 60))
    try:
        back_channel.log_out(_logout_token(request))
    except back_channel.RefusedError as error:
        log.warning("A logout token was refused: %s", error)
        return _log_out_refused()
    return HttpResponse(headers={"Cache-Control": "no-store"})


class _LogOutThrottle(LinkThrottle):
    """A provider may end all its sessions at once."""

    scope = "sign-on-log-out"
    rate = "1200/min"


def _logout_token(request: HttpRequest) -> str:
    """Nothing is read of a request that is too large, or that does not say how large it is."""
    length = request.META.get("CONTENT_LENGTH") or ""
    if not (length.isascii() and length.isdigit() and len(length) < 10):
        raise back_channel.RefusedError("a body of unknown length")
    if int(length) > back_channel.MOST_BYTES or request.content_type != "application/x-www-form-urlencoded":
        raise back_channel.RefusedError("too large a body, or not a form")
    sent = request.POST.getlist("logout_token")
    if len(sent) != 1:
        raise back_channel.RefusedError("not one logout_token")
    return sent[0]


def _log_out_refused() -> JsonResponse:
    return JsonResponse({"error": "invalid_request"}, status=400, headers={"Cache-Control": "no-store"})


def address_here(request: HttpRequest, name: str) -> str:
    """As the provider knows it: by the address of this site, if that is set."""
    path = reverse(name)
    return f"{settings.HYPAC_ADDRESS}{path}" if settings.HYPAC_ADDRESS else request.build_absolute_uri(path)


def _only_with_sign_on() -> None:
    if not has_sign_on():
        raise Http404("no OpenID Connect provider is set")


def _does_not_answer(request: HttpRequest) -> HttpResponseBase:
    return _refused(request, _("%(name)s does not answer at the moment. Try again in a while."))


def _ended_there(request: HttpRequest) -> HttpResponseBase:
    return _refused(request, _("You were logged out at %(name)s meanwhile. Log in once more."))


def _did_not_succeed(request: HttpRequest) -> HttpResponseBase:
    return _refused(request, _("The log-in with %(name)s did not succeed. Try it once more."))


def _refused(request: HttpRequest, sentence: str) -> HttpResponseBase:
    messages.error(request, sentence % {"name": settings.HYPAC_OIDC_NAME})
    return redirect("login")
