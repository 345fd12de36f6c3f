"""Images of items, handed out as images and as nothing else."""

from datetime import UTC, datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.access import ProjectRequest, needs, public
from annotation.common.api.base import ProjectView
from annotation.common.api.conditional import created
from annotation.common.api.streams import AnyType
from annotation.common.downloads import download
from annotation.errors import HypacError
from annotation.items.image_links import LONGEST, USUAL, Link, link_of, signer
from annotation.models import Item, Project, StoredFile
from annotation.permissions import access_by

# What the importer accepts; whatever else a file may claim to be is not sent as that.
MEDIA_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"}


@needs("project.view", "GET")
def image(request: ProjectRequest, sha256: str) -> HttpResponseBase:
    try:
        return image_answer(request, request.access.project, sha256)
    except HypacError as error:
        return HttpResponse(
            f"{error.message}\n", status=status_of(error), content_type="text/plain; charset=utf-8"
        )


def stored_image(project: Project, sha256: str) -> StoredFile:
    """Raises Http404 where no item shows it."""
    stored = StoredFile.objects.filter(project=project, sha256=sha256).first()
    if (
        stored is None
        or stored.media_type not in MEDIA_TYPES
        or not Item.objects.filter(image=stored).exists()
    ):
        raise Http404("no such image in this project")
    return stored


def image_answer(request: HttpRequest, project: Project, sha256: str) -> HttpResponseBase:
    """The bytes, or a range of them. They never change under their hash, so whoever asked may keep them;
    shared caches may not. Raises Http404 where no item shows it, and what `open_file` raises.
    """
    stored = stored_image(project, sha256)
    name = f"{stored.sha256[:16]}.{stored.media_type.removeprefix('image/')}"
    response = download(request, stored, name=name, media_type=stored.media_type)
    for header, value in {
        "Cache-Control": "private, max-age=31536000, immutable",
        "Content-Disposition": f'inline; filename="{name}"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cross-Origin-Resource-Policy": "same-origin",
    }.items():
        response.headers[header] = value
    return response


@public("GET")
def linked_image(request: HttpRequest, name: str) -> HttpResponseBase:
    """The image of a signed address, for whoever has it. Only pages of other sites need such a one, so that
    they may show it; nobody keeps it for longer than it holds.
    """
    link = link_of(name)
    project = _project_of(link) if link else None
    if link is None or project is None:
        words = _("This address holds no longer, or is none of ours.")
        return HttpResponse(f"{words}\n", status=404, content_type="text/plain; charset=utf-8")
    try:
        response = image_answer(request, project, link.sha256)
    except HypacError as error:
        return HttpResponse(
            f"{error.message}\n", status=status_of(error), content_type="text/plain; charset=utf-8"
        )
    response.headers["Cache-Control"] = f"private, max-age={link.left}"
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


def _project_of(link: Link) -> Project | None:
    """None where whoever made the address may see the project's images no more, or not by that membership."""
    access = access_by(link.membership_id)
    if access is None or access.project.deleting_at is not None:
        return None
    return access.project if access.allows("project.view") else None


def status_of(error: HypacError) -> int:
    """Of a file that cannot be read: for good, or for now."""
    return 410 if error.permanent else 503


class NotReadable(APIException):
    def __init__(self, error: HypacError) -> None:
        self.status_code = status_of(error)
        super().__init__(error.message, "image_lost" if error.permanent else "unavailable")


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


class LinkFields(serializers.Serializer[Any]):
    seconds = serializers.IntegerField(
        required=False, default=USUAL, min_value=1, max_value=LONGEST, help_text="How long it holds."
    )


class LinkBody(serializers.Serializer[Any]):
    url = serializers.CharField(
        help_text="Whoever has it reads the image, without a token, as long as its maker may."
    )
    expires_at = serializers.DateTimeField()


class ItemImageLink(ProjectView):
    """For every role that reads the image itself."""

    actions = {"POST": "project.view"}

    @extend_schema(request=LinkFields, responses={201: LinkBody})
    def post(self, request: Request, slug: str, sha256: str) -> Response:
        """A signed address of the image, which needs no token and holds for a short time."""
        seconds = self.parsed(LinkFields)["seconds"]
        stored_image(self.access.project, sha256)
        name, until = signer(project=self.access.project, user=self.access.user, seconds=seconds)(sha256)
        url = request.build_absolute_uri(reverse("image_link", args=[name]))
        content = {"url": url, "expires_at": datetime.fromtimestamp(until, UTC)}
        return created(content, "image_link", name=name)
