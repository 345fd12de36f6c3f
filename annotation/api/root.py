"""The addresses of the API that are about itself, and the pages that show it: Swagger UI, from files of this
server alone, and the codes of errors.
"""

from typing import Any, ClassVar

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import Resolver404, resolve, reverse
from django.utils.translation import get_language, gettext as _
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.access import public
from annotation.common.api.base import ApiView
from annotation.common.api.problems import problem_response
from annotation.error_codes import ERROR_CODES, FAULT_CODES, codes_by_status


class CachedSchemaGenerator(SchemaGenerator):
    """Describes the API once in each process and language: it takes a second or more, whoever asks."""

    _made: ClassVar[dict[tuple[str, bool], Any]] = {}

    def get_schema(self, request: Request | None = None, public: bool = False) -> Any:
        key = (get_language() or "", public)
        if key not in self._made:
            self._made[key] = super().get_schema(request=request, public=public)
        return self._made[key]


class Links(serializers.Serializer[Any]):
    me = serializers.URLField()
    projects = serializers.URLField()
    invitations = serializers.URLField()
    tokens = serializers.URLField()
    schema = serializers.URLField()
    docs = serializers.URLField()


class Root(ApiView):
    @extend_schema(responses=Links)
    def get(self, request: Request) -> Response:
        """Where to begin."""
        places = {
            "me": "api_me",
            "projects": "api_projects",
            "invitations": "api_own_invitations",
            "tokens": "api_tokens",
            "schema": "api_schema",
            "docs": "api_docs",
        }
        return Response({name: request.build_absolute_uri(reverse(to)) for name, to in places.items()})


class Schema(SpectacularAPIView):
    """OpenAPI 3 description of all of this; for everybody, as it holds no data."""

    permission_classes = [AllowAny]
    authentication_classes = []
    generator_class = CachedSchemaGenerator

    def get_exception_handler(self) -> Any:
        return problem_response


class NothingHere(ApiView):
    """What no other address for programs matches, by any method; also for those who are not logged in."""

    permission_classes = [AllowAny]
    authentication_classes = []

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        return super().perform_content_negotiation(request, force=True)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if meant := _with_or_without_slash(request.path_info):
            words = _("There is nothing at this address. Perhaps you mean %(address)s.")
            raise NotFound(words % {"address": meant}, code="no_such_address")
        if request.path_info.endswith("/"):
            words = _("There is nothing at this address. Those of the API are listed at %(address)s.")
            raise NotFound(words % {"address": reverse("api_docs")}, code="no_such_address")
        words = _("There is nothing at this address. Those of the API end with a slash.")
        raise NotFound(words, code="no_such_address")

    @extend_schema(exclude=True)
    def get(self, request: Request, path: str) -> Response:
        raise NotFound

    post = put = patch = delete = get


def _with_or_without_slash(path: str) -> str:
    """The address that differs by the slash at its end, where there is one. Nobody is sent there by a
    redirect: many programs then ask by GET, and without the body.
    """
    other = path.removesuffix("/") if path.endswith("/") else f"{path}/"
    try:
        found = resolve(other).func
    except Resolver404:
        return ""
    return "" if getattr(found, "cls", None) is NothingHere else other


@public("GET")
def api_docs(request: HttpRequest) -> HttpResponseBase:
    return render(request, "api_docs.html")


@public("GET")
def api_errors(request: HttpRequest, code: str = "") -> HttpResponseBase:
    """The code that a problem's `type` names; without one all of them."""
    if code and code not in ERROR_CODES:
        if "text/html" not in request.headers.get("Accept", ""):
            raise Http404
        return render(request, "api_errors.html", {"unknown": code}, status=404)
    if code:
        return render(request, "api_errors.html", {"asked": ERROR_CODES[code]})
    context = {"statuses": codes_by_status().items(), "faults": FAULT_CODES.items()}
    return render(request, "api_errors.html", context)
