"""What waits for a reviewer (items that people label differently, and flags), and how far people agree."""

from dataclasses import asdict
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import OldestItemsFirst, ProjectView
from annotation.common.api.schema import Nothing, PageQuery, page_of
from annotation.labelling.comments import resolve_flag
from annotation.labelling.labels_of_record import disagreements
from annotation.labelling.serializers import MAX_ID, ItemBody, item_content
from annotation.labelling.validation import MAX_COMMENT
from annotation.models import Comment, Label, Settlement, WorkItem
from annotation.review.agreement_queries import Agreement, agreement
from annotation.review.decide import decide_dispute
from annotation.review.queries import Dispute, open_flags, with_answers


class ReviewQuery(PageQuery):
    names = serializers.BooleanField(
        required=False, default=False, help_text="Who answered, also where items are labelled blind."
    )


class GivenBody(serializers.Serializer[Any]):
    label = serializers.IntegerField(help_text="Id of the label.")  # type: ignore[assignment]
    value = serializers.JSONField()
    comment = serializers.CharField(allow_blank=True)
    annotator = serializers.CharField(allow_null=True)


class DisputeBody(serializers.Serializer[Any]):
    work_item = serializers.IntegerField()
    item = ItemBody()
    answers = GivenBody(many=True)


class Decision(serializers.Serializer[Any]):
    work_item = serializers.IntegerField(min_value=1, max_value=MAX_ID)
    value = serializers.JSONField(help_text="The label of record, in the form of the project's task type.")
    comment = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=MAX_COMMENT, trim_whitespace=False
    )
    confirm = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Once labels are locked: that what rests on them may become invalid.",
    )


class SettlementBody(serializers.Serializer[Any]):
    work_item = serializers.IntegerField()
    item = serializers.IntegerField(help_text="Id of the item.")
    value = serializers.JSONField()
    method = serializers.ChoiceField(choices=Settlement.Method.choices)
    version = serializers.IntegerField()
    comment = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class FlagBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    item = ItemBody()
    text = serializers.CharField(allow_blank=True)
    author = serializers.CharField()
    created_at = serializers.DateTimeField()
    resolved_at = serializers.DateTimeField(allow_null=True)


class ReviewList(ProjectView):
    actions = {"GET": "review", "POST": "review"}

    @extend_schema(parameters=[ReviewQuery], responses=page_of(DisputeBody))
    def get(self, request: Request, slug: str) -> Response:
        """Items that everybody who was asked has answered, and answered differently."""
        names = self.query(ReviewQuery)["names"]
        pages = OldestItemsFirst()
        work = disagreements(self.access.project, self.access.user)
        page = pages.paginate_queryset(work, request, view=self) or []
        return pages.get_paginated_response([_dispute(found, slug, names) for found in with_answers(page)])

    @extend_schema(request=Decision, responses=SettlementBody)
    def post(self, request: Request, slug: str) -> Response:
        """Decide what the label of record of an item is. Whoever decided may change it."""
        body = self.parsed(Decision)
        mine = WorkItem.objects.filter(batch__project=self.access.project, slot=0, pk=body["work_item"])
        work_item = mine.select_related("batch__project", "item").first()
        if work_item is None:
            raise Http404
        settlement = decide_dispute(
            project=self.access.project,
            actor=self.access.user,
            work_item=work_item,
            value=body["value"],
            comment=body["comment"],
            confirmed=body["confirm"],
        )
        return Response(
            {
                "work_item": work_item.pk,
                "item": settlement.item_id,
                "value": settlement.value,
                "method": settlement.method,
                "version": settlement.version,
                "comment": settlement.comment,
                "created_at": settlement.created_at,
            }
        )


class FlagList(ProjectView):
    actions = {"GET": "review"}

    @extend_schema(parameters=[PageQuery], responses=page_of(FlagBody))
    def get(self, request: Request, slug: str) -> Response:
        """Flags that nobody has resolved. One that was set while labelling for a run appears once that is
        analysed.
        """
        return self.paged(OldestItemsFirst(), open_flags(self.access.project), lambda flag: _flag(flag, slug))


class FlagResolve(ProjectView):
    actions = {"POST": "review"}

    @extend_schema(request=None, responses=FlagBody)
    def post(self, request: Request, slug: str, comment_id: int) -> Response:
        """Say that somebody has seen to it."""
        self.parsed(Nothing)
        project = self.access.project
        flags = Comment.objects.select_related("item__image", "item__project", "author")
        flag = flags.filter(item__project=project, is_flag=True, pk=comment_id).first()
        hidden = flag and flag.resolved_at is None and not open_flags(project).filter(pk=comment_id).exists()
        if flag is None or hidden:
            raise Http404
        resolve_flag(comment=flag, actor=self.access.user)
        return Response(_flag(flag, slug))


def _dispute(dispute: Dispute, slug: str, names: bool) -> dict[str, Any]:
    shown = names or not dispute.work_item.batch.blind
    return {
        "work_item": dispute.work_item.pk,
        "item": item_content(dispute.work_item.item, slug),
        "answers": [_given(label, shown) for label in dispute.answers],
    }


def _given(label: Label, named: bool) -> dict[str, Any]:
    return {
        "label": label.pk,
        "value": label.value,
        "comment": label.comment,
        "annotator": label.annotator.get_username() if named else None,
    }


def _flag(flag: Comment, slug: str) -> dict[str, Any]:
    return {
        "id": flag.pk,
        "item": item_content(flag.item, slug),
        "text": flag.text,
        "author": flag.author.get_username(),
        "created_at": flag.created_at,
        "resolved_at": flag.resolved_at,
    }


# --- Agreement ----------------------------------------------------------------------------------------------


class AnnotatorAgreementBody(serializers.Serializer[Any]):
    answers = serializers.IntegerField()
    settled = serializers.IntegerField(help_text="Of these the ones whose item has a label of record.")
    share_equal_to_record = serializers.FloatField(allow_null=True, help_text="Over `settled`.")
    kappa = serializers.FloatField(allow_null=True)
    sampled = serializers.BooleanField(
        help_text="On a random sample of the items that several people labelled, as they are many or long."
    )


class EstimateBody(serializers.Serializer[Any]):
    """A measure with its 95 % interval; null where it is not defined."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class TogetherBody(serializers.Serializer[Any]):
    equal = EstimateBody(help_text="Share of equal answers.")
    fleiss = EstimateBody(help_text="Fleiss' kappa.")
    alpha = EstimateBody(help_text="Krippendorff's alpha, nominal.")


class PersonAgreementBody(AnnotatorAgreementBody):
    annotator = serializers.CharField()


class PairBody(serializers.Serializer[Any]):
    first = serializers.CharField()
    second = serializers.CharField()
    shared = serializers.IntegerField(help_text="Items that both labelled.")
    equal = serializers.FloatField()
    kappa = serializers.FloatField(allow_null=True)


class ChoiceAgreementBody(serializers.Serializer[Any]):
    choice = serializers.CharField(help_text="Its key.")
    given = serializers.IntegerField()
    again = serializers.FloatField(
        allow_null=True, help_text="Share of others who gave it too, where somebody gave it."
    )
    kappa = serializers.FloatField(allow_null=True)


class ConfusedBody(serializers.Serializer[Any]):
    first = serializers.CharField()
    second = serializers.CharField()
    pairs = serializers.IntegerField()
    share = serializers.FloatField()


class AgreementBody(serializers.Serializer[Any]):
    items = serializers.IntegerField(help_text="With two answers or more.")
    used = serializers.IntegerField(help_text="Of these, a random sample where they are many.")
    answers = serializers.IntegerField()
    left_out = serializers.BooleanField(help_text="Items of a run that is not analysed are left out.")
    together = TogetherBody()
    interval = EstimateBody(allow_null=True, help_text="Krippendorff's alpha for numbers.")
    people = PersonAgreementBody(many=True)
    pairs = PairBody(many=True, help_text="Those who agree least first.")
    people_left_out = serializers.IntegerField(help_text="Of the pairs, as they are too many.")
    choices = ChoiceAgreementBody(many=True)
    confused = ConfusedBody(many=True, help_text="Labels that are given for one another.")


class AgreementDetail(ProjectView):
    actions = {"GET": "agreement.view"}

    @extend_schema(responses=AgreementBody)
    def get(self, request: Request, slug: str) -> Response:
        """How far people agree."""
        return Response(_content(agreement(self.access.project)))


def _content(found: Agreement) -> dict[str, Any]:
    return {
        "items": found.items,
        "used": found.used,
        "answers": found.answers,
        "left_out": found.left_out,
        "together": asdict(found.together),
        "interval": asdict(found.interval) if found.interval else None,
        "people": [
            {"annotator": entry.user.get_username(), **asdict(entry.agreement)} for entry in found.people
        ],
        "pairs": [
            {
                "first": pair.first.get_username(),
                "second": pair.second.get_username(),
                "shared": pair.shared,
                "equal": pair.equal,
                "kappa": pair.kappa,
            }
            for pair in found.pairs
        ],
        "people_left_out": found.people_left_out,
        "choices": [
            {"choice": entry.choice.key, "given": entry.given, "again": entry.again, "kappa": entry.kappa}
            for entry in found.choices
        ],
        "confused": [
            {
                "first": entry.first.key,
                "second": entry.second.key,
                "pairs": entry.pairs,
                "share": entry.share,
            }
            for entry in found.confused
        ],
    }
