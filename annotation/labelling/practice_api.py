"""Practice by a program: as on the page."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.labelling.practice import answer_practice, practice_state
from annotation.labelling.serializers import MAX_ID, ItemBody, item_content


class PracticeItemBody(serializers.Serializer[Any]):
    practice = serializers.IntegerField(help_text="Goes with the answer.")
    item = ItemBody()


class PracticeBody(serializers.Serializer[Any]):
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    next = PracticeItemBody(allow_null=True, help_text="What to answer now; null once all is answered.")


class PracticeFields(serializers.Serializer[Any]):
    practice = serializers.IntegerField(min_value=1, max_value=MAX_ID)
    value = serializers.JSONField()


class PracticeResultBody(serializers.Serializer[Any]):
    value = serializers.JSONField(help_text="The first answer, which stays.")
    is_right = serializers.BooleanField()
    answer = serializers.JSONField(help_text="The known one.")
    explanation = serializers.CharField(allow_blank=True)


class Practice(ProjectView):
    actions = {"GET": "label", "POST": "label"}

    @extend_schema(responses=PracticeBody)
    def get(self, request: Request, slug: str) -> Response:
        """How far somebody is with the practice items, and the next one."""
        state = practice_state(self.access.project, self.access.user)
        held = state.next
        return Response(
            {
                "done": state.done,
                "total": state.total,
                "next": held and {"practice": held.pk, "item": item_content(held.item, slug)},
            }
        )

    @extend_schema(request=PracticeFields, responses=PracticeResultBody)
    def post(self, request: Request, slug: str) -> Response:
        """Answer a practice item, and learn what is known of it. It counts as no label."""
        body = self.parsed(PracticeFields)
        given = answer_practice(
            project=self.access.project,
            user=self.access.user,
            held_out_id=body["practice"],
            value=body["value"],
        )
        return Response(
            {
                "value": given.value,
                "is_right": given.is_right,
                "answer": given.held_out.answer,
                "explanation": given.held_out.explanation,
            }
        )
