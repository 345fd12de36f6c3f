"""Labelling by a program: the same queue as the page.

Claim an item, send its label with the claim's token, get the next one in the same answer.
"""

from typing import Any, cast

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import NewestFirst, OldestItemsFirst, ProjectView
from annotation.common.api.schema import Nothing, PageQuery, page_of
from annotation.labelling import queue
from annotation.labelling.comments import flag_own_work
from annotation.labelling.own_labels import MAX_SEARCH, own_labels
from annotation.labelling.serializers import (
    MAX_ID,
    ItemBody,
    LabelBody,
    TaskBody,
    item_content,
    label_content,
    task_content,
)
from annotation.labelling.validation import MAX_COMMENT, sent_key
from annotation.models import Label, Skip, User, WorkItem

MOST_HELD = 50
"""Items of which one request can say that the program has them."""


class Held(serializers.Serializer[Any]):
    """A work item with the token of its lease."""

    work_item = serializers.IntegerField(min_value=1, max_value=MAX_ID)
    token = serializers.CharField(max_length=32)


class Answer(serializers.Serializer[Any]):
    value = serializers.JSONField()
    idempotency_key = serializers.CharField(max_length=64, trim_whitespace=False)
    lead_time_ms = serializers.IntegerField(required=False, allow_null=True, default=None)
    comment = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=MAX_COMMENT, trim_whitespace=False
    )

    def validate_idempotency_key(self, key: str) -> str:
        return sent_key(key)


class Submission(Held, Answer):
    pass


class Correction(Answer):
    label = serializers.IntegerField(min_value=1, max_value=MAX_ID)  # type: ignore[assignment]


class Skipped(Held):
    reason = serializers.ChoiceField(choices=Skip.Reason.choices)
    comment = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=MAX_COMMENT, trim_whitespace=False
    )


class Flagged(serializers.Serializer[Any]):
    work_item = serializers.IntegerField(min_value=1, max_value=MAX_ID)
    text = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=MAX_COMMENT, trim_whitespace=False
    )


class Holding(serializers.Serializer[Any]):
    holding = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=MAX_ID),
        required=False,
        default=list,
        max_length=MOST_HELD,
        help_text="Work items that the program has already.",
    )


class Back(serializers.Serializer[Any]):
    before = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=MAX_ID
    )


class NextTask(serializers.Serializer[Any]):
    task = TaskBody(allow_null=True, help_text="Null where nothing waits for this person.")


class Tasks(serializers.Serializer[Any]):
    tasks = TaskBody(many=True)


class Stored(NextTask):
    label = LabelBody()  # type: ignore[assignment]


class Corrected(serializers.Serializer[Any]):
    label = LabelBody()  # type: ignore[assignment]


class Kept(serializers.Serializer[Any]):
    expires_at = serializers.DateTimeField()


class Released(serializers.Serializer[Any]):
    released = serializers.BooleanField(help_text="False where it was no longer held; that is no error.")


class CommentBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    text = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class QueueView(ProjectView):
    limit = "queue"
    actions = {"POST": "label"}

    @property
    def user(self) -> User:
        return cast(User, self.request.user)

    def held(self, serializer_class: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The body with `work_item_id`. A work item of another project does not exist here."""
        body = self.parsed(serializer_class)
        body["work_item_id"] = body.pop("work_item")
        if not WorkItem.objects.filter(pk=body["work_item_id"], batch__project=self.access.project).exists():
            raise Http404
        return body

    def next_task(self) -> dict[str, Any] | None:
        task = queue.claim(project=self.access.project, user=self.user)
        names = self.access.allows("items.view")
        return task_content(task, self.access.project.slug, names_items=names)


class Claim(QueueView):
    @extend_schema(request=None, responses=NextTask)
    def post(self, request: Request, slug: str) -> Response:
        """The item that one labels now: the one that one holds, else the next of the queue."""
        self.parsed(Nothing)
        return Response({"task": self.next_task()})


class Ahead(QueueView):
    @extend_schema(request=Holding, responses=Tasks)
    def post(self, request: Request, slug: str) -> Response:
        """The item that one labels now and those behind it, so that the next one is there at once."""
        holding = set(self.parsed(Holding)["holding"])
        tasks = queue.claim_ahead(project=self.access.project, user=self.user, holding=holding)
        names = self.access.allows("items.view")
        return Response({"tasks": [task_content(task, slug, names_items=names) for task in tasks]})


class Submit(QueueView):
    @extend_schema(request=Submission, responses=Stored)
    def post(self, request: Request, slug: str) -> Response:
        """Store an answer; the next item comes with the reply."""
        label = queue.submit(user=self.user, **self.held(Submission))
        return Response({"label": label_content(label), "task": self.next_task()})


class SkipItem(QueueView):
    @extend_schema(request=Skipped, responses=NextTask)
    def post(self, request: Request, slug: str) -> Response:
        """Somebody else will look at it; the next item comes with the reply."""
        queue.skip(user=self.user, **self.held(Skipped))
        return Response({"task": self.next_task()})


class Flag(QueueView):
    @extend_schema(request=Flagged, responses=CommentBody)
    def post(self, request: Request, slug: str) -> Response:
        """Ask a reviewer to look at an item that one labels, or has had."""
        body = self.held(Flagged)
        work_item = WorkItem.objects.select_related("item__project").get(pk=body["work_item_id"])
        comment = flag_own_work(work_item=work_item, author=self.user, text=body["text"])
        return Response({"id": comment.pk, "text": comment.text, "created_at": comment.created_at})


class Heartbeat(QueueView):
    @extend_schema(request=Held, responses=Kept)
    def post(self, request: Request, slug: str) -> Response:
        """Keep an item for as long as somebody looks at it."""
        return Response({"expires_at": queue.heartbeat(user=self.user, **self.held(Held))})


class Release(QueueView):
    @extend_schema(request=Held, responses=Released)
    def post(self, request: Request, slug: str) -> Response:
        """Give an item back unlabelled."""
        return Response({"released": queue.release(user=self.user, **self.held(Held))})


class Undo(QueueView):
    @extend_schema(request=Back, responses=NextTask)
    def post(self, request: Request, slug: str) -> Response:
        """Go back to one's last answer, or to that before a label (`before`)."""
        task = queue.undo(project=self.access.project, user=self.user, **self.parsed(Back))
        names = self.access.allows("items.view")
        return Response({"task": task_content(task, slug, names_items=names)})


class Correct(QueueView):
    @extend_schema(request=Correction, responses=Corrected)
    def post(self, request: Request, slug: str) -> Response:
        """Give another answer in place of an earlier one of one's own."""
        body = self.parsed(Correction)
        label_id = body.pop("label")
        labels = Label.objects.filter(work_item__batch__project=self.access.project)
        if not labels.filter(pk=label_id).exists():
            raise Http404
        label = queue.correct(user=self.user, label_id=label_id, **body)
        return Response({"label": label_content(label)})


class MineQuery(PageQuery):
    q = serializers.CharField(
        required=False, max_length=MAX_SEARCH, help_text="Part of the item, of its name, comment or answer."
    )


class OwnLabelBody(LabelBody):
    item = ItemBody()  # type: ignore[assignment]
    name = serializers.CharField(help_text="Of the item, without folders.")
    counted = serializers.BooleanField(
        help_text="It has been counted in a result, which a correction makes invalid."
    )


class Mine(ProjectView):
    actions = {"GET": "label"}

    @extend_schema(parameters=[MineQuery], responses=page_of(OwnLabelBody))
    def get(self, request: Request, slug: str) -> Response:
        """One's own answers, in their newest version, the newest first; `queue/correct/` corrects one."""
        asked = self.query(MineQuery)
        found = own_labels(self.access.project, self.access.user, search=asked.get("q", ""))
        return self.paged(OwnLabelPages(), found, lambda label: _own(label, slug))


class OwnLabelPages(NewestFirst):
    long = ("item__text", "value")


def _own(label: Label, slug: str) -> dict[str, Any]:
    return {
        **label_content(label),
        "item": item_content(label.item, slug),
        "name": label.item.short_name,
        "counted": label.work_item.batch.locked_at is not None,
    }


# --- Items that everybody skipped ---------------------------------------------------------------------------


class StuckBody(serializers.Serializer[Any]):
    work_item = serializers.IntegerField()
    item = ItemBody()
    external_id = serializers.CharField()
    has_answers = serializers.BooleanField(help_text="Some of several people have answered.")


class WorkDecision(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(
        choices=list(queue.STUCK_ITEM_DECISIONS),
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
        decided = queue.decide_on_stuck_item(
            work_item=work_item, actor=self.access.user, **self.parsed(WorkDecision)
        )
        return Response({"work_item": decided.pk, "state": decided.state})


def _stuck(row: Any, slug: str) -> dict[str, Any]:
    return {
        "work_item": row.pk,
        "item": item_content(row.item, slug),
        "external_id": row.item.external_id,
        "has_answers": row.has_answers,
    }
