"""The items of a project: what there is, and more of them.

No answer of a model is ever among it: of the imported columns, which are left out unless asked for, those
that a source or a run reads are missing at all times.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import KeysetPages, ProjectView
from annotation.common.api.schema import PageQuery, page_of
from annotation.common.api.streams import NDJSON, NdjsonRenderer, ndjson
from annotation.common.api.uploads import TakesStream, received, stored_lines
from annotation.imports.api import Columns, mapping_of
from annotation.imports.upload import start_import
from annotation.items.data_out import in_pages, items_of
from annotation.jobs.background import JobBody, accepted
from annotation.labelling.content import MAX_ID, ItemBody, item_content
from annotation.models import Item, Project
from annotation.ports import routing_port

JSONL = "jsonl"


class ItemFilters(serializers.Serializer[Any]):
    external_id = serializers.CharField(required=False, max_length=255, trim_whitespace=False)
    job = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_ID, help_text="Id of the import that brought them."
    )
    created_after = serializers.DateTimeField(required=False)
    created_before = serializers.DateTimeField(required=False)
    columns = serializers.BooleanField(
        required=False,
        default=False,
        help_text="With `data`: the imported columns that no source reads.",
    )


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


class ItemList(TakesStream, ProjectView):
    actions = {"GET": "items.view", "POST": "items.import"}

    @extend_schema(parameters=[ItemQuery], responses=page_of(ListedItem))
    def get(self, request: Request, slug: str) -> Response:
        """In the order of import."""
        asked = self.query(ItemQuery)
        found, content = _asked(self, asked)
        return self.paged(_pages(asked), found, content)

    @extend_schema(request={NDJSON: OpenApiTypes.BINARY}, parameters=[Columns], responses={202: JobBody})
    def post(self, request: Request, slug: str) -> Response:
        """Add items from a body with a JSON object on each line: the import that does so. What is there
        already, under the same id and with the same content, is not added twice.
        """
        asked = self.query(Columns)
        with received(request) as content:
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
            )
        )


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
        shown = found.only("external_id", "position", "text", "image__sha256")
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
