"""Files that come in, a look at what is in them, and the imports that make items of them."""

from collections.abc import Collection
from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common import limits
from annotation.common.api.base import NewestFirst, ProjectView
from annotation.common.api.conditional import created
from annotation.common.api.schema import PageQuery, page_of
from annotation.common.api.uploads import TakesStream, receive_body
from annotation.common.files import MODEL_OUTPUT
from annotation.errors import InputError
from annotation.imports.columns import ColumnMapping
from annotation.imports.encodings import ENCODINGS
from annotation.imports.fetching import fetch
from annotation.imports.sent_files import delete_file, keep_for_import, sent_files
from annotation.imports.upload import Preview, preview, start_import
from annotation.jobs.serializers import JobBody, JobProblemBody, accepted
from annotation.labelling.serializers import MAX_ID
from annotation.models import Project, StoredFile
from annotation.ports import routing_port

ANY = "*/*"
# The name of a workbook's sheet stands in it.
FORMAT_LENGTH = 300


class Columns(serializers.Serializer[Any]):
    """Which column is an item's id, and which ones people read."""

    id_column = serializers.CharField(required=False, allow_blank=True, default="", trim_whitespace=False)
    text_column = serializers.CharField(required=False, allow_blank=True, default="", trim_whitespace=False)
    field_columns = serializers.ListField(
        child=serializers.CharField(trim_whitespace=False),
        required=False,
        default=list,
        max_length=limits.ITEM_FIELDS,
        help_text="Several columns that are shown, in this order, in place of one text.",
    )
    text_format = serializers.ChoiceField(required=False, choices=Project.TextFormat.choices)
    add_duplicates = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Whether rows whose content is in the project under other names are added once more.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["text_column"] and attrs["field_columns"]:
            raise serializers.ValidationError(
                {"field_columns": "Give either a text column or columns for fields."}
            )
        return attrs


def mapping_of(asked: dict[str, Any]) -> ColumnMapping:
    shown = asked["field_columns"] or [name for name in (asked["text_column"],) if name]
    return ColumnMapping.showing(shown, id_column=asked["id_column"])


class FileQuery(serializers.Serializer[Any]):
    name = serializers.CharField(
        required=False, max_length=255, help_text="The name of a file that is the body itself."
    )


class FileForm(serializers.Serializer[Any]):
    file = serializers.FileField()


class StoredFileBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField(help_text="That of its first upload: the same bytes are kept once.")
    size = serializers.IntegerField(help_text="Bytes.")
    sha256 = serializers.CharField()
    created_at = serializers.DateTimeField()


class PreviewQuery(serializers.Serializer[Any]):
    format = serializers.CharField(required=False, max_length=FORMAT_LENGTH, help_text="Read it as this.")
    encoding = serializers.ChoiceField(
        required=False, choices=[*ENCODINGS], help_text="Of a text that does not say it itself."
    )
    rows = serializers.IntegerField(required=False, default=5, min_value=1, max_value=100)


class ColumnBody(serializers.Serializer[Any]):
    name = serializers.CharField()
    kind = serializers.CharField(help_text="What its first values seem to be.")
    distinct = serializers.IntegerField(help_text="Different values in the first rows.")
    suspicious = serializers.BooleanField(help_text="It seems to hold answers: do not show it to people.")


class Suggestion(serializers.Serializer[Any]):
    id_column = serializers.CharField(allow_blank=True)
    text_column = serializers.CharField(allow_blank=True)
    field_columns = serializers.ListField(child=serializers.CharField())


class ModelColumns(serializers.Serializer[Any]):
    answer = serializers.CharField()
    sure = serializers.CharField(help_text="The column that says how sure it is.")


class PreviewBody(serializers.Serializer[Any]):
    format = serializers.CharField()
    format_title = serializers.CharField()
    encoding = serializers.CharField(
        allow_blank=True, help_text="Of a text that does not say it itself; else empty."
    )
    sheets = serializers.ListField(
        child=serializers.CharField(), help_text="Of a workbook; each is read as the format excel:NAME."
    )
    holds_images = serializers.BooleanField()
    columns = ColumnBody(many=True)
    rows = serializers.ListField(
        child=serializers.DictField(child=serializers.CharField(allow_null=True, allow_blank=True)),
        help_text="The first ones; null where a value may not be shown now.",
    )
    thumbnails = serializers.ListField(
        child=serializers.CharField(allow_blank=True),
        help_text="Of images: the first ones made small, as data addresses.",
    )
    problems = JobProblemBody(many=True)
    suggestion = Suggestion()
    models = ModelColumns(many=True, help_text="Columns that read like the answers of a model.")


class NewImport(Columns):
    """Of a file, or of what lies in a bucket: with a connection and a key, the job first reads that."""

    file = serializers.IntegerField(required=False, min_value=1, max_value=MAX_ID, help_text="Its id.")
    connection = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_ID, help_text="Its id; comes with a key."
    )
    key = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=1024,
        trim_whitespace=False,
        help_text="Below the connection's folder; one that ends with / means all objects below it.",
    )
    format = serializers.CharField(
        required=False, max_length=FORMAT_LENGTH, help_text="Without it, as what it seems."
    )
    encoding = serializers.ChoiceField(
        required=False,
        choices=[*ENCODINGS],
        help_text="Of a text that is neither UTF-8 nor marked as UTF-16.",
    )
    keep_labels = serializers.BooleanField(
        required=False, help_text="Whether labels that people gave in the program it comes from are kept."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        stored, *place = (name in attrs for name in ("file", "connection", "key"))
        if any(place) != all(place) or stored == any(place):
            raise serializers.ValidationError({"file": "Give either a file, or a connection and a key."})
        return super().validate(attrs)


class FileList(TakesStream, ProjectView):
    actions = {"GET": "items.import", "POST": "items.import"}
    stream_type = ANY

    def get_parsers(self) -> list[Any]:
        return [MultiPartParser(), *super().get_parsers()]

    @extend_schema(parameters=[PageQuery], responses=page_of(StoredFileBody))
    def get(self, request: Request, slug: str) -> Response:
        """The files that were sent, newest first: without images of items, files of deliveries, and what was
        sent as answers of models.
        """
        return self.paged(NewestFirst(), sent_files(self.access.project), _file)

    @extend_schema(
        request={"multipart/form-data": FileForm, "application/octet-stream": OpenApiTypes.BINARY},
        parameters=[FileQuery],
        responses={201: StoredFileBody},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Send a file: as the field `file` of a form, or as the body itself with `?name=`."""
        name = self.query(FileQuery).get("name")
        project = self.access.project
        if (request.content_type or "").startswith("multipart/"):
            if name is not None:
                raise InputError("A form names its file itself; leave the parameter out.", where="name")
            sent = self.parsed(FileForm)["file"]
            stored = keep_for_import(
                project=project, content=sent, original_name=sent.name, media_type=sent.content_type or ""
            )
        else:
            if name is None:
                raise InputError("Say what the file is called: ?name=reviews.csv", where="name")
            with receive_body(request) as content:
                stored = keep_for_import(
                    project=project,
                    content=content,
                    original_name=name,
                    media_type=(request.content_type or "").partition(";")[0],
                )
        return created(_file(stored), "api_file", slug=slug, file_id=stored.pk)


class FileDetail(ProjectView):
    actions = {"GET": "items.import", "DELETE": "items.import"}

    @extend_schema(responses=StoredFileBody)
    def get(self, request: Request, slug: str, file_id: int) -> Response:
        """One of them."""
        return Response(_file(get_object_or_404(sent_files(self.access.project), pk=file_id)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, file_id: int) -> Response:
        """Remove a file. What was imported from it stays; 409 while a job reads it, and where items or
        deliveries are made of it.
        """
        stored = self.access.project.files.filter(pk=file_id).exclude(media_type=MODEL_OUTPUT).first()
        if stored is None:
            raise Http404
        delete_file(stored=stored, actor=self.access.user)
        return Response(status=204)


class FilePreview(ProjectView):
    actions = {"GET": "items.import"}

    @extend_schema(parameters=[PreviewQuery], responses=PreviewBody)
    def get(self, request: Request, slug: str, file_id: int) -> Response:
        """The first rows of a file, and which column seems to be what."""
        asked = self.query(PreviewQuery)
        stored = (
            StoredFile.objects.select_related("project")
            .filter(project=self.access.project, pk=file_id)
            .first()
        )
        if stored is None:
            raise Http404
        look = preview(
            stored_file=stored,
            rows=asked["rows"],
            format_name=asked.get("format", ""),
            encoding=asked.get("encoding", ""),
        )
        hidden = routing_port().hidden_columns(project=self.access.project) | look.reserved
        return Response(_preview(look, hidden))


class ImportList(ProjectView):
    actions = {"POST": "items.import"}

    @extend_schema(request=NewImport, responses={202: JobBody})
    def post(self, request: Request, slug: str) -> Response:
        """Make items of the rows of a file. Without an id column they are named by the file and the line."""
        body = self.parsed(NewImport)
        project = self.access.project
        options = {
            "mapping": mapping_of(body),
            "format_name": body.get("format", ""),
            "text_format": body.get("text_format", ""),
            "keep_labels": body.get("keep_labels", False),
            "add_duplicates": body["add_duplicates"],
            "encoding": body.get("encoding", ""),
        }
        if "connection" in body:
            connection = self.access.project.connections.filter(pk=body["connection"]).first()
            if connection is None:
                raise Http404
            return accepted(fetch(connection=connection, user=self.access.user, key=body["key"], **options))
        stored = StoredFile.objects.select_related("project").filter(project=project, pk=body["file"]).first()
        if stored is None:
            raise InputError("There is no such file in this project.", where="file")
        return accepted(
            start_import(
                project=project,
                user=self.access.user,
                stored_file=stored,
                **options,
            )
        )


def _file(stored: StoredFile) -> dict[str, Any]:
    return {
        "id": stored.pk,
        "name": stored.original_name,
        "size": stored.size,
        "sha256": stored.sha256,
        "created_at": stored.created_at,
    }


def _preview(look: Preview, hidden: Collection[str]) -> dict[str, Any]:
    # A file that was imported can be looked at again, with the answers of models in it.
    return {
        "format": look.format,
        "format_title": look.format_title,
        "encoding": look.encoding,
        "sheets": list(look.sheets),
        "holds_images": look.holds_images,
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "distinct": column.distinct,
                "suspicious": column.suspicious,
            }
            for column in look.details
        ],
        "rows": [{name: None if name in hidden else row[name] for name in row} for row in look.rows],
        "thumbnails": look.thumbnails,
        "problems": [{"where": where, "message": message} for where, message in look.problems],
        "suggestion": {
            "id_column": look.suggestion.id_column,
            "text_column": look.suggestion.text_column,
            "field_columns": list(look.suggestion.field_columns),
        },
        "models": [{"answer": answer, "sure": sure} for answer, sure in look.models if sure],
    }
