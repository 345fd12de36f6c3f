"""The images of items, for programs that show a token."""

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from annotation.common.api.base import ProjectView
from annotation.common.api.streams import AnyType
from annotation.errors import HypacError
from annotation.items.images_views import image_answer, status_of


class NotReadable(APIException):
    def __init__(self, error: HypacError) -> None:
        super().__init__(error.message)
        self.status_code = status_of(error)


class ItemImage(ProjectView):
    """For every role, as the page that people label on shows it."""

    actions = {"GET": "project.view"}
    content_negotiation_class = AnyType

    @extend_schema(
        responses={
            (200, "image/*"): OpenApiTypes.BINARY,
            (206, "image/*"): OpenApiTypes.BINARY,
            304: None,
            416: None,
        }
    )
    def get(self, request: Request, slug: str, sha256: str) -> HttpResponseBase:
        """The `image` of an item, as it was imported, or the range of it that is asked for; its ETag is its
        SHA-256.
        """
        try:
            return image_answer(request._request, self.access.project, sha256)
        except HypacError as error:
            raise NotReadable(error) from error
