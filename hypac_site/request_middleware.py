"""What is noted of every request: an id, where it comes from, how long it took."""

import logging
import re
import time
import uuid
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.encoding import escape_uri_path

from annotation.common.addresses import address_in
from annotation.common.log_context import bind
from hypac_site.logs import hidden
from hypac_site.metrics import web

log = logging.getLogger("hypac.requests")

HEADER = "X-Request-ID"
# Asked every few seconds by programs; a line for each would hide the others.
QUIET = {"/healthz", "/readyz", "/metrics"}
_SANE = re.compile(r"[A-Za-z0-9._-]{8,64}")


class RequestMiddleware:
    """Give each request an id, which its lines in the log and its answer carry; behind a proxy, the one that
    the proxy gave. Write a line about it where HYPAC_LOG_REQUESTS asks for one, and measure it for /metrics.

    Behind a proxy, REMOTE_ADDR becomes the address that the proxy saw: the last one in X-Forwarded-For, the
    only one that the asker cannot choose. Limits on log-in attempts and on links count by it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        number = uuid.uuid4().hex
        if settings.HYPAC_BEHIND_PROXY:
            given = request.headers.get(HEADER, "")
            number = given if _SANE.fullmatch(given) else number
            seen = request.headers.get("X-Forwarded-For", "").rsplit(",", 1)[-1]
            if found := address_in(seen):
                request.META["REMOTE_ADDR"] = found
        request.request_id = number  # type: ignore[attr-defined]
        began = time.perf_counter()
        with bind(request_id=number):
            response = self.get_response(request)
            seconds = time.perf_counter() - began
            web.observe(request, response, seconds)
            if settings.HYPAC_LOG_REQUESTS and request.path not in QUIET:
                _tell(request, response, seconds)
        response.headers[HEADER] = number
        return response


def _tell(request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
    """Without the query, which may hold what somebody searched for, and with the path as it was sent: the end
    of a line in it begins no line of the log.
    """
    user = getattr(
        request, "_cached_user", None
    )  # known only if somebody asked for it: no query for a log line
    known = {
        "method": request.method,
        "path": hidden(escape_uri_path(request.path)),
        "status": response.status_code,
        "milliseconds": round(seconds * 1000, 1),
        "user": user.pk if user is not None else None,
        "address": request.META.get("REMOTE_ADDR", ""),
    }
    line = "%(method)s %(path)s %(status)s in %(milliseconds)s ms"
    log.info(line, known, extra=known)
