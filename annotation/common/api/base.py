"""What all views of the API have in common: who may, what they take, and how lists are given out.

Errors are `application/problem+json` (annotation.common.api.problems).
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate
from types import MappingProxyType
from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from django.http import Http404, QueryDict
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from annotation.common import limits
from annotation.common.api.allowed import bound_numbers, name_choices
from annotation.common.api.conditional import answer_once, refuse_unchecked
from annotation.common.api.cursors import make_cursor, read_cursor
from annotation.common.api.idempotency import Answered, Keyed, begin_idempotent
from annotation.common.api.problems import PROBLEM, problem_response
from annotation.common.api.schema import HypacSchema
from annotation.common.api.uploads import refuse_chunked
from annotation.errors import InputError, NotAllowedError
from annotation.models import ApiToken, User
from annotation.permissions import LEADERS, Access, access_to

__all__ = ["PROBLEM", "ApiView", "KeysetPages", "ProjectView"]

MAX_NAMED = 10


class ApiView(APIView):
    """For everybody who is logged in; the view belongs to no project."""

    # Which of annotation.common.api.throttling counts here.
    limit = "user"
    # Methods for sessions alone, and those for which a token has to be one without a role and a project.
    by_session: ClassVar[frozenset[str]] = frozenset()
    by_whole_token: ClassVar[frozenset[str]] = frozenset()
    # Methods whose answer holds a secret: it is not kept for an Idempotency-Key.
    answers_secret: ClassVar[frozenset[str]] = frozenset()
    # Methods that compare an If-Match with what is there; with others it is refused.
    compares: ClassVar[frozenset[str]] = frozenset()
    _keyed: Keyed | None = None
    # Filled in once the request was counted.
    rate_headers: Mapping[str, str] = MappingProxyType({})

    @property
    def token(self) -> ApiToken | None:
        """The token that the program showed; None for a session."""
        return self.request.auth if isinstance(self.request.auth, ApiToken) else None

    @property
    def method(self) -> str:
        """What is asked for, for all that may be allowed or not: HEAD is GET whose answer stays away."""
        return "GET" if self.request.method == "HEAD" else str(self.request.method)

    def get_exception_handler(self) -> Any:
        return problem_response

    def get_authenticate_header(self, request: Request) -> str:
        """With it, a request of nobody known is answered by 401; without it, by 403."""
        return 'Token realm="HyPAC", Bearer realm="HyPAC"'

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
        refuse_chunked(request)
        refuse_unchecked(request, checked=self.compares)
        if hasattr(self, str(request.method).lower()):
            self._keyed = begin_idempotent(request)

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Stores the answer to a request that came with an Idempotency-Key, and sends none that is known."""
        try:
            response = super().dispatch(request, *args, **kwargs)
        except BaseException:
            if self._keyed:
                self._keyed.forget()
            raise
        if self._keyed:
            self._keyed.settle(response, secret=str(self.request.method) in self.answers_secret)
        return answer_once(request, response) if self.method == "GET" else response

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        for name, value in self.rate_headers.items():
            response.headers[name] = value
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
        bound_numbers(serializer)
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
        bound_numbers(serializer)
        serializer.is_valid(raise_exception=True)
        return cast(dict[str, Any], serializer.validated_data)

    def paged(
        self, pages: "KeysetPages", rows: QuerySet[Any, Any], content: Callable[[Any], dict[str, Any]]
    ) -> Response:
        """One page of `rows`; `annotation.common.api.schema` has the query and the serializer of such an
        answer.
        """
        page = pages.paginate_queryset(rows, self.request, view=self) or []
        return pages.get_paginated_response([content(row) for row in page])

    def _look_at_token(self) -> None:
        token, method = self.token, self.method
        if token and method in self.by_session:
            raise NotAllowedError(
                _("Only somebody who is logged in at the site can do this, not a token."),
                code="session_needed",
            )
        if token and method in self.by_whole_token and token.is_limited:
            raise NotAllowedError(
                _("A token with a role or for one project cannot do this."), code="token_too_narrow"
            )

    def _refuse_unknown_query(self) -> None:
        """Query parameters that the method's schema does not name, also where it reads none."""
        sent, method = self.request.query_params, self.method
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
    # Columns with texts that may be long, by their paths: a page with more of them ends earlier.
    long: ClassVar[tuple[str, ...]] = ()

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any] | None:
        self._request = request
        if not self.long:
            return super().paginate_queryset(queryset, request, view=view)
        # How long they are is asked first: the texts of a thousand rows may be more than fits into memory.
        light = queryset.select_related(None).prefetch_related(None).only("pk", self._key)
        light = light.annotate(characters=limits.characters_of(self.long))
        page = self._end_earlier(super().paginate_queryset(light, request, view=view) or [])
        rows = queryset.in_bulk([row.pk for row in page])
        return [rows[row.pk] for row in page if row.pk in rows]

    @property
    def _key(self) -> str:
        return str(type(self).ordering).removeprefix("-")

    def _end_earlier(self, page: list[Any]) -> list[Any]:
        """Without what is too much; a page that is read backwards loses its first rows."""
        back = bool(self.cursor and self.cursor.reverse)
        rows = page[::-1] if back else page
        so_far = list(accumulate(row.characters for row in rows))
        kept = max(1, bisect_right(so_far, limits.PAGE_CHARACTERS))
        if kept >= len(rows):
            return page
        beyond = str(getattr(rows[kept], self._key))
        # What the addresses of the pages beside it are made from.
        self.page = rows[:kept][::-1] if back else rows[:kept]
        if back:
            self.has_previous, self.previous_position = True, beyond
        else:
            self.has_next, self.next_position = True, beyond
        return list(self.page)

    def get_page_size(self, request: Request) -> int | None:
        """Also of lists that read no query of their own: what cannot be is refused, not passed over."""
        sent = request.query_params.get(self.page_size_query_param or "")
        if sent is not None and not (sent.isascii() and sent.isdigit() and 1 <= int(sent[:9]) <= 1000):
            raise InputError(_("A page has 1 to 1,000 rows."), where="page_size")
        return super().get_page_size(request)

    def get_paginated_response(self, data: Any) -> Response:
        """The addresses of the pages beside it stand in the header Link, too (RFC 8288)."""
        response = super().get_paginated_response(data)
        beside = {"next": response.data["next"], "prev": response.data["previous"]}
        if links := [f'<{address}>; rel="{name}"' for name, address in beside.items() if address]:
            response.headers["Link"] = ", ".join(links)
        return response

    def encode_cursor(self, cursor: Cursor) -> str:
        place = make_cursor(self._request, list(cursor))
        return replace_query_param(str(self.base_url), self.cursor_query_param, place)

    def decode_cursor(self, request: Request) -> Cursor | None:
        place = read_cursor(request, self.cursor_query_param)
        return None if place is None else Cursor(*place)


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
        action = self.actions.get(self.method)
        if action and access.closed(action):
            raise NotAllowedError(
                _("This project is archived: nothing in it can be changed."), code="project_archived"
            )
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
                "Log in at the site for this.",
                code="session_needed",
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
            code="unknown_name",
        )


class NewestFirst(KeysetPages):
    ordering = "-id"


class OldestFirst(KeysetPages):
    ordering = "id"


class OldestItemsFirst(OldestFirst):
    """Of rows that each show their item."""

    long = ("item__text",)


def other_types(serializer: Any, data: Any) -> dict[str, Any]:
    """The messages by field, in the form of a serializer's own; nothing for a form, where all is text."""
    if not isinstance(data, Mapping) or isinstance(data, QueryDict):
        return {}
    found = {name: _wrong(field, data[name]) for name, field in serializer.fields.items() if name in data}
    return {name: wrong for name, wrong in found.items() if wrong}


def _wrong(field: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(field, serializers.Serializer):
        return other_types(field, value)
    if isinstance(field, serializers.ListSerializer | serializers.ListField) and isinstance(value, list):
        rows = {number: _wrong(field.child, row) for number, row in enumerate(value)}
        return {number: wrong for number, wrong in rows.items() if wrong}
    text = isinstance(field, serializers.CharField) and not isinstance(value, str)
    truth = isinstance(field, serializers.BooleanField) and not isinstance(value, bool)
    return [str(field.error_messages["invalid"])] if text or truth else None
