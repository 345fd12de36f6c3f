"""What all views of the API have in common: who may, and how errors are told.

Errors are `application/problem+json` (RFC 9457): title, status, detail, and `field` where one is at fault.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar, cast

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework.exceptions import APIException, NotAuthenticated, NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView, set_rollback

from annotation.errors import ConflictError, HypacError, InputError, NotAllowedError
from annotation.models import User
from annotation.permissions import Access, access_to

PROBLEM = "application/problem+json"
MAX_NAMED = 10
STATUS_OF_ERROR: dict[type[HypacError], int] = {ConflictError: 409, NotAllowedError: 403}


class ApiView(APIView):
    """For everybody who is logged in; the view belongs to no project."""

    def get_exception_handler(self) -> Any:
        return problem_response

    def get_authenticate_header(self, request: Request) -> str:
        """With it, a request without a session is answered by 401; without it, by 403."""
        return 'Session realm="HyPAC"'

    def parsed(self, serializer_class: type[Serializer[Any]]) -> dict[str, Any]:
        """The request's body, checked. A field that nobody reads is most likely misspelled: refused."""
        serializer = serializer_class(data=self.request.data)
        _refuse_unknown(self.request.data, list(serializer.fields))
        serializer.is_valid(raise_exception=True)
        return cast(dict[str, Any], serializer.validated_data)


class KeysetPages(CursorPagination):
    """Pages by a column of whole numbers, so that new rows push nothing to another page."""

    page_size = 50

    def decode_cursor(self, request: Request) -> Cursor | None:
        """A cursor that somebody made up is answered by 404, as one that cannot be decoded."""
        cursor: Cursor | None = super().decode_cursor(request)
        if cursor is None or cursor.position is None:
            return cursor
        position = str(cursor.position)
        if not (position.isascii() and position.isdigit() and len(position) < 19):
            raise NotFound(self.invalid_cursor_message)
        return cursor


class ProjectView(ApiView):
    """For members of the project `slug` whose role has the action that `actions` names for the method.

    Somebody who is no member gets 404, as for a project that does not exist; a role that may not, 403.
    """

    actions: ClassVar[dict[str, str]] = {}
    access: Access

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        access = access_to(cast(User, request.user), kwargs["slug"])
        if access is None:
            raise Http404("There is no such project, or you are no member of it.")
        action = self.actions.get("GET" if request.method == "HEAD" else str(request.method))
        if action and access.closed(action):
            raise NotAllowedError(_("This project is archived: nothing in it can be changed."))
        if action and not access.allows(action):
            raise NotAllowedError(f"Your role in this project ({access.role}) may not do this.")
        self.access = access


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """The exception handler; None (a plain 500) for what is a bug."""
    headers = {}
    body: dict[str, Any] = {}
    if isinstance(error, HypacError):
        status = STATUS_OF_ERROR.get(type(error), 400)
        body["detail"] = error.message
        if error.where:
            body["field"] = error.where
    elif isinstance(error, Http404):
        status = 404
        body["detail"] = "There is nothing here, or nothing that you may see."
    elif isinstance(error, PermissionDenied):
        status = 403
        body["detail"] = str(error) or "You may not do this."
    elif isinstance(error, ValidationError):
        status = 400
        body |= _fields(error.detail)
    elif isinstance(error, APIException):
        status = error.status_code
        body["detail"] = str(error.detail)
        if isinstance(error, NotAuthenticated):
            headers["WWW-Authenticate"] = getattr(error, "auth_header", "")
    else:
        return None
    set_rollback()
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, **body}
    return Response(body, status=status, headers=headers, content_type=PROBLEM)


def _refuse_unknown(body: Any, known: list[str]) -> None:
    """Raise InputError where `body`, if it is an object at all, has fields that are not `known`."""
    unknown = [name for name in body if name not in known] if isinstance(body, Mapping) else []
    if unknown:
        named = ", ".join(repr(name[:40]) for name in unknown[:MAX_NAMED])
        more = len(unknown) - MAX_NAMED
        takes = f"the fields are {', '.join(known)}" if known else "it takes no field"
        raise InputError(
            f"Unknown {'field' if len(unknown) == 1 else 'fields'} {named}"
            f"{f' and {more} more' if more > 0 else ''}; {takes}. Nothing was done.",
            where=unknown[0][:40],
        )


def _fields(detail: Any) -> dict[str, Any]:
    """The first field at fault, and all of them."""
    if not isinstance(detail, dict):
        return {"detail": " ".join(map(str, detail))}
    errors = {field: [str(message) for message in messages] for field, messages in detail.items()}
    field, messages = next(iter(errors.items()))
    return {"detail": " ".join(messages), "field": field, "errors": errors}
