"""How errors are told: `application/problem+json` (RFC 9457) with title, status, detail, and `field` where
one is at fault. A field inside another is named by its path: `choices[1].name`.
"""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import serializers
from rest_framework.exceptions import APIException, AuthenticationFailed, NotAuthenticated, ValidationError
from rest_framework.response import Response
from rest_framework.views import set_rollback

from annotation.common.api.allowed import what_is_allowed
from annotation.common.attempts import TooManyAttemptsError
from annotation.errors import ConflictError, HypacError, NotAllowedError

PROBLEM = "application/problem+json"
STATUS_OF_ERROR: dict[type[HypacError], int] = {
    ConflictError: 409,
    NotAllowedError: 403,
    TooManyAttemptsError: 429,
}
# Names of keys that a client sent can be long; of each path so much is told.
MAX_PATH = 200


class Problem(serializers.Serializer[Any]):
    """What went wrong, after RFC 9457."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="What happened, where, and what to do.")
    field = serializers.CharField(required=False, help_text="The first field at fault, by its path.")
    request_id = serializers.CharField(
        required=False, help_text="Of an error of the server: the lines of its log about it have it, too."
    )
    errors = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="All fields at fault, by their paths, with what is wrong with each.",
    )


def problem(status: int, detail: str, **members: Any) -> dict[str, Any]:
    """The body of an answer that tells an error."""
    title = HTTPStatus(status).phrase
    told = {"type": "about:blank", "title": title, "status": status, "detail": detail, **members}
    return {name: _writable(member) for name, member in told.items()}


def _writable(member: Any) -> Any:
    """Without halves of characters, which a client can send in JSON, and which no answer can hold."""
    if isinstance(member, str):
        return member.encode("utf-8", "backslashreplace").decode()
    if isinstance(member, dict):
        return {_writable(name): _writable(value) for name, value in member.items()}
    return [_writable(value) for value in member] if isinstance(member, list) else member


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """The exception handler; None (a plain 500) for what is a bug."""
    headers: dict[str, str] = {}
    members: dict[str, Any] = {}
    if isinstance(error, HypacError):
        known = (code for kind, code in STATUS_OF_ERROR.items() if isinstance(error, kind))
        status, detail = next(known, 400), error.message
        if error.where:
            members["field"] = error.where
    elif isinstance(error, Http404):
        status, detail = 404, "There is nothing here, or nothing that you may see."
    elif isinstance(error, PermissionDenied):
        status, detail = 403, str(error) or "You may not do this."
    elif isinstance(error, ValidationError):
        status = 400
        detail, members = _fields(error.detail)
    elif isinstance(error, APIException):
        status = error.status_code
        detail = " ".join(filter(None, [str(error.detail), what_is_allowed(error, context)]))
        if isinstance(error, NotAuthenticated | AuthenticationFailed):
            if isinstance(error, NotAuthenticated):
                detail = "Nobody is logged in. Send a token (“Authorization: Token ...”), or log in."
            headers["WWW-Authenticate"] = getattr(error, "auth_header", "")
    else:
        return None
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(max(1, round(wait)))
    set_rollback()
    return Response(problem(status, detail, **members), status=status, headers=headers, content_type=PROBLEM)


def _fields(detail: Any) -> tuple[str, dict[str, Any]]:
    """The messages of the first field at fault; that field, and all of them."""
    errors: dict[str, list[str]] = {}
    for path, message in _flat(detail):
        errors.setdefault(path[:MAX_PATH], []).append(message)
    field, messages = next(iter(errors.items()), ("", ["The request cannot be used."]))
    named = {name: texts for name, texts in errors.items() if name}
    return " ".join(messages), {"field": field, "errors": named} if field else {}


def _flat(detail: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, message) of all that serializers found, however deep."""
    if isinstance(detail, dict):
        for key, inner in detail.items():
            if isinstance(key, int):  # the serializer of a list names the rows at fault by their number
                yield from _flat(inner, f"{path}[{key}]")
            elif key == "non_field_errors":
                yield from _flat(inner, path)
            else:
                yield from _flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(detail, list):
        for number, inner in enumerate(detail):
            nested = isinstance(inner, dict | list)
            yield from _flat(inner, f"{path}[{number}]" if nested else path)
    else:
        yield path, str(detail)
