"""Items that nobody is left to label, and what is decided about them."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import OldestItemsFirst, ProjectView
from annotation.common.api.schema import PageQuery, page_of
from annotation.labelling import queue
from annotation.labelling.content import ItemBody, item_content
from annotation.models import WorkItem


class StuckBody(serializers.Serializer[Any]):
    work_item = serializers.IntegerField()
    item = ItemBody()
    external_id = serializers.CharField()
    has_answers = serializers.BooleanField(help_text="Some of several people have answered.")


class WorkDecision(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(
        choices=list(queue.DECISIONS),
        help_text="It cannot be labelled; ask those who skipped it once more; the answers given are enough.",
    )


class WorkItemBody(serializers.Serializer[Any]):
    work_item = serializers.IntegerField()
    state = serializers.ChoiceField(choices=WorkItem.State.choices)


class StuckList(ProjectView):
    actions = {"GET": "work.decide"}

    @extend_schema(parameters=[PageQuery], responses=page_of(StuckBody))
    def get(self, request: Request, slug: str) -> Response:
        """Items that everybody who may label them has skipped, or answered already."""
        rows = queue.stuck_items(self.access.project).select_related("item__image", "batch")
        return self.paged(OldestItemsFirst(), rows, lambda row: _stuck(row, slug))


class WorkDecide(ProjectView):
    actions = {"POST": "work.decide"}

    @extend_schema(request=WorkDecision, responses=WorkItemBody)
    def post(self, request: Request, slug: str, work_item_id: int) -> Response:
        """Decide what happens to an item that nobody is left to label."""
        found = WorkItem.objects.select_related("batch__project").filter(
            pk=work_item_id, batch__project=self.access.project
        )
        work_item = found.first()
        if work_item is None:
            raise Http404
        decided = queue.decide(work_item=work_item, actor=self.access.user, **self.parsed(WorkDecision))
        return Response({"work_item": decided.pk, "state": decided.state})


def _stuck(row: Any, slug: str) -> dict[str, Any]:
    return {
        "work_item": row.pk,
        "item": item_content(row.item, slug),
        "external_id": row.item.external_id,
        "has_answers": row.has_answers,
    }
