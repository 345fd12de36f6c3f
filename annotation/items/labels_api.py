"""Labels that people gave: those that count now."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import OldestFirst, ProjectView
from annotation.common.api.schema import PageQuery, page_of
from annotation.common.api.streams import NDJSON, NdjsonRenderer, ndjson
from annotation.items.data_out import in_pages, labels_for
from annotation.labelling.content import LabelBody, label_content
from annotation.models import Label
from annotation.permissions import Access


class LabelFilters(serializers.Serializer[Any]):
    annotator = serializers.CharField(required=False, max_length=150, help_text="A username.")
    external_id = serializers.CharField(required=False, max_length=255, trim_whitespace=False)
    since = serializers.DateTimeField(required=False, help_text="Given, or corrected, from then on.")


class LabelQuery(PageQuery, LabelFilters):
    pass


class ListedLabel(LabelBody):
    external_id = serializers.CharField(
        allow_null=True, help_text="Null for whoever does not see what items are called."
    )
    annotator = serializers.CharField()
    lead_time_ms = serializers.IntegerField(allow_null=True)
    supersedes = serializers.IntegerField(allow_null=True, help_text="Id of the label that it corrects.")


class LabelPages(OldestFirst):
    long = ("value",)


class LabelList(ProjectView):
    # Which of them each role sees, `labels_for` says.
    actions = {"GET": "project.view"}

    @extend_schema(parameters=[LabelQuery], responses=page_of(ListedLabel))
    def get(self, request: Request, slug: str) -> Response:
        """The newest version of each label, in the order in which they came: those of items that people label
        for a run appear once it is analysed. An annotator sees their own.
        """
        asked = self.query(LabelQuery)
        wanted = {name: asked[name] for name in ("annotator", "external_id", "since") if name in asked}
        found = labels_for(self.access, **wanted)
        return self.paged(LabelPages(), found, _told_to(self.access))


class LabelLines(ProjectView):
    actions = {"GET": "project.view"}
    renderer_classes = [NdjsonRenderer, JSONRenderer]

    @extend_schema(parameters=[LabelFilters], responses={(200, NDJSON): OpenApiTypes.STR})
    def get(self, request: Request, slug: str) -> StreamingHttpResponse:
        """All of them, an object on each line, as they stood at one moment."""
        asked = self.query(LabelFilters)
        labels_for(self.access, **asked)  # what cannot be asked for is refused before the answer begins

        def pages() -> Iterator[Sequence[dict[str, Any]]]:
            # Asked again inside: what is hidden has to be of the same moment as the labels.
            found = labels_for(self.access, **asked)
            yield from in_pages(found, "id", _told_to(self.access), long=LabelPages.long)

        return ndjson(pages, name=f"{slug}-labels.ndjson")


def _told_to(access: Access) -> Callable[[Label], dict[str, Any]]:
    names_items = access.allows("items.view")

    def content(label: Label) -> dict[str, Any]:
        return {
            **label_content(label),
            "external_id": label.item.external_id if names_items else None,
            "annotator": label.annotator.get_username(),
            "lead_time_ms": label.lead_time_ms,
            "supersedes": label.supersedes_id,
        }

    return content
