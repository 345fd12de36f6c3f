"""To the OpenID Connect provider, and back."""

import logging
from datetime import timedelta

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from annotation.common.access import public
from annotation.errors import HypacError
from annotation.people.attempt_limits import throttled
from annotation.people.log_in import SIGN_ON_BACKEND, has_sign_on
from annotation.people.sign_on import FAILURES, claims_of, provider, sign_on

log = logging.getLogger(__name__)

NEXT, ID_TOKEN = "sign_on_next", "sign_on_id_token"  # in the session


@public("GET")
@throttled
def sign_on_start(request: HttpRequest) -> HttpResponseBase:
    _only_with_sign_on()
    wanted = request.GET.get("next", "")
    # Addresses of this site only, and without a host.
    request.session[NEXT] = wanted if url_has_allowed_host_and_scheme(wanted, allowed_hosts=None) else ""
    try:
        return provider().authorize_redirect(request, address_here(request, "sign_on_done"))
    except FAILURES:
        log.exception("the OpenID Connect provider cannot be asked")
        return _refused(request, _("%(name)s does not answer at the moment. Try again in a while."))


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
    except FAILURES:
        log.warning("a log-in by the OpenID Connect provider failed", exc_info=True)
        return _refused(request, _("The log-in with %(name)s did not succeed. Try it once more."))
    try:
        user = sign_on(claims)
    except HypacError as error:
        messages.error(request, error.message)
        return redirect("login")
    login(request, user, backend=SIGN_ON_BACKEND)
    request.session[ID_TOKEN] = id_token
    request.session.set_expiry(timezone.now() + timedelta(hours=settings.HYPAC_OIDC_SESSION_HOURS))
    return redirect(wanted or "project_list")


def address_here(request: HttpRequest, name: str) -> str:
    """As the provider knows it: by the address of this site, if that is set."""
    path = reverse(name)
    return f"{settings.HYPAC_ADDRESS}{path}" if settings.HYPAC_ADDRESS else request.build_absolute_uri(path)


def _only_with_sign_on() -> None:
    if not has_sign_on():
        raise Http404("no OpenID Connect provider is set")


def _refused(request: HttpRequest, sentence: str) -> HttpResponseBase:
    messages.error(request, sentence % {"name": settings.HYPAC_OIDC_NAME})
    return redirect("login")
