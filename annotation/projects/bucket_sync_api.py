"""What is done with a project's bucket by itself: files that are imported, deliveries that are written."""

from typing import Any

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import NewestFirst
from annotation.common.api.schema import Nothing, PageQuery, page_of
from annotation.imports import bucket_sync
from annotation.imports.api import FORMAT_LENGTH, Columns, mapping_of
from annotation.imports.bucket_sync import HowToImport
from annotation.imports.encodings import ENCODINGS
from annotation.jobs.serializers import JobBody, accepted, job_content
from annotation.models import BucketFile, BucketSync
from annotation.projects.connections_api import EDIT, VIEW, ConnectionView


class SyncSettings(Columns):
    """The columns, format and so on are those of an import, for every file."""

    takes = serializers.BooleanField(help_text="Whether new files are imported.")
    take_from = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=490,
        help_text="Folder below that of the connection.",
    )
    every_minutes = serializers.ChoiceField(
        required=False, choices=BucketSync.Every.choices, default=BucketSync.Every.HOUR
    )
    format = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=FORMAT_LENGTH,
        help_text="Without it, each file as what it seems.",
    )
    encoding = serializers.ChoiceField(
        required=False,
        allow_blank=True,
        default="",
        choices=[*ENCODINGS],
        help_text="Of texts that are neither UTF-8 nor marked as UTF-16.",
    )
    keep_labels = serializers.BooleanField(
        required=False, default=False, help_text="Whether labels that people gave elsewhere are kept."
    )
    writes = serializers.BooleanField(help_text="Whether deliveries made from now on are written.")
    write_to = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=490,
        help_text="Folder below that of the connection.",
    )

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        del fields["text_format"]  # of the whole project
        return fields


class FileCounts(serializers.Serializer[Any]):
    waiting = serializers.IntegerField()
    taken = serializers.IntegerField(help_text="Their import has begun, at least.")
    refused = serializers.IntegerField(help_text="They cannot be imported before they change.")


class SyncBody(SyncSettings):
    text_column = serializers.CharField(allow_blank=True)
    next_at = serializers.DateTimeField(allow_null=True, help_text="When it is looked for new files next.")
    looked_at = serializers.DateTimeField(allow_null=True)
    writes_since = serializers.DateTimeField(allow_null=True)
    files = FileCounts()
    last_look = JobBody(allow_null=True)


class BucketFileBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    key = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes.")
    state = serializers.ChoiceField(choices=BucketFile.State.choices)
    job = serializers.IntegerField(allow_null=True, help_text="The import of its content.")
    error = serializers.CharField(allow_blank=True, help_text="Why it is refused.")
    changed_at = serializers.DateTimeField()


class SyncView(ConnectionView):
    """That of one connection."""

    actions = {"GET": VIEW, "PUT": EDIT, "DELETE": EDIT}

    def find_sync(self, connection_id: int) -> BucketSync:
        known = BucketSync.objects.select_related("connection__project", "user")
        found = known.filter(connection=self.find(connection_id)).first()
        if found is None:
            raise Http404
        return found


class SyncDetail(SyncView):
    @extend_schema(responses=SyncBody)
    def get(self, request: Request, slug: str, connection_id: int) -> Response:
        """404 where nothing is done with the connection by itself."""
        return Response(_content(self.find_sync(connection_id)))

    @extend_schema(request=SyncSettings, responses=SyncBody)
    def put(self, request: Request, slug: str, connection_id: int) -> Response:
        """Set all of it; from then on it is done in the name of whoever asks."""
        connection, body = self.find(connection_id), self.parsed(SyncSettings)
        how = HowToImport(
            mapping_of(body),
            body["format"],
            body["encoding"],
            body["keep_labels"],
            body["add_duplicates"],
        )
        saved = bucket_sync.save_sync(
            connection=connection,
            actor=self.access.user,
            how=how if body["takes"] else None,
            take_from=body["take_from"],
            every_minutes=body["every_minutes"],
            write_to=body["write_to"] if body["writes"] else None,
        )
        return Response(_content(saved))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, connection_id: int) -> Response:
        """End it. What was imported and written stays."""
        bucket_sync.end_sync(sync=self.find_sync(connection_id), actor=self.access.user)
        return Response(status=204)


class SyncNow(SyncView):
    actions = {"POST": EDIT}

    @extend_schema(request=None, responses={202: JobBody})
    def post(self, request: Request, slug: str, connection_id: int) -> Response:
        """Look into the bucket now, and write deliveries whose writing failed."""
        sync = self.find_sync(connection_id)
        self.parsed(Nothing)
        return accepted(bucket_sync.look_now(sync=sync, user=self.access.user))


class SyncFiles(SyncView):
    actions = {"GET": VIEW}

    @extend_schema(parameters=[PageQuery], responses=page_of(BucketFileBody))
    def get(self, request: Request, slug: str, connection_id: int) -> Response:
        """The files that were found, those found last first."""
        found = BucketFile.objects.filter(sync__connection=self.find(connection_id))
        return self.paged(NewestFirst(), found, _file)


def _content(sync: BucketSync) -> dict[str, Any]:
    how, last = HowToImport.of(sync.columns).as_stored, bucket_sync.looks_of(sync).first()
    return {
        "takes": sync.takes,
        "take_from": sync.take_from,
        "every_minutes": sync.every_minutes,
        **how,
        "writes": sync.writes_since is not None,
        "write_to": sync.write_to,
        "next_at": sync.next_at,
        "looked_at": sync.looked_at,
        "writes_since": sync.writes_since,
        "files": bucket_sync.counts_of(sync),
        "last_look": last and job_content(last),
    }


def _file(found: BucketFile) -> dict[str, Any]:
    return {
        "id": found.pk,
        "key": found.key,
        "size": found.size,
        "state": found.state,
        "job": found.job_id,
        "error": found.error,
        "changed_at": found.changed_at,
    }


_ONE = "projects/<slug:slug>/connections/<row:connection_id>/sync/"
urlpatterns = [
    path(_ONE, SyncDetail.as_view(), name="api_connection_sync"),
    path(f"{_ONE}now/", SyncNow.as_view(), name="api_connection_sync_now"),
    path(f"{_ONE}files/", SyncFiles.as_view(), name="api_connection_sync_files"),
]
