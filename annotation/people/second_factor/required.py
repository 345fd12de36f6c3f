"""Whoever has to have a second step and has none is led to where it is set up, before anything else."""

from collections.abc import Callable
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from annotation.common.access import PageRequest
from annotation.common.api.problems import PROBLEM, problem
from annotation.models import User
from annotation.people.authentication import shows_token
from annotation.people.second_factor.policy import has_second_factor, must_have_second_factor

# Pages on which it is set up, and what has to go before it, or may always be done.
OPEN = {
    *("second_factor", "app_set_up", "passkey_new", "passkey_create", "recovery_codes"),
    *("app_remove", "passkey_remove", "password", "logout"),
}


class SecondFactorMiddleware:
    """For sessions; tokens of the API go on as they are, as their holder made them."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        if settings.HYPAC_REQUIRE_SECOND_FACTOR == "none" or not _is_asked(request, view):
            return None
        user = cast(User, request.user)
        if not must_have_second_factor(user) or has_second_factor(user):
            return None
        return _led(request, program=hasattr(view, "cls"))


def _is_asked(request: HttpRequest, view: Callable[..., Any]) -> bool:
    """Whether the view is one that a session opens."""
    if hasattr(view, "cls") and shows_token(request):
        return False
    match = request.resolver_match
    is_open = getattr(view, "needed_action", "") == "public" or (match and match.url_name in OPEN)
    return not is_open and request.user.is_authenticated


def _led(request: HttpRequest, *, program: bool) -> HttpResponse:
    if program:
        words = _("Set up a second step of your log-in first, on the page of your account.")
        return JsonResponse(problem("second_factor_first", words), status=403, content_type=PROBLEM)
    if cast(PageRequest, request).htmx:
        return HttpResponseClientRedirect(reverse("second_factor"))
    return redirect("second_factor")
