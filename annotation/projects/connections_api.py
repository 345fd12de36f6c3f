"""Buckets of S3-compatible stores, and data sets of the Hugging Face Hub, that a project takes files from and
delivers to.
"""

from typing import Any

from django.http import Http404
from django.urls import path
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.common.api.conditional import created
from annotation.common.api.schema import Nothing, list_of
from annotation.imports.fetching import fetch
from annotation.jobs.serializers import JobBody, accepted
from annotation.models import Connection
from annotation.outside import connections

VIEW, EDIT = "connections.view", "connections.edit"
SHOWN = (
    *("id", "name", "kind", "endpoint", "bucket", "prefix", "region", "path_style", "access_key"),
    "created_at",
)
NEEDED = {Connection.Kind.S3: ("endpoint", "access_key", "secret"), Connection.Kind.HUB: ()}


class ConnectionFields(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    endpoint = serializers.CharField(
        required=False, max_length=500, help_text="Address of the store, without a path. Of a bucket."
    )
    bucket = serializers.CharField(max_length=200, help_text="Its name; that of a data set is owner/name.")
    prefix = serializers.CharField(
        required=False, allow_blank=True, max_length=490, help_text="Folder that all keys lie in."
    )
    region = serializers.CharField(
        required=False,
        max_length=60,
        help_text="us-east-1 where none is given. Of a data set its branch: main where none is given.",
    )
    path_style = serializers.BooleanField(
        required=False, help_text="The bucket in the path of addresses (the default), not in their host."
    )
    access_key = serializers.CharField(required=False, max_length=200, help_text="Of a bucket.")
    secret = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="It is stored encrypted and never shown. Of a data set a token, if it needs one; empty for "
        "none.",
    )


class NewConnection(ConnectionFields):
    """A bucket needs an endpoint, an access key and a secret."""

    kind = serializers.ChoiceField(
        required=False, choices=Connection.Kind.choices, default=Connection.Kind.S3
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        words = [_("This field is required.")]
        missing = {name: words for name in NEEDED[attrs["kind"]] if name not in attrs}
        if missing:
            raise serializers.ValidationError(missing, code="required")
        return attrs


class ConnectionChanges(ConnectionFields):
    """What is left out stays; a new endpoint needs the secret again."""

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for field in fields.values():
            field.required = False
        return fields


class ConnectionBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=Connection.Kind.choices)
    endpoint = serializers.CharField(allow_blank=True)
    bucket = serializers.CharField()
    prefix = serializers.CharField(allow_blank=True)
    region = serializers.CharField()
    path_style = serializers.BooleanField()
    access_key = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class Tried(serializers.Serializer[Any]):
    objects = serializers.IntegerField(help_text="Objects seen in the folder: 0, or 1 for some.")


class Folder(serializers.Serializer[Any]):
    folder = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=490, help_text="In that of the connection."
    )


class ObjectBody(serializers.Serializer[Any]):
    key = serializers.CharField(help_text="Below the connection's folder.")
    size = serializers.IntegerField(help_text="Bytes.")


class ListingBody(serializers.Serializer[Any]):
    results = ObjectBody(many=True)
    more = serializers.BooleanField(help_text="Whether there are more than these.")


class Fetch(serializers.Serializer[Any]):
    key = serializers.CharField(
        max_length=1024,
        allow_blank=True,
        trim_whitespace=False,
        help_text="Below the connection's folder; one that ends with / means all objects below it, as a zip.",
    )


class ConnectionView(ProjectView):
    """One connection by its id."""

    actions = {"GET": VIEW, "POST": EDIT, "PATCH": EDIT, "DELETE": EDIT}

    def find(self, connection_id: int) -> Connection:
        found = self.access.project.connections.select_related("project").filter(pk=connection_id).first()
        if found is None:
            raise Http404
        return found


class ConnectionList(ConnectionView):
    @extend_schema(responses=list_of(ConnectionBody))
    def get(self, request: Request, slug: str) -> Response:
        """Buckets and data sets of the Hugging Face Hub, without their secrets."""
        found = self.access.project.connections.order_by("pk")
        return Response({"results": [connection_content(connection) for connection in found]})

    @extend_schema(request=NewConnection, responses={201: ConnectionBody})
    def post(self, request: Request, slug: str) -> Response:
        """Nothing is asked of the store yet: `test/` does."""
        body = self.parsed(NewConnection)
        made = connections.create_connection(project=self.access.project, actor=self.access.user, **body)
        return created(connection_content(made), "api_connection", slug=slug, connection_id=made.pk)


class ConnectionDetail(ConnectionView):
    @extend_schema(responses=ConnectionBody)
    def get(self, request: Request, slug: str, connection_id: int) -> Response:
        """One of them, without its secret."""
        return Response(connection_content(self.find(connection_id)))

    @extend_schema(request=ConnectionChanges, responses=ConnectionBody)
    def patch(self, request: Request, slug: str, connection_id: int) -> Response:
        """What is left out stays; a new endpoint needs the secret again."""
        connection, body = self.find(connection_id), self.parsed(ConnectionChanges)
        changed = connections.update_connection(connection=connection, actor=self.access.user, **body)
        return Response(connection_content(changed))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, connection_id: int) -> Response:
        """What was read from it and delivered to it stays."""
        connections.delete_connection(connection=self.find(connection_id), actor=self.access.user)
        return Response(status=204)


class ConnectionTest(ConnectionView):
    actions = {"POST": EDIT}

    @extend_schema(request=None, responses=Tried)
    def post(self, request: Request, slug: str, connection_id: int) -> Response:
        """Look into the bucket, now."""
        connection = self.find(connection_id)
        self.parsed(Nothing)
        return Response({"objects": connections.try_connection(connection=connection)})


class ConnectionListing(ConnectionView):
    actions = {"POST": "items.import"}

    @extend_schema(request=Folder, responses=ListingBody)
    def post(self, request: Request, slug: str, connection_id: int) -> Response:
        """Look which objects there are, now: the first of a folder and of those in it."""
        connection, body = self.find(connection_id), self.parsed(Folder)
        found, more = connections.list_folder(connection=connection, below=body["folder"])
        keys = [(entry.key.removeprefix(connection.prefix), entry.size) for entry in found]
        return Response({"results": [{"key": key, "size": size} for key, size in keys], "more": more})


class ConnectionFetch(ConnectionView):
    actions = {"POST": "items.import"}

    @extend_schema(request=Fetch, responses={202: JobBody})
    def post(self, request: Request, slug: str, connection_id: int) -> Response:
        """Store an object as a file of the project: the job's `result` has its id as `file`, for a preview
        and an import. `imports/` takes a connection and a key, too, and does both.
        """
        connection, body = self.find(connection_id), self.parsed(Fetch)
        return accepted(fetch(connection=connection, user=self.access.user, key=body["key"]))


def connection_content(connection: Connection) -> dict[str, Any]:
    """Neither the secret nor whether it can still be read."""
    return {name: getattr(connection, "pk" if name == "id" else name) for name in SHOWN}


_ALL = "projects/<slug:slug>/connections/"
_ONE = f"{_ALL}<row:connection_id>/"
urlpatterns = [
    path(_ALL, ConnectionList.as_view(), name="api_connections"),
    path(_ONE, ConnectionDetail.as_view(), name="api_connection"),
    path(f"{_ONE}test/", ConnectionTest.as_view(), name="api_connection_test"),
    path(f"{_ONE}list/", ConnectionListing.as_view(), name="api_connection_list"),
    path(f"{_ONE}fetch/", ConnectionFetch.as_view(), name="api_connection_fetch"),
]
