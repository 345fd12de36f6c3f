"""What is refused before it is read, what took too long, how long answers are kept, and the reader's language
and time zone.
"""

import logging
import zoneinfo
from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist, SuspiciousOperation
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from annotation.common.api.problems import PROBLEM, problem
from annotation.models import Project
from annotation.people.authentication import shows_token
from annotation.task_types import outline_budget
from hypac_site.errors import asks_a_program, bad_request, page_not_found
from hypac_site.statement_limit import gave_way, was_ended

log = logging.getLogger("hypac.requests")

# What a form adds to the file that it carries: boundaries, names, the other fields.
AROUND_A_FILE = 1024**2
# Set by static/site.js: the reader's time zone by its name in the tz database, such as Europe/Berlin.
ZONE_COOKIE = "time_zone"
# Nothing on the way, and no browser's disk.
KEEP_NOTHING = "private, no-store"


def largest_body() -> int:
    """Bytes of the largest request that any page takes."""
    return int(settings.HYPAC_MAX_UPLOAD_BYTES) + AROUND_A_FILE


class BodyLimitMiddleware:
    """Answer 413 to a body that is too large by its own Content-Length, before any part of Django reads it.

    It has to stand before the check of the form's token, which reads the whole form. Only views marked with
    `takes_files` get large bodies, and only from somebody who is logged in.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        length = request.META.get("CONTENT_LENGTH") or "0"
        # So many digits as any size has: of more than 4,300 Python makes no number.
        size = int(length[:20]) if length.isascii() and length.isdigit() else 0
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0
        if size <= limit:
            return None
        of_the_api = getattr(view, "cls", None)
        takes_files = getattr(view, "takes_files", False) or getattr(of_the_api, "takes_files", False)
        # A view of the API looks at the token before it reads the body.
        known = request.user.is_authenticated or (of_the_api is not None and shows_token(request))
        if takes_files and known:
            limit = largest_body()
        # One that is read into memory; such a view, too, looks first at who asks.
        limit = max(limit, getattr(of_the_api, "most_bytes", 0))
        if size <= limit:
            return None
        if of_the_api is not None:
            words = _("One request may have at most %(limit)s bytes.") % {"limit": f"{limit:,}"}
            return JsonResponse(problem("too_large", words), status=413, content_type=PROBLEM)
        return render(request, "413.html", {"limit": limit}, status=413)


class KeptAnswersMiddleware:
    """Have no answer kept that does not say itself how long: errors and redirections are of one person, too.
    Pages and files say it in their views (annotation.common.access), static files in WhiteNoise.

    It stands before all that may answer.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if asks_a_program(request):
            response.headers["Cache-Control"] = KEEP_NOTHING
        else:
            response.headers.setdefault("Cache-Control", KEEP_NOTHING)
        return response


class NulMiddleware:
    """At an address with the character NUL is nothing, and a query with it is refused: no row has it, and
    PostgreSQL does not even look for it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "\0" in request.path_info:
            raise Http404
        if "%00" in request.META.get("QUERY_STRING", ""):
            return bad_request(request, SuspiciousOperation())
        return self.get_response(request)


class StatementLimitMiddleware:
    """Say in words that a statement was ended, or gave way: 503, which may go better a little later."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if was_ended(error):
            line = "A statement of %s took too long and was ended."
            log.warning(line, request.resolver_match, exc_info=error)
            words = _("The database took too long and was stopped. Ask for less, or try again later.")
            return _unavailable(request, words, code="database_too_slow", seconds=30)
        if gave_way(error):
            log.warning("%s gave way to others at the same rows.", request.resolver_match, exc_info=error)
            words = _("Others changed the same at the same moment, and this was not stored. Send it again.")
            return _unavailable(request, words, code="database_busy", seconds=1)
        return None


class GoneMiddleware:
    """Answer 404 where somebody else removed a row that the address names, or the whole project, between the
    moment at which a view found it and that at which it was used. The trace stays in the log. Any other row
    that is missing is a fault.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, ObjectDoesNotExist | IntegrityError) or request.resolver_match is None:
            return None
        named = request.resolver_match.kwargs
        # What a row that is there lacks is an AttributeError as well.
        row = named.keys() - {"slug"} and not isinstance(error, AttributeError | IntegrityError)
        if not row and not ("slug" in named and _is_deleted(named["slug"])):
            return None
        log.warning("%s looked for a row that is gone.", request.resolver_match, exc_info=error)
        return page_not_found(request, error)


def _is_deleted(slug: str) -> bool:
    return not Project.objects.filter(slug=slug, deleting_at__isnull=True).exists()


def _unavailable(request: HttpRequest, words: str, *, code: str, seconds: int) -> HttpResponse:
    headers = {"Retry-After": str(seconds), "Cache-Control": KEEP_NOTHING}
    if asks_a_program(request):
        return JsonResponse(problem(code, words), status=503, headers=headers, content_type=PROBLEM)
    # Without the request: a page that asks the database for anything might fail as well.
    page = render_to_string("503.html", {"busy": code == "database_busy"})
    return HttpResponse(page, status=503, headers=headers)


class OutlineMiddleware:
    """Bound what one request can have read of masks (annotation.task_types.outline_budget)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with outline_budget.bounded(outline_budget.MOST_AT_ONCE):
            return self.get_response(request)


class ReaderMiddleware:
    """Answer in the language and the time zone of the reader.

    The language is the one on the person's account; without one, what the browser asks for, which Django's
    LocaleMiddleware has found before. The zone is the browser's, or TIME_ZONE where it has told none.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        language = _language_of(request)
        with translation.override(language), timezone.override(_zone_of(request)):
            request.LANGUAGE_CODE = language
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", language)
        return response


def _language_of(request: HttpRequest) -> str:
    chosen = request.user.language if request.user.is_authenticated else ""
    return chosen if chosen in dict(settings.LANGUAGES) else translation.get_language()


def _zone_of(request: HttpRequest) -> zoneinfo.ZoneInfo | None:
    """None, the server's own, for anything but the name of a zone: a name becomes the path of a file."""
    name = request.COOKIES.get(ZONE_COOKIE, "")
    return zoneinfo.ZoneInfo(name) if name in _zones() else None


@cache
def _zones() -> set[str]:
    return zoneinfo.available_timezones()
