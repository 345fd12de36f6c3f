"""Labelling by a program: the same queue as the page.

Claim an item, send its label with the claim's token, get the next one in the same answer.
"""

from typing import Any, cast

from django.http import Http404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import queue
from annotation.api.base import ProjectView
from annotation.api.content import label_content, task_content
from annotation.models import Label, Skip, User, WorkItem
from annotation.queue.values import MAX_COMMENT

MAX_ID = 2**63 - 1


class Nothing(serializers.Serializer[Any]):
    """No field at all."""


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


class Submission(Held, Answer):
    pass


class Correction(Answer):
    label = serializers.IntegerField(min_value=1, max_value=MAX_ID)  # type: ignore[assignment]


class Skipped(Held):
    reason = serializers.ChoiceField(choices=Skip.Reason.choices)
    comment = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=MAX_COMMENT, trim_whitespace=False
    )


class Back(serializers.Serializer[Any]):
    before = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=MAX_ID
    )


class QueueView(ProjectView):
    actions = {"POST": "label"}

    @property
    def user(self) -> User:
        return cast(User, self.request.user)

    def held(self, serializer_class: type[Held]) -> dict[str, Any]:
        """The body with `work_item_id`. A work item of another project does not exist here."""
        body = self.parsed(serializer_class)
        body["work_item_id"] = body.pop("work_item")
        if not WorkItem.objects.filter(pk=body["work_item_id"], batch__project=self.access.project).exists():
            raise Http404
        return body

    def next_task(self) -> dict[str, Any] | None:
        task = queue.claim(project=self.access.project, user=self.user)
        return task_content(task, self.access.project.slug)


class Claim(QueueView):
    def post(self, request: Request, slug: str) -> Response:
        self.parsed(Nothing)
        return Response({"task": self.next_task()})


class Submit(QueueView):
    def post(self, request: Request, slug: str) -> Response:
        label = queue.submit(user=self.user, **self.held(Submission))
        return Response({"label": label_content(label), "task": self.next_task()})


class SkipItem(QueueView):
    def post(self, request: Request, slug: str) -> Response:
        queue.skip(user=self.user, **self.held(Skipped))
        return Response({"task": self.next_task()})


class Heartbeat(QueueView):
    def post(self, request: Request, slug: str) -> Response:
        return Response({"expires_at": queue.heartbeat(user=self.user, **self.held(Held))})


class Release(QueueView):
    def post(self, request: Request, slug: str) -> Response:
        return Response({"released": queue.release(user=self.user, **self.held(Held))})


class Undo(QueueView):
    def post(self, request: Request, slug: str) -> Response:
        task = queue.undo(project=self.access.project, user=self.user, **self.parsed(Back))
        return Response({"task": task_content(task, slug)})


class Correct(QueueView):
    def post(self, request: Request, slug: str) -> Response:
        body = self.parsed(Correction)
        label_id = body.pop("label")
        labels = Label.objects.filter(work_item__batch__project=self.access.project)
        if not labels.filter(pk=label_id).exists():
            raise Http404
        label = queue.correct(user=self.user, label_id=label_id, **body)
        return Response({"label": label_content(label)})
