"""The items of a project: what there is, and more of them; and the labels that people gave that
count now.

No answer of a model is ever among it: of the imported columns, which are left out unless asked for, those
that a source or a run reads are missing at all times.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from django.http import StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import KeysetPages, OldestFirst, ProjectView
from annotation.common.api.schema import PageQuery, page_of
from annotation.common.api.streams import NDJSON, NdjsonRenderer, ndjson
from annotation.common.api.uploads import TakesStream, receive_body, stored_lines
from annotation.imports.api import Columns, mapping_of
from annotation.imports.upload import start_import
from annotation.items.queries import in_pages, items_of, labels_for
from annotation.jobs.serializers import JobBody, accepted
from annotation.labelling.serializers import MAX_ID, ItemBody, LabelBody, item_content, label_content
from annotation.models import Item, Label, Project
from annotation.permissions import Access
from annotation.ports import routing_port

JSONL = "jsonl"


class ItemParts(serializers.Serializer[Any]):
    columns = serializers.BooleanField(
        required=False,
        default=False,
        help_text="With `data`: the imported columns that no source reads.",
    )


class ItemFilters(ItemParts):
    external_id = serializers.CharField(required=False, max_length=255, trim_whitespace=False)
    job = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_ID, help_text="Id of the import that brought them."
    )
    created_after = serializers.DateTimeField(required=False)
    created_before = serializers.DateTimeField(required=False)


class ItemQuery(PageQuery, ItemFilters):
    pass


class ListedItem(ItemBody):
    external_id = serializers.CharField()
    data = serializers.DictField(  # type: ignore[assignment]
        required=False, help_text="Only with `columns`, each as it came."
    )


class ItemPages(KeysetPages):
    """In the order of import."""

    ordering = "position"
    page_size = 100
    long: ClassVar[tuple[str, ...]] = ("text",)


class ItemPagesWithColumns(ItemPages):
    long = ("text", "data", "typed")


def _pages(asked: dict[str, Any]) -> ItemPages:
    return ItemPagesWithColumns() if asked["columns"] else ItemPages()


class RowColumns(Columns):
    keep_labels = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Whether labels that people gave, in rows that HyPAC delivered, are kept.",
    )


class ItemList(TakesStream, ProjectView):
    actions = {"GET": "items.view", "POST": "items.import"}

    @extend_schema(parameters=[ItemQuery], responses=page_of(ListedItem))
    def get(self, request: Request, slug: str) -> Response:
        """In the order of import."""
        asked = self.query(ItemQuery)
        found, content = _asked(self, asked)
        return self.paged(_pages(asked), found, content)

    @extend_schema(request={NDJSON: OpenApiTypes.BINARY}, parameters=[RowColumns], responses={202: JobBody})
    def post(self, request: Request, slug: str) -> Response:
        """Add items from a body with a JSON object on each line: the import that does so. What is there
        already, under the same id and with the same content, is not added twice.
        """
        asked = self.query(RowColumns)
        with receive_body(request) as content:
            stored = stored_lines(self.access.project, content)
        return accepted(
            start_import(
                project=self.access.project,
                user=self.access.user,
                stored_file=stored,
                mapping=mapping_of(asked),
                format_name=JSONL,
                text_format=asked.get("text_format", ""),
                add_duplicates=asked["add_duplicates"],
                keep_labels=asked["keep_labels"],
            )
        )


class ItemDetail(ProjectView):
    actions = {"GET": "items.view"}

    @extend_schema(parameters=[ItemParts], responses=ListedItem)
    def get(self, request: Request, slug: str, item_id: int) -> Response:
        """One of them, by the `id` that the list gives it."""
        found, content = _asked(self, self.query(ItemParts))
        return Response(content(get_object_or_404(found, pk=item_id)))


class ItemLines(ProjectView):
    actions = {"GET": "items.view"}
    renderer_classes = [NdjsonRenderer, JSONRenderer]

    @extend_schema(parameters=[ItemFilters], responses={(200, NDJSON): OpenApiTypes.STR})
    def get(self, request: Request, slug: str) -> StreamingHttpResponse:
        """All of them, an object on each line, as they stood at one moment."""
        asked = self.query(ItemFilters)
        _asked(self, asked)  # what cannot be asked for is refused before the answer begins

        def pages() -> Iterator[Sequence[dict[str, Any]]]:
            found, content = _asked(self, asked)
            yield from in_pages(found, "position", content, long=_pages(asked).long)

        return ndjson(pages, name=f"{slug}-items.ndjson")


def _asked(view: ProjectView, asked: dict[str, Any]) -> tuple[Any, Callable[[Item], dict[str, Any]]]:
    """The items, and what is told of each."""
    project = view.access.project
    names = ("external_id", "job", "created_after", "created_before")
    found = items_of(project, **{name: asked[name] for name in names if name in asked})
    if not asked["columns"]:
        shown = found.only("external_id", "position", "text", "erased_at", "image__sha256")
        return shown, lambda item: _content(item, project)
    secret = routing_port().model_columns(project=project)
    order = {name: place for place, name in enumerate(project.columns)}

    def with_columns(item: Item) -> dict[str, Any]:
        values = item.data | (item.typed or {})
        names = sorted(values.keys() - secret, key=lambda name: (order.get(name, len(order)), name))
        return {**_content(item, project), "data": {name: values[name] for name in names}}

    return found, with_columns


def _content(item: Item, project: Project) -> dict[str, Any]:
    return {**item_content(item, project.slug), "external_id": item.external_id}


# --- Labels -------------------------------------------------------------------------------------------------


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


class LabelDetail(ProjectView):
    actions = {"GET": "project.view"}

    @extend_schema(responses=ListedLabel)
    def get(self, request: Request, slug: str, label_id: int) -> Response:
        """One of those that the list has, by its `id`. A label that was corrected is under that of its newest
        version alone.
        """
        label = get_object_or_404(labels_for(self.access), pk=label_id)
        return Response(_told_to(self.access)(label))


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
