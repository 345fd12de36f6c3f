"""The part of /api/v1/ that is the table of items, with all filters and orders of its page, and that changes
many of them at once.
"""

from dataclasses import asdict
from typing import Any

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from annotation.common.api.base import ProjectView
from annotation.common.api.cursors import make_cursor, read_cursor
from annotation.errors import InputError
from annotation.jobs.serializers import JobBody, accepted
from annotation.labelling.serializers import MAX_ID
from annotation.labelling.validation import MAX_COMMENT
from routing.items.changes import CHANGES, change_items, change_of, undo_change
from routing.items.erase import AT_ONCE, erase_items
from routing.items.filters import FILTERS, MAX_TEXT
from routing.items.sorts import DEFAULT, NAMES
from routing.items.table import MAX_SIZE, ItemRow, table_page
from routing.visibility import view_permission


class PlaceQuery(serializers.Serializer[Any]):
    sort = serializers.ChoiceField(choices=list(NAMES), default=DEFAULT)
    run = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_ID, help_text="Whose scores and routes: else the newest."
    )
    after = serializers.CharField(required=False, help_text="Comes with `next`.")
    before = serializers.CharField(required=False, help_text="Comes with `previous`.")
    page_size = serializers.IntegerField(default=50, min_value=1, max_value=MAX_SIZE)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "after" in attrs and "before" in attrs:
            raise serializers.ValidationError({"before": "Give either after or before."})
        return attrs


def _filter() -> serializers.CharField:
    return serializers.CharField(required=False, max_length=MAX_TEXT)


# A filter each, by the names that the page has in its address.
TableQuery = type("TableQuery", (PlaceQuery,), {name: _filter() for name in FILTERS})


class TableRow(serializers.Serializer[Any]):
    """An item as the table has it; null where there is nothing, or nothing that may be seen."""

    id = serializers.IntegerField()
    external_id = serializers.CharField()
    erased = serializers.BooleanField(help_text="Its content was erased.")
    excerpt = serializers.CharField(allow_blank=True, help_text="The beginning of the text.")
    label = serializers.JSONField(  # type: ignore[assignment]
        allow_null=True, help_text="What a delivery would hold now."
    )
    given_by = serializers.CharField(allow_null=True, help_text="person, or the name of the source.")
    annotator = serializers.CharField(allow_null=True, allow_blank=True)
    reason = serializers.CharField(allow_null=True, allow_blank=True)
    uncertainty = serializers.FloatField(allow_null=True)
    routed_to = serializers.CharField(allow_null=True, allow_blank=True, help_text="Empty for people.")
    flags = serializers.IntegerField(help_text="Open ones.")
    labelled_at = serializers.DateTimeField(allow_null=True)
    seconds = serializers.FloatField(allow_null=True)


class TableBody(serializers.Serializer[Any]):
    """`blind`: what models answered is missing, because it may not be seen now, or not by this person. `cut`:
    not all items were looked at in time, and the next page goes on from there.
    """

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    blind = serializers.BooleanField()
    cut = serializers.BooleanField()
    results = TableRow(many=True)


class Table(ProjectView):
    actions = {"GET": "items.view"}

    @extend_schema(parameters=[TableQuery], responses=TableBody)
    def get(self, request: Request, slug: str) -> Response:
        """Items with their labels, scores and routes, as far as they may be seen now."""
        asked = self.query(TableQuery)
        page = table_page(
            view_permission(self.access.project, self.access, run=asked.get("run")),
            filters={name: asked[name] for name in FILTERS if name in asked},
            sort=asked["sort"],
            after=read_cursor(request, "after"),
            before=read_cursor(request, "before"),
            size=asked["page_size"],
            count=False,
        )
        here = remove_query_param(remove_query_param(request.build_absolute_uri(), "after"), "before")
        return Response(
            {
                "next": page.next and replace_query_param(here, "after", make_cursor(request, page.next)),
                "previous": page.previous
                and replace_query_param(here, "before", make_cursor(request, page.previous)),
                "blind": page.blind,
                "cut": page.cut,
                "results": [_content(row) for row in page.rows],
            }
        )


def _content(row: ItemRow) -> dict[str, Any]:
    names = (
        *("id", "external_id", "erased", "excerpt", "label", "given_by", "annotator", "reason"),
        *("uncertainty", "routed_to", "flags", "labelled_at", "seconds"),
    )
    return {name: getattr(row, name) for name in names}


class ChangeFields(serializers.Serializer[Any]):
    """What to do, and with which items: either `items`, or `filters`, those of the table; {} for all."""

    change = serializers.ChoiceField(choices=list(CHANGES))
    items = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=MAX_ID),
        required=False,
        min_length=1,
        max_length=MAX_SIZE,
        help_text="Their `id`.",
    )
    filters = serializers.DictField(child=serializers.CharField(max_length=MAX_TEXT), required=False)
    run = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_ID, help_text="Whose scores and routes: else the newest."
    )
    text = serializers.CharField(
        required=False, allow_blank=True, max_length=MAX_COMMENT, help_text="Of a comment or flag."
    )


class Changes(ProjectView):
    actions = {"POST": "review"}

    @extend_schema(request=ChangeFields, responses={202: JobBody})
    def post(self, request: Request, slug: str) -> Response:
        """Flag items, comment on them, or ask people about them. A few are done at once, others by a job."""
        body = self.parsed(ChangeFields)
        if ("items" in body) == ("filters" in body):
            raise InputError("Name either items or filters; {} as filters means all items.", where="items")
        job = change_items(
            access=self.access,
            change_name=body["change"],
            filters=body.get("filters", {}),
            item_ids=body.get("items"),
            run=body.get("run"),
            text=body.get("text", ""),
        )
        return accepted(job)


class ChangeUndo(ProjectView):
    actions = {"POST": "review"}

    @extend_schema(request=None, responses={202: JobBody})
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Take a change back: open flags are resolved, and people no longer asked."""
        job = change_of(self.access.project, job_id)
        if job is None:
            raise Http404
        return accepted(undo_change(access=self.access, job=job))


class EraseFields(serializers.Serializer[Any]):
    """Which items: by their names, as the imported data has them."""

    external_ids = serializers.ListField(
        child=serializers.CharField(max_length=255, trim_whitespace=False), min_length=1, max_length=AT_ONCE
    )


class ErasedBody(serializers.Serializer[Any]):
    items = serializers.IntegerField(help_text="Erased now.")
    already = serializers.IntegerField(help_text="Erased before.")
    deliveries = serializers.IntegerField(help_text="Written before: their files may still have the content.")
    sent = serializers.IntegerField(help_text="Files from which items are imported that may have it, too.")


class Erase(ProjectView):
    actions = {"POST": "items.erase"}

    @extend_schema(request=EraseFields, responses=ErasedBody)
    def post(self, request: Request, slug: str) -> Response:
        """Remove text, image and columns of items for good, and what models wrote about them. Names, labels,
        scores and hashes stay. All of them or, where something under way rests on one, none.
        """
        body = self.parsed(EraseFields)
        done = erase_items(
            project=self.access.project, actor=self.access.user, external_ids=body["external_ids"]
        )
        return Response(asdict(done))


urlpatterns = [
    path("projects/<slug:slug>/items/erase/", Erase.as_view(), name="api_items_erase"),
    path("projects/<slug:slug>/table/", Table.as_view(), name="api_table"),
    path("projects/<slug:slug>/table/changes/", Changes.as_view(), name="api_item_changes"),
    path(
        "projects/<slug:slug>/table/changes/<row:job_id>/undo/",
        ChangeUndo.as_view(),
        name="api_item_change_undo",
    ),
]
