"""The part of /api/v1/ about labels that are merged or split."""

from dataclasses import asdict
from typing import Any

from django.urls import path
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import OldestFirst, ProjectView
from annotation.common.api.schema import PageQuery, page_of
from annotation.errors import InputError
from annotation.models import ReplacedChoice
from routing.label_set.replace import (
    MOST_AT_ONCE,
    MOST_PARTS,
    preview_replacement,
    replace_label,
    store_new_choices,
    to_choose,
    with_options,
)


class ReplacementFields(serializers.Serializer[Any]):
    """Which label is given no more, and which ones stand in its place."""

    key = serializers.CharField(max_length=100, trim_whitespace=False, help_text="Of the label.")
    into = serializers.ListField(
        child=serializers.CharField(max_length=100),
        min_length=1,
        max_length=MOST_PARTS,
        help_text="Key or name of the one that it is merged into; of several it is split, and those that "
        "there are not are added.",
    )


class ReplacementOutlook(serializers.Serializer[Any]):
    """What it would touch. Nothing of it is written anew: what is stored is read otherwise."""

    labels = serializers.IntegerField(help_text="Labels by people that give it.")
    items = serializers.IntegerField(help_text="Items with such a label.")
    predictions = serializers.IntegerField(help_text="Answers of models that give it.")
    work = serializers.IntegerField(help_text="Items for which people are asked now.")
    drafts = serializers.IntegerField(help_text="Answers not sent yet that give it.")
    known_answers = serializers.IntegerField(
        help_text="Practice and gold items whose known answer gives it; where it is split they are not used "
        "until they have another one."
    )
    runs = serializers.ListField(child=serializers.IntegerField(), help_text="Their numbers.")
    deliveries = serializers.IntegerField(help_text="Made by these runs; their files stay as they are.")
    invalid = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Runs whose certificate will be marked: their loss counts how far labels are apart.",
    )
    closed = serializers.ListField(
        child=serializers.IntegerField(), help_text="Runs that can take in no later items any more."
    )
    prompts = serializers.ListField(
        child=serializers.CharField(), help_text="Sources with a solved example that answers it."
    )


class ReplacedBody(serializers.Serializer[Any]):
    key = serializers.CharField()
    name = serializers.CharField()
    into = serializers.ListField(child=serializers.CharField(), help_text="Keys; several: it was split.")
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()


class ToChooseBody(serializers.Serializer[Any]):
    """An item whose label was split."""

    id = serializers.IntegerField()
    external_id = serializers.CharField()
    stored = serializers.JSONField(help_text="The label as it was stored: a key, or a list of keys.")
    options = serializers.ListField(child=serializers.CharField(), help_text="Keys of which one is chosen.")


class ChosenAnewFields(serializers.Serializer[Any]):
    labels = serializers.DictField(
        child=serializers.CharField(max_length=100, trim_whitespace=False),
        help_text=f"By the item's external id the key that is chosen; at most {MOST_AT_ONCE}.",
    )


class ChosenAnewBody(serializers.Serializer[Any]):
    chosen = serializers.IntegerField()


class Replacements(ProjectView):
    actions = {"GET": "project.edit", "POST": "project.edit"}

    @extend_schema(parameters=[PageQuery], responses=page_of(ReplacedBody))
    def get(self, request: Request, slug: str) -> Response:
        """Labels that are given no more, the first one first."""
        rows = self.access.project.replaced_choices.select_related("created_by")
        return self.paged(OldestFirst(), rows, _content)

    @extend_schema(request=ReplacementFields, responses={201: ReplacedBody})
    def post(self, request: Request, slug: str) -> Response:
        """Merge a label into another one, or split it into several."""
        replaced = replace_label(access=self.access, **self.parsed(ReplacementFields))
        return Response(_content(replaced), status=status.HTTP_201_CREATED)


class ReplacementOutlooks(ProjectView):
    actions = {"POST": "project.edit"}

    @extend_schema(request=ReplacementFields, responses=ReplacementOutlook)
    def post(self, request: Request, slug: str) -> Response:
        """What it would touch; nothing is stored."""
        found = preview_replacement(project=self.access.project, **self.parsed(ReplacementFields))
        return Response(asdict(found.effects))


class ToChoose(ProjectView):
    actions = {"GET": "project.edit", "POST": "project.edit"}

    @extend_schema(parameters=[PageQuery], responses=page_of(ToChooseBody))
    def get(self, request: Request, slug: str) -> Response:
        """Items whose label was split, and that nobody has given one of those in its place."""
        pages = OldestFirst()
        items = pages.paginate_queryset(to_choose(self.access), request, view=self) or []
        return pages.get_paginated_response(
            [
                {
                    "id": one.item.pk,
                    "external_id": one.item.external_id,
                    "stored": one.label,
                    "options": one.options,
                }
                for one in with_options(self.access, items)
            ]
        )

    @extend_schema(request=ChosenAnewFields, responses=ChosenAnewBody)
    def post(self, request: Request, slug: str) -> Response:
        """Give items one of the labels in a split one's place."""
        labels = self.parsed(ChosenAnewFields)["labels"]
        rows = self.access.project.items.filter(external_id__in=list(labels)[: MOST_AT_ONCE + 1])
        ids = dict(rows.values_list("external_id", "pk"))
        if unknown := [name for name in labels if name not in ids]:
            raise InputError(
                _("There is no item “%(name)s” in this project.") % {"name": unknown[0][:100]}, where="labels"
            )
        chosen = {ids[name]: key for name, key in labels.items()}
        return Response({"chosen": store_new_choices(access=self.access, chosen=chosen)})


def _content(row: ReplacedChoice) -> dict[str, Any]:
    return {
        "key": row.key,
        "name": row.name,
        "into": row.into,
        "created_by": row.created_by.get_username(),
        "created_at": row.created_at,
    }


urlpatterns = [
    path("projects/<slug:slug>/choices/replaced/", Replacements.as_view(), name="api_replaced_choices"),
    path(
        "projects/<slug:slug>/choices/replaced/outlook/",
        ReplacementOutlooks.as_view(),
        name="api_replaced_choices_outlook",
    ),
    path(
        "projects/<slug:slug>/choices/replaced/to-choose/",
        ToChoose.as_view(),
        name="api_replaced_choices_to_choose",
    ),
]
