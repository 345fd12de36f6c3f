"""How errors are told: `application/problem+json` (RFC 9457) with a `code` that programs go by, and `faults`
where fields are at fault. A field inside another is named by its path: `choices[1].name`.

`field` and `errors` say less than `faults`; they are for programs that were written before it.
"""

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.urls import reverse
from rest_framework.exceptions import APIException, AuthenticationFailed, NotAuthenticated, ValidationError
from rest_framework.response import Response
from rest_framework.views import set_rollback

from annotation.common.api.allowed import what_is_allowed
from annotation.common.attempts import TooManyAttemptsError
from annotation.error_codes import ERROR_CODES, FAULT_CODES, code_of
from annotation.errors import ConflictError, HypacError, InputError, NotAllowedError

PROBLEM = "application/problem+json"
STATUS_OF_ERROR: dict[type[HypacError], int] = {
    ConflictError: 409,
    NotAllowedError: 403,
    TooManyAttemptsError: 429,
}
FAULT_OF = {"unknown_name": "unknown"}
# Names of keys that a client sent can be long; of each path so much is told.
MAX_PATH = 200


def problem(code: str, detail: str, **members: Any) -> dict[str, Any]:
    """The body of an answer that tells an error of this code (annotation.error_codes)."""
    known = ERROR_CODES[code]
    told = {
        "type": reverse("api_error", args=[code]),
        "code": code,
        "title": known.title,
        "status": known.status,
        "detail": detail,
        **members,
    }
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
    code: Any = ""
    members: dict[str, Any] = {}
    if isinstance(error, HypacError):
        known = (status for kind, status in STATUS_OF_ERROR.items() if isinstance(error, kind))
        status, detail, code = next(known, 400), error.message, error.code
        if status == 400 and code not in ERROR_CODES and not isinstance(error, InputError):
            code = "not_possible"
        if error.where:
            members = {"field": error.where, "faults": [_fault(error.path, FAULT_OF.get(code), detail)]}
    elif isinstance(error, Http404):
        status, detail = 404, "There is nothing here, or nothing that you may see."
    elif isinstance(error, PermissionDenied):
        status, detail = 403, str(error) or "You may not do this."
    elif isinstance(error, ValidationError):
        status = 400
        detail, members = _fields(error.detail)
    elif isinstance(error, APIException):
        status, code = error.status_code, error.get_codes()
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
    body = problem(code_of(code, status), detail, **members)
    return Response(body, status=status, headers=headers, content_type=PROBLEM)


def _fault(path: str, code: object, detail: str) -> dict[str, str]:
    """What is wrong with one field; a code that no program was told of is the general one."""
    return {
        "field": path,
        "code": code if isinstance(code, str) and code in FAULT_CODES else "invalid",
        "detail": detail,
    }


def _fields(detail: Any) -> tuple[str, dict[str, Any]]:
    """The messages of the first field at fault; that field, and all of them."""
    errors: dict[str, list[str]] = {}
    faults: list[dict[str, str]] = []
    for path, message in _flat(detail):
        errors.setdefault(path[:MAX_PATH], []).append(str(message))
        if path:
            faults.append(_fault(path[:MAX_PATH], getattr(message, "code", ""), str(message)))
    field, messages = next(iter(errors.items()), ("", ["The request cannot be used."]))
    named = {name: texts for name, texts in errors.items() if name}
    members = {"field": field, "errors": named} if field else {}
    return " ".join(messages), {**members, "faults": faults} if faults else members


def _flat(detail: Any, path: str = "") -> Iterator[tuple[str, object]]:
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
        yield path, detail
