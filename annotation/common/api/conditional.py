"""What was answered before, and whether it is still so: ETag, If-None-Match and If-Match (RFC 9110, 13.1)."""

import hashlib
from typing import Any

from django.http import HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.http import parse_etags
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.errors import InputError

WRITES = ("POST", "PUT", "PATCH", "DELETE")


def created(content: Any, name: str, /, **parts: Any) -> Response:
    """201: something is there now, at the address of this name, which the header Location has."""
    return Response(content, status=201, headers={"Location": reverse(name, kwargs=parts)})


def answer_once(request: Any, response: HttpResponseBase) -> HttpResponseBase:
    """The answer to a GET with its ETag, that of its bytes where the view has named none; without its body
    where whoever asks has it already.

    What is sent as a stream comes as it is: of files annotation.common.downloads tells it.
    """
    if response.status_code != 200 or response.streaming:
        return response
    if isinstance(response, Response):
        response.render()
    if "ETag" not in response.headers:
        content = response.content  # type: ignore[attr-defined]
        response.headers["ETag"] = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    known = [tag.removeprefix("W/") for tag in parse_etags(request.headers.get("If-None-Match", ""))]
    if "*" not in known and response.headers["ETag"].removeprefix("W/") not in known:
        return response
    same = HttpResponseNotModified()
    for header, value in response.headers.items():
        if not header.startswith("Content-"):
            same.headers[header] = value
    return same


def refuse_unchecked(request: Request, *, checked: frozenset[str]) -> None:
    """Raise InputError for an If-Match with a method that does not compare it: whoever sent it wants nothing
    done where something has changed.
    """
    asked = request.headers.get("If-Match", "*").strip()
    if asked != "*" and request.method in WRITES and request.method not in checked:
        raise InputError(
            _("This request does not compare an If-Match. Nothing was done; leave the header out."),
            where="If-Match",
        )
