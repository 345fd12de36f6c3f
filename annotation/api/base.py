"""What all views of the API have in common: who may, what they take, and how lists are given out.

Errors are `application/problem+json` (annotation.api.problems).
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from annotation.api.allowed import name_choices
from annotation.api.idempotency import Answered, Keyed, take_up
from annotation.api.problems import PROBLEM, problem_response
from annotation.api.schema import HypacSchema
from annotation.api.strict import other_types
from annotation.api.uploads import refuse_pieces
from annotation.errors import InputError, NotAllowedError
from annotation.models import ApiToken, User
from annotation.permissions import LEADERS, Access, access_to

__all__ = ["PROBLEM", "ApiView", "KeysetPages", "ProjectView"]

MAX_NAMED = 10


class ApiView(APIView):
    """For everybody who is logged in; the view belongs to no project."""

    # Which of annotation.api.limits counts here.
    limit = "user"
    # Methods for sessions alone, and those for which a token has to be one without a role and a project.
    by_session: ClassVar[frozenset[str]] = frozenset()
    by_whole_token: ClassVar[frozenset[str]] = frozenset()
    # Methods whose answer holds a secret: it is not kept for an Idempotency-Key.
    answers_secret: ClassVar[frozenset[str]] = frozenset()
    _keyed: Keyed | None = None

    @property
    def token(self) -> ApiToken | None:
        """The token that the program showed; None for a session."""
        return self.request.auth if isinstance(self.request.auth, ApiToken) else None

    def get_exception_handler(self) -> Any:
        return problem_response

    def get_authenticate_header(self, request: Request) -> str:
        """With it, a request of nobody known is answered by 401; without it, by 403."""
        return 'Token realm="HyPAC"'

    def perform_authentication(self, request: Request) -> None:
        """Also counts the request, before anything can be refused: whoever is not let in has a limit."""
        super().perform_authentication(request)
        super().check_throttles(request)

    def check_throttles(self, request: Request) -> None:
        """Done above."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self._look_at_token()
        self.admit(request, *args, **kwargs)
        # Only now: an unknown parameter is told to somebody who may ask at all.
        self._refuse_unknown_query()
        refuse_pieces(request)
        if hasattr(self, str(request.method).lower()):
            self._keyed = take_up(request)

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Stores the answer to a request that came with an Idempotency-Key."""
        try:
            response = super().dispatch(request, *args, **kwargs)
        except BaseException:
            if self._keyed:
                self._keyed.forget()
            raise
        if self._keyed:
            self._keyed.settle(response, secret=str(self.request.method) in self.answers_secret)
        return response

    def handle_exception(self, exc: Exception) -> Any:
        return exc.response if isinstance(exc, Answered) else super().handle_exception(exc)

    def admit(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise what keeps this person out."""

    def parsed(self, serializer_class: type[Serializer[Any]]) -> dict[str, Any]:
        """The request's body, checked. A field that nobody reads is most likely misspelled: refused."""
        serializer = serializer_class(data=self.request.data)
        _refuse_unknown(self.request.data, list(serializer.fields), "field")
        if wrong := other_types(serializer, self.request.data):
            raise serializers.ValidationError(wrong)
        name_choices(serializer)
        serializer.is_valid(raise_exception=True)
        return cast(dict[str, Any], serializer.validated_data)

    def query(self, serializer_class: type[Serializer[Any]]) -> dict[str, Any]:
        """The parameters of the address, checked like a body. Name the serializer in
        `@extend_schema(parameters=[...])` too.
        """
        sent = self.request.query_params
        fields = serializer_class().fields
        _refuse_unknown(sent, list(fields), "parameter")
        # A plain dictionary: what a form leaves out is "no", what an address leaves out is not said.
        data = {
            name: sent.getlist(name) if isinstance(fields[name], serializers.ListField) else sent[name]
            for name in sent
        }
        serializer = serializer_class(data=data)
        name_choices(serializer)
        serializer.is_valid(raise_exception=True)
        return cast(dict[str, Any], serializer.validated_data)

    def paged(
        self, pages: "KeysetPages", rows: QuerySet[Any, Any], content: Callable[[Any], dict[str, Any]]
    ) -> Response:
        """One page of `rows`; `annotation.api.schema` has the query and the serializer of such an answer."""
        page = pages.paginate_queryset(rows, self.request, view=self) or []
        return pages.get_paginated_response([content(row) for row in page])

    def _look_at_token(self) -> None:
        token, method = self.token, str(self.request.method)
        if token and method in self.by_session:
            raise NotAllowedError(_("Only somebody who is logged in at the site can do this, not a token."))
        if token and method in self.by_whole_token and (token.role or token.project_id):
            raise NotAllowedError(_("A token with a role or for one project cannot do this."))

    def _refuse_unknown_query(self) -> None:
        """Query parameters that the method's schema does not name, also where it reads none."""
        sent, method = self.request.query_params, str(self.request.method)
        schema = getattr(getattr(self, method.lower(), None), "kwargs", {}).get("schema")
        if sent and schema is not None:
            described = cast(HypacSchema, schema())
            described.view, described.method = self, method
            _refuse_unknown(sent, sorted(described.query_names()), "parameter")


class KeysetPages(CursorPagination):
    """Pages by a column of whole numbers, so that new rows push nothing to another page."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 1000

    def get_page_size(self, request: Request) -> int | None:
        """Also of lists that read no query of their own: what cannot be is refused, not passed over."""
        sent = request.query_params.get(self.page_size_query_param or "")
        if sent is not None and not (sent.isascii() and sent.isdigit() and 1 <= int(sent[:9]) <= 1000):
            raise InputError(_("A page has 1 to 1,000 rows."), where="page_size")
        return super().get_page_size(request)

    def decode_cursor(self, request: Request) -> Cursor | None:
        """A cursor that somebody made up is answered by 404, as one that cannot be decoded."""
        if request.query_params.get(self.cursor_query_param) == "":
            raise InputError(str(self.invalid_cursor_message), where="cursor")
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

    def admit(self, request: Request, *args: Any, **kwargs: Any) -> None:
        access = access_to(cast(User, request.user), kwargs["slug"], self.token)
        if access is None:
            raise Http404("There is no such project, or you are no member of it.")
        action = self.actions.get("GET" if request.method == "HEAD" else str(request.method))
        if action and access.closed(action):
            raise NotAllowedError(_("This project is archived: nothing in it can be changed."))
        if action and not access.allows(action):
            capped = f" with a token as {access.cap}" if access.cap else ""
            raise NotAllowedError(f"Your role in this project ({access.role}){capped} may not do this.")
        self.access = access

    def refuse_to_hand_on(self, *roles: str) -> None:
        """Raise NotAllowedError where one of these roles, before or after, is that of an owner or manager and
        asked by a token: whom it made could go on when it has ended, whom it sent away could not end it.
        """
        if self.token and (leading := [role for role in roles if role in LEADERS]):
            raise NotAllowedError(
                f"A token makes nobody {leading[0]} and takes that from nobody: it would outlast the token. "
                "Log in at the site for this."
            )


def _refuse_unknown(sent: Any, known: list[str], what: str) -> None:
    """Raise InputError where `sent`, if it is an object at all, has names that are not `known`."""
    unknown = [name for name in sent if name not in known] if isinstance(sent, Mapping) else []
    if unknown:
        named = ", ".join(repr(name[:40]) for name in unknown[:MAX_NAMED])
        more = len(unknown) - MAX_NAMED
        takes = f"the {what}s are {', '.join(known)}" if known else f"it takes no {what}"
        raise InputError(
            f"Unknown {what if len(unknown) == 1 else f'{what}s'} {named}"
            f"{f' and {more} more' if more > 0 else ''}; {takes}. Nothing was done.",
            where=unknown[0][:40],
        )
