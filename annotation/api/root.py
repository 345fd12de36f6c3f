"""The addresses of the API that are about itself."""

from typing import Any, ClassVar

from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.base import ApiView
from annotation.api.problems import problem_response


class OnceGenerator(SchemaGenerator):
    """Describes the API once in each process and language: it takes a second or more, whoever asks."""

    _made: ClassVar[dict[tuple[str, bool], Any]] = {}

    def get_schema(self, request: Request | None = None, public: bool = False) -> Any:
        key = (get_language() or "", public)
        if key not in self._made:
            self._made[key] = super().get_schema(request=request, public=public)
        return self._made[key]


class Links(serializers.Serializer[Any]):
    projects = serializers.URLField()
    tokens = serializers.URLField()
    schema = serializers.URLField()
    docs = serializers.URLField()


class Root(ApiView):
    @extend_schema(responses=Links)
    def get(self, request: Request) -> Response:
        """Where to begin."""
        places = {
            "projects": "api_projects",
            "tokens": "api_tokens",
            "schema": "api_schema",
            "docs": "api_docs",
        }
        return Response({name: request.build_absolute_uri(reverse(to)) for name, to in places.items()})


class Schema(SpectacularAPIView):
    """OpenAPI 3 description of all of this; for everybody, as it holds no data."""

    permission_classes = [AllowAny]
    authentication_classes = []
    generator_class = OnceGenerator

    def get_exception_handler(self) -> Any:
        return problem_response


class NothingHere(ApiView):
    """What no other address below /api/v1/ matches; also for those who are not logged in."""

    permission_classes = [AllowAny]
    authentication_classes = []

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound(_("There is nothing at this address. Those of the API end with a slash."))

    @extend_schema(exclude=True)
    def get(self, request: Request, path: str) -> Response:
        raise NotFound

    post = put = patch = delete = get
