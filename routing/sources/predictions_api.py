"""The part of /api/v1/ about what models answered: sent in, and given out where it may be seen."""

from collections.abc import Iterator
from typing import Any, cast

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.urls import path
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import KeysetPages, ProjectView
from annotation.common.api.schema import PageQuery, page_of
from annotation.common.api.streams import NDJSON, NdjsonRenderer, ndjson
from annotation.common.api.uploads import TakesStream, receive_body
from annotation.common.money import MoneyField, in_full
from annotation.errors import NotAllowedError
from annotation.imports.encodings import ENCODINGS
from annotation.jobs.serializers import JobBody, accepted
from annotation.labelling.serializers import MAX_ID
from annotation.models import Project, User
from annotation.permissions import Access
from routing.models import Prediction
from routing.sources.prompts_api import SourceView
from routing.sources.sent_answers import refuse_other_backends, send_answers, store_answers_file
from routing.sources.sent_reading import READ_AS
from routing.visibility import output_is_open

PAGE = 1_000


def refuse_blind(access: Access) -> None:
    """Raises NotAllowedError while nobody may see what models answered."""
    if not output_is_open(access.project):
        raise NotAllowedError(
            _(
                "What models answered is shown once a run has been analysed, and not while another one is "
                "open: until then everybody labels blind."
            ),
            code="still_blind",
        )


def predictions_of(
    project: Project, *, source: int | None = None, external_id: str | None = None
) -> QuerySet[Prediction]:
    """Of a source by its id, or for an item by its id in the project."""
    rows = Prediction.objects.filter(source__project=project).select_related("item")
    rows = rows.defer("item__text", "item__data", "item__typed", "item__fields")
    if source is not None:
        rows = rows.filter(source=source)
    if external_id is not None:
        rows = rows.filter(item__external_id=external_id)
    return rows.prefetch_related("scores")


def prediction_content(row: Prediction) -> dict[str, Any]:
    return {
        "id": row.pk,
        "source": row.source_id,
        "fingerprint": row.fingerprint,
        "item": row.item_id,
        "external_id": row.item.external_id,
        "value": row.value,
        "reason": row.reason,
        "raw": row.raw,
        "scores": [
            {"name": score.name, "uncertainty": score.value, "reason": score.reason}
            for score in row.scores.all()
        ],
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "finish_reason": row.finish_reason,
        "latency_ms": row.latency_ms,
        "served_model": row.served_model,
        "served_revision": row.served_revision,
        "cost": in_full(row.cost),
        "cost_note": row.cost_note,
        "created_at": row.created_at,
    }


def pages_of_predictions(rows: QuerySet[Prediction]) -> Iterator[list[dict[str, Any]]]:
    """All of them in the order in which they were stored, a page at a time."""
    last = 0
    while page := list(rows.filter(pk__gt=last).order_by("pk")[:PAGE]):
        yield [prediction_content(row) for row in page]
        last = page[-1].pk


class PredictionPages(KeysetPages):
    ordering = "id"
    page_size = 100
    long = ("raw", "value")


class PredictionFilter(serializers.Serializer[Any]):
    source = serializers.IntegerField(  # type: ignore[assignment]
        required=False, min_value=1, max_value=MAX_ID, help_text="Id of the source."
    )
    external_id = serializers.CharField(required=False, max_length=255, trim_whitespace=False)


class PredictionQuery(PageQuery, PredictionFilter):
    pass


class ScoredBody(serializers.Serializer[Any]):
    """`reason` says why the uncertainty is 1 by rule, if it is."""

    name = serializers.CharField()
    uncertainty = serializers.FloatField()
    reason = serializers.CharField(allow_blank=True)


class PredictionBody(serializers.Serializer[Any]):
    """An answer as a run stored it, once per fingerprint; without a value it names its reason."""

    id = serializers.IntegerField()
    source = serializers.IntegerField()  # type: ignore[assignment]
    fingerprint = serializers.CharField()
    item = serializers.IntegerField()
    external_id = serializers.CharField()
    value = serializers.JSONField(allow_null=True)
    reason = serializers.CharField(allow_blank=True)
    raw = serializers.DictField()
    scores = ScoredBody(many=True)
    tokens_in = serializers.IntegerField(allow_null=True)
    tokens_out = serializers.IntegerField(allow_null=True)
    finish_reason = serializers.CharField(allow_blank=True)
    latency_ms = serializers.FloatField(allow_null=True)
    served_model = serializers.CharField(allow_blank=True)
    served_revision = serializers.CharField(allow_blank=True)
    cost = MoneyField()
    cost_note = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class SendQuery(serializers.Serializer[Any]):
    revision = serializers.CharField(
        required=False, max_length=200, help_text="Other than the one that the source names now."
    )
    format = serializers.ChoiceField(required=False, choices=READ_AS, help_text="Else the file itself tells.")
    encoding = serializers.ChoiceField(
        required=False, choices=[*ENCODINGS], help_text="Of a text that does not say it itself."
    )
    name = serializers.CharField(required=False, max_length=255, help_text="What the file is called.")
    id_column = serializers.CharField(
        required=False,
        max_length=255,
        help_text="Column of a table, or field of lines, that names the items; else `external_id`, and of a "
        "table other usual names.",
    )


class SourcePredictions(TakesStream, SourceView):
    """Answers of a model from outside, for a source of the backend `uploaded`."""

    actions = {"POST": "sources.edit"}
    stream_type = "*/*"

    @extend_schema(
        parameters=[SendQuery],
        request={NDJSON: OpenApiTypes.STR, "application/octet-stream": OpenApiTypes.BINARY},
        responses={202: JobBody},
    )
    def post(self, request: Request, slug: str, source_id: int) -> Response:
        """One JSON object a line, or a table (CSV, TSV, Excel, a JSON list, Parquet); stored as it comes, and
        read by a job that names each line that it cannot use.
        """
        asked = self.query(SendQuery)
        source = self.find(source_id)
        refuse_other_backends(source)
        with receive_body(request) as content:
            stored = store_answers_file(
                project=self.access.project, content=content, name=asked.get("name", "predictions")
            )
        job = send_answers(
            source=source,
            user=cast(User, request.user),
            stored_file=stored,
            revision=asked.get("revision", ""),
            format_name=asked.get("format", ""),
            encoding=asked.get("encoding", ""),
            id_column=asked.get("id_column", ""),
        )
        return accepted(job)


class PredictionList(ProjectView):
    actions = {"GET": "predictions.view"}

    @extend_schema(parameters=[PredictionQuery], responses=page_of(PredictionBody))
    def get(self, request: Request, slug: str) -> Response:
        """In the order in which they were stored."""
        asked = self.query(PredictionQuery)
        refuse_blind(self.access)
        rows = predictions_of(self.access.project, **_filters(asked))
        return self.paged(PredictionPages(), rows, prediction_content)


class PredictionLines(ProjectView):
    actions = {"GET": "predictions.view"}
    renderer_classes = (*ProjectView.renderer_classes, NdjsonRenderer)

    @extend_schema(parameters=[PredictionFilter], responses={(200, NDJSON): OpenApiTypes.STR})
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        """All of them, one JSON object a line, as they stand at one moment."""
        asked = self.query(PredictionFilter)
        refuse_blind(self.access)
        rows = predictions_of(self.access.project, **_filters(asked))

        def pages() -> Iterator[list[dict[str, Any]]]:
            refuse_blind(self.access)  # again, at the moment that the rows are of
            yield from pages_of_predictions(rows)

        return ndjson(pages, name=f"{slug}-predictions.jsonl")


def _filters(asked: dict[str, Any]) -> dict[str, Any]:
    return {name: asked[name] for name in ("source", "external_id") if name in asked}


urlpatterns = [
    path("projects/<slug:slug>/predictions/", PredictionList.as_view(), name="api_predictions"),
    path("projects/<slug:slug>/predictions.ndjson", PredictionLines.as_view(), name="api_prediction_lines"),
    path(
        "projects/<slug:slug>/sources/<row:source_id>/predictions/",
        SourcePredictions.as_view(),
        name="api_source_predictions",
    ),
]
