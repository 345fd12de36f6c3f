"""No request computes a slow loss."""

from collections.abc import Callable
from functools import cache

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from annotation.models import Project
from routing.common.computed_losses import losses_looked_up


class LossMiddleware:
    """Have slow losses looked up in every request, and computed in none."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with losses_looked_up(cache(lambda: _project_of(request))):
            return self.get_response(request)


def _project_of(request: HttpRequest) -> Project | None:
    """The project that the address names; None where it names none."""
    slug = request.resolver_match.kwargs.get("slug") if request.resolver_match else None
    return Project.objects.filter(slug=slug).first() if slug else None
