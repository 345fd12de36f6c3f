"""What answers where no view does: pages for people, problems for programs, each with the same status.

Views of the API tell their own errors (annotation.common.api.problems); what is here comes before them, or is
a bug.
"""

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views import defaults

from annotation.common.api.problems import PROBLEM, problem
from annotation.models import User
from annotation.permissions import access_to

# Below these, programs ask: they are told problems, and nothing on the way keeps what they are told.
PREFIXES = ("/api/", "/label-studio/", "/metrics")


def asks_a_program(request: HttpRequest) -> bool:
    """Judged without where the site is mounted."""
    return request.path_info.startswith(PREFIXES)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not asks_a_program(request):
        return defaults.bad_request(request, exception)
    if isinstance(exception, DisallowedHost):
        return _told("bad_request", _("The header Host names another site than this one."))
    return _told("bad_request", _("This request cannot be read: look at its address and its headers."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not asks_a_program(request):
        return defaults.permission_denied(request, exception)
    return _told("permission_denied", _("You may not do this."))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not asks_a_program(request):
        _in_its_project(request)
        return defaults.page_not_found(request, exception)
    return _told("not_found", _("There is nothing here, or nothing that you may see."))


def _in_its_project(request: HttpRequest) -> None:
    """Show a wrong address below a project within the project, to its members; to all others it says no more
    than any wrong address.
    """
    parts = request.path_info.split("/")
    user = getattr(request, "user", None)
    if (
        parts[1:2] == ["projects"]
        and len(parts) > 3
        and isinstance(user, User)
        and not hasattr(request, "access")
    ):
        request.access = access_to(user, parts[2])  # type: ignore[attr-defined]


def server_error(request: HttpRequest) -> HttpResponse:
    """A bug: its line in the log has the same id."""
    if not asks_a_program(request):
        return defaults.server_error(request)
    words = _("An error of the server. Look whether what you asked for was done; its log has the request_id.")
    return _told("server_error", words, request_id=getattr(request, "request_id", ""))


def _told(code: str, detail: str, **members: str) -> HttpResponse:
    body = problem(code, detail, **members)
    return JsonResponse(body, status=body["status"], content_type=PROBLEM)
