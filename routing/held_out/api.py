"""The part of /api/v1/ about items that are held out, and who is paused by them."""

from typing import Any

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import NewestFirst, ProjectView
from annotation.common.api.fields import NumberField
from annotation.common.api.schema import Nothing, PageQuery, page_of
from annotation.labelling.gold import resume
from annotation.models import HeldOutItem, User
from routing.held_out.manage import (
    LARGEST_SHARE,
    LEAST_LAST,
    MAX_EXPLANATION,
    MOST,
    MOST_LAST,
    change_settings,
    hold_out,
    release,
    set_answer,
)
from routing.held_out.results import PersonChecked, people_checked


class HoldOutFields(serializers.Serializer[Any]):
    """Items that are kept out of every later run."""

    purpose = serializers.ChoiceField(choices=[one.value for one in HeldOutItem.FOR_PEOPLE])
    size = serializers.IntegerField(
        min_value=1, max_value=MOST, required=False, allow_null=True, help_text="So many, drawn at random."
    )
    names = serializers.ListField(
        child=serializers.CharField(max_length=255, trim_whitespace=False),
        max_length=MOST,
        required=False,
        help_text="External ids of the items, in place of a draw.",
    )


class HeldOutBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    external_id = serializers.CharField()
    purpose = serializers.CharField()
    at_random = serializers.BooleanField(help_text="It was drawn; else somebody named it.")
    answer = serializers.JSONField(allow_null=True, help_text="The known one; null: the item is not used.")
    explanation = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class KnownFields(serializers.Serializer[Any]):
    answer = serializers.JSONField()
    explanation = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=MAX_EXPLANATION
    )


class CheckedBody(serializers.Serializer[Any]):
    user = serializers.IntegerField()
    username = serializers.CharField()
    answered = serializers.IntegerField(help_text="Gold items.")
    right = serializers.IntegerField(help_text="Of these, by the first answer.")
    low = serializers.FloatField(allow_null=True, help_text="Of their share, exact, 95 percent.")
    high = serializers.FloatField(allow_null=True)
    latest = serializers.IntegerField(help_text="Answers that the bar looks at.")
    latest_right = serializers.IntegerField()
    practised = serializers.IntegerField(help_text="Practice items answered.")
    paused_at = serializers.DateTimeField(allow_null=True)


class CheckingFields(serializers.Serializer[Any]):
    practice_first = serializers.BooleanField(
        required=False, help_text="Annotators answer the practice items before they are given others."
    )
    gold_share = NumberField(
        required=False, min_value=0, max_value=LARGEST_SHARE, help_text="Of what annotators are given."
    )
    gold_bar = NumberField(
        required=False, min_value=0, max_value=1, help_text="Whoever has a smaller share right is paused."
    )
    gold_last = serializers.IntegerField(
        required=False, min_value=LEAST_LAST, max_value=MOST_LAST, help_text="Of so many latest answers."
    )


class CheckingBody(serializers.Serializer[Any]):
    practice_first = serializers.BooleanField()
    gold_share = serializers.FloatField()
    gold_bar = serializers.FloatField()
    gold_last = serializers.IntegerField()
    people = CheckedBody(many=True)


class HeldOut(ProjectView):
    actions = {"GET": "project.edit", "POST": "project.edit"}

    @extend_schema(parameters=[PageQuery], responses=page_of(HeldOutBody))
    def get(self, request: Request, slug: str) -> Response:
        """All items that are held out, the newest first, with their known answers."""
        return self.paged(NewestFirst(), self.access.project.held_out.select_related("item"), _content)

    @extend_schema(request=HoldOutFields, responses={201: HeldOutBody(many=True)})
    def post(self, request: Request, slug: str) -> Response:
        """Keep items out of every later run."""
        made = hold_out(access=self.access, **self.parsed(HoldOutFields))
        rows = self.access.project.held_out.select_related("item").filter(pk__in=[one.pk for one in made])
        return Response([_content(one) for one in rows], status=status.HTTP_201_CREATED)


class HeldOutDetail(ProjectView):
    actions = {"PUT": "project.edit", "DELETE": "project.edit"}

    @extend_schema(request=KnownFields, responses=HeldOutBody)
    def put(self, request: Request, slug: str, held_id: int) -> Response:
        """Set the known answer of an item, and why."""
        held = set_answer(access=self.access, held=_held(self, held_id), **self.parsed(KnownFields))
        return Response(_content(held))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, held_id: int) -> Response:
        """Give an item back to later runs, unless it was drawn at random or somebody has been given it."""
        release(access=self.access, held=_held(self, held_id))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Checking(ProjectView):
    actions = {"GET": "project.edit", "PATCH": "project.edit"}

    @extend_schema(responses=CheckingBody)
    def get(self, request: Request, slug: str) -> Response:
        """How annotators practise and are checked, and how they did."""
        return Response(self._content())

    @extend_schema(request=CheckingFields, responses=CheckingBody)
    def patch(self, request: Request, slug: str) -> Response:
        """Change how annotators practise and are checked."""
        change_settings(access=self.access, **self.parsed(CheckingFields))
        return Response(self._content())

    def _content(self) -> dict[str, Any]:
        project = self.access.project
        return {
            "practice_first": project.practice_first,
            "gold_share": project.gold_share,
            "gold_bar": project.gold_bar,
            "gold_last": project.gold_last,
            "people": [_person(one) for one in people_checked(project)],
        }


class Resume(ProjectView):
    actions = {"POST": "project.edit"}

    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, slug: str, user_id: int) -> Response:
        """Let a paused person go on; their answers count anew from then on."""
        self.parsed(Nothing)
        user = User.objects.filter(pk=user_id, memberships__project=self.access.project).first()
        if user is None:
            raise Http404("no such member")
        resume(project=self.access.project, actor=self.access.user, user=user)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _held(view: ProjectView, held_id: int) -> HeldOutItem:
    rows = view.access.project.held_out.select_related("item")
    found: HeldOutItem | None = rows.filter(pk=held_id).first()
    if found is None:
        raise Http404("no such item is held out")
    return found


def _content(held: HeldOutItem) -> dict[str, Any]:
    return {
        "id": held.pk,
        "external_id": held.item.external_id,
        "purpose": held.purpose,
        "at_random": held.at_random,
        "answer": held.answer,
        "explanation": held.explanation,
        "created_at": held.created_at,
    }


def _person(one: PersonChecked) -> dict[str, Any]:
    return {
        "user": one.user.pk,
        "username": one.user.get_username(),
        "answered": one.answered,
        "right": one.right,
        "low": one.low,
        "high": one.high,
        "latest": one.latest,
        "latest_right": one.latest_right,
        "practised": one.practised,
        "paused_at": one.paused_at,
    }


P = "projects/<slug:slug>/"
urlpatterns = [
    path(f"{P}held-out/", HeldOut.as_view(), name="api_held_out"),
    path(f"{P}held-out/<row:held_id>/", HeldOutDetail.as_view(), name="api_held_out_item"),
    path(f"{P}checking/", Checking.as_view(), name="api_checking"),
    path(f"{P}checking/<row:user_id>/resume/", Resume.as_view(), name="api_resume"),
]
