"""The part of /api/v1/ about guideline rounds."""

from dataclasses import asdict
from typing import Any

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import NewestFirst, ProjectView
from annotation.common.api.conditional import created
from annotation.common.api.schema import Nothing, PageQuery, page_of
from annotation.labelling.validation import MAX_COMMENT
from annotation.review.api import EstimateBody
from routing.models import GuidelineRound, RoundNote
from routing.rounds.results import figures_of, people_in, result_of
from routing.rounds.start import FEWEST, MOST, USUAL, add_note, close_round, item_of, start_round


class RoundFields(serializers.Serializer[Any]):
    """Which items a round has, and who answers them."""

    size = serializers.IntegerField(
        min_value=FEWEST,
        max_value=MOST,
        required=False,
        allow_null=True,
        help_text=f"So many items, drawn at random; {USUAL} where neither this nor `names` is given.",
    )
    names = serializers.ListField(
        child=serializers.CharField(max_length=255, trim_whitespace=False),
        max_length=MOST,
        required=False,
        help_text="External ids of the items, in place of a draw.",
    )
    people = serializers.ListField(
        child=serializers.CharField(max_length=150),
        required=False,
        help_text="Usernames of members who label; all annotators where there are none.",
    )


class RoundFiguresBody(serializers.Serializer[Any]):
    """How far people agree."""

    compared = serializers.IntegerField(help_text="Items with two answers or more.")
    disputed = serializers.IntegerField(help_text="Of these, those on which people differ.")
    equal = EstimateBody(help_text="Share of equal answers among all pairs about one item.")
    alpha = EstimateBody(help_text="Krippendorff's alpha; by distance where the answers are numbers.")


class AskedBody(serializers.Serializer[Any]):
    username = serializers.CharField()
    asked = serializers.IntegerField()
    done = serializers.IntegerField()


class RoundBody(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    by_name = serializers.BooleanField(help_text="Somebody named its items; else they were drawn at random.")
    items = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)
    people = AskedBody(many=True)
    figures = RoundFiguresBody(allow_null=True, help_text="Once it is closed.")


class SaidBody(serializers.Serializer[Any]):
    username = serializers.CharField()
    value = serializers.JSONField()
    comment = serializers.CharField()


class RoundNoteBody(serializers.Serializer[Any]):
    author = serializers.CharField()
    text = serializers.CharField()
    value = serializers.JSONField(allow_null=True)
    created_at = serializers.DateTimeField()


class RoundItemBody(serializers.Serializer[Any]):
    external_id = serializers.CharField()
    differs = serializers.BooleanField()
    answers = SaidBody(many=True)
    notes = RoundNoteBody(many=True, help_text="What was said of it; one with a value decides.")


class RoundDetailBody(RoundBody):
    guidelines = serializers.CharField(help_text="As they were when it began.")
    each = RoundItemBody(many=True, help_text="Its items with who said what, once it is closed.")


class RoundNoteFields(serializers.Serializer[Any]):
    external_id = serializers.CharField(max_length=255, trim_whitespace=False)
    text = serializers.CharField(required=False, allow_blank=True, max_length=MAX_COMMENT, default="")
    value = serializers.JSONField(
        required=False, allow_null=True, default=None, help_text="What the label should have been; reviewers."
    )


class Rounds(ProjectView):
    actions = {"GET": "project.edit", "POST": "project.edit"}

    @extend_schema(parameters=[PageQuery], responses=page_of(RoundBody))
    def get(self, request: Request, slug: str) -> Response:
        """All rounds, the newest first, with how far people agreed."""
        rows = self.access.project.rounds.select_related("batch", "project")
        return self.paged(NewestFirst(), rows, _content)

    @extend_schema(request=RoundFields, responses={201: RoundBody})
    def post(self, request: Request, slug: str) -> Response:
        """Have people answer items that are in no draw, blind to each other."""
        made = start_round(access=self.access, **self.parsed(RoundFields))
        return created(_content(made), "api_round", slug=slug, number=made.number)


class RoundDetail(ProjectView):
    actions = {"GET": "project.edit"}

    @extend_schema(responses=RoundDetailBody)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """One round; who said what once it is closed."""
        found = _round(self, number)
        each = [] if found.closed_at is None else [_item(one) for one in result_of(found).items]
        return Response({**_content(found), "guidelines": found.guidelines, "each": each})


class RoundClose(ProjectView):
    actions = {"POST": "project.edit"}

    @extend_schema(request=None, responses=RoundBody)
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Ask nobody any more, and let everybody see who said what."""
        self.parsed(Nothing)
        found = _round(self, number)
        close_round(access=self.access, found=found)
        return Response(_content(found))


class RoundNotes(ProjectView):
    actions = {"POST": "label"}

    @extend_schema(request=RoundNoteFields, responses={201: RoundNoteBody})
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Say something about an item of a closed round, or decide about it."""
        body = self.parsed(RoundNoteFields)
        found = _round(self, number)
        item = item_of(found, body["external_id"])
        note = add_note(access=self.access, found=found, item=item, text=body["text"], value=body["value"])
        return Response(_note(note), status=status.HTTP_201_CREATED)


def _round(view: ProjectView, number: int) -> GuidelineRound:
    rows = view.access.project.rounds.select_related("batch", "project")
    found: GuidelineRound | None = rows.filter(number=number).first()
    if found is None:
        raise Http404("no such round")
    return found


def _content(found: GuidelineRound) -> dict[str, Any]:
    return {
        "number": found.number,
        "by_name": found.by_name,
        "items": found.items.count(),
        "created_at": found.created_at,
        "closed_at": found.closed_at,
        "people": [
            {"username": user.get_username(), "asked": asked, "done": done}
            for user, asked, done in people_in(found)
        ],
        "figures": None if found.closed_at is None else asdict(figures_of(found)),
    }


def _item(one: Any) -> dict[str, Any]:
    return {
        "external_id": one.item.external_id,
        "differs": one.differs,
        "answers": [
            {"username": label.annotator.get_username(), "value": label.value, "comment": label.comment}
            for label in one.answers
        ],
        "notes": [_note(note) for note in one.notes],
    }


def _note(note: RoundNote) -> dict[str, Any]:
    return {
        "author": note.author.get_username(),
        "text": note.text,
        "value": note.value,
        "created_at": note.created_at,
    }


urlpatterns = [
    path("projects/<slug:slug>/rounds/", Rounds.as_view(), name="api_rounds"),
    path("projects/<slug:slug>/rounds/<row:number>/", RoundDetail.as_view(), name="api_round"),
    path("projects/<slug:slug>/rounds/<row:number>/close/", RoundClose.as_view(), name="api_round_close"),
    path("projects/<slug:slug>/rounds/<row:number>/notes/", RoundNotes.as_view(), name="api_round_notes"),
]
