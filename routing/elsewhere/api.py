"""The part of /api/v1/ about what is labelled in another program."""

from dataclasses import asdict
from typing import Any

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import path, reverse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.streams import NDJSON, AnyType, NdjsonRenderer, ndjson
from annotation.common.api.uploads import TakesStream, receive_body
from annotation.errors import InputError
from annotation.items.image_links import LONGEST
from routing.elsewhere import cvat
from routing.elsewhere.answers import MOST, answers_in, take_back
from routing.elsewhere.cvat_files import MOST_BYTES
from routing.elsewhere.work import FORMATS, HYPAC, PARTS, ROUTED, hand_out, waiting
from routing.runs.api import RunView

MOST_PEOPLE, MOST_NAME = 1000, 254
PART_HELP = "Items that people label once the run is routed, or those of its calibration set, blind."


class PartQuery(serializers.Serializer[Any]):
    part = serializers.ChoiceField(choices=PARTS, required=False, default=ROUTED, help_text=PART_HELP)


class WorkQuery(PartQuery):
    shape = serializers.ChoiceField(choices=FORMATS, required=False, default=HYPAC)
    image_seconds = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=LONGEST,
        help_text="Give each image by an address that needs no token and holds for so long; otherwise by its "
        "name alone.",
    )


class CvatQuery(PartQuery):
    annotator = serializers.CharField(
        max_length=MOST_NAME,
        help_text="Who drew: a member, by username or confirmed e-mail address.",
    )
    empty = serializers.ChoiceField(
        choices=cvat.EMPTY,
        required=False,
        default=cvat.WAIT,
        help_text="What an image without a shape says: `wait`, nobody looked at it yet; `nothing`, there is "
        "nothing to draw on it.",
    )


class GivenFields(serializers.Serializer[Any]):
    rows = serializers.ListField(
        child=serializers.DictField(),
        allow_empty=False,
        max_length=MOST,
        help_text="Tasks of Label Studio's export with their annotations, or objects with item, value and "
        "annotator.",
    )
    people = serializers.DictField(
        child=serializers.CharField(),
        required=False,
        default=dict,
        help_text="Username here of each person whom the rows name otherwise, such as `user 3`.",
    )

    part = serializers.ChoiceField(choices=PARTS, required=False, default=ROUTED, help_text=PART_HELP)

    def validate_people(self, people: dict[str, str]) -> dict[str, str]:
        if len(people) > MOST_PEOPLE or any(len(one) > MOST_NAME for pair in people.items() for one in pair):
            words = _("At most %(people)s people, each named in %(letters)s characters.")
            raise serializers.ValidationError(words % {"people": MOST_PEOPLE, "letters": MOST_NAME})
        return people


class WaitingWorkBody(serializers.Serializer[Any]):
    part = serializers.ChoiceField(choices=PARTS)
    waiting = serializers.IntegerField(help_text="Items that wait for an answer and are with nobody.")
    blind = serializers.BooleanField(help_text="Whether a certificate will rest on their labels.")
    conditions = serializers.ListField(
        child=serializers.CharField(), help_text="What must not be shown or done there, in sentences."
    )
    note = serializers.CharField(
        allow_blank=True, help_text="Why no item will wait, where the run leaves people nothing to do."
    )


class RefusedBody(serializers.Serializer[Any]):
    row = serializers.IntegerField(help_text="From 1.")
    item = serializers.IntegerField(allow_null=True, help_text="Its number, as the row has it.")
    name = serializers.CharField(
        allow_blank=True, help_text="The item's; empty where it is none of the project."
    )
    annotator = serializers.CharField(
        allow_blank=True, help_text="Whose answer it is: the username here, or what the row says."
    )
    reason = serializers.CharField()
    code = serializers.CharField(
        allow_blank=True, help_text="Of the reason, one of those of errors; empty where it has none."
    )
    again = serializers.BooleanField(
        help_text="Whether a request with fewer rows may take it: together they were too much to read."
    )


class TakenBody(serializers.Serializer[Any]):
    stored = serializers.IntegerField()
    known = serializers.IntegerField(help_text="Answers that were here already.")
    refused = RefusedBody(many=True)


class RunWork(RunView):
    actions = {"GET": "runs.edit", "POST": "runs.edit"}
    may_conflict = True

    @extend_schema(parameters=[PartQuery], responses=WaitingWorkBody)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """How many items another program can be given now, and what must not be shown there."""
        part = self.query(PartQuery)["part"]
        return Response(asdict(waiting(run=self.find_run(number), part=part)))

    @extend_schema(request=GivenFields, responses=TakenBody)
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Store what people answered elsewhere; what cannot be stored is told with its row."""
        body = self.parsed(GivenFields)
        given = answers_in(body.pop("rows"))
        return Response(
            asdict(take_back(run=self.find_run(number), actor=self.access.user, given=given, **body))
        )


class RunWorkLines(RunView):
    actions = {"GET": "runs.edit"}
    may_conflict = True
    renderer_classes = [NdjsonRenderer, JSONRenderer]

    @extend_schema(parameters=[WorkQuery], responses={(200, NDJSON): OpenApiTypes.STR})
    def get(self, request: Request, slug: str, number: int) -> HttpResponseBase:
        """What people still have to label, an object on each line."""
        asked = self.query(WorkQuery)
        run, name = self.find_run(number), asked["shape"]
        pages = hand_out(
            run=run,
            user=self.access.user,
            format_name=name,
            part=asked["part"],
            image_seconds=asked.get("image_seconds"),
            address_of=lambda signed: request.build_absolute_uri(reverse("image_link", args=[signed])),
        )
        return ndjson(pages, name=f"{slug}-run-{number}-work.ndjson")


class RunWorkCvat(TakesStream, RunView):
    actions = {"GET": "runs.edit", "POST": "runs.edit"}
    may_conflict = True
    stream_type = "application/xml"
    content_negotiation_class = AnyType

    @extend_schema(parameters=[PartQuery], responses={(200, "application/zip"): OpenApiTypes.BINARY})
    def get(self, request: Request, slug: str, number: int) -> HttpResponseBase:
        """Images that wait to be drawn on, in an archive for CVAT; a name begins with the item's number."""
        parts = cvat.archive(
            run=self.find_run(number), user=self.access.user, part=self.query(PartQuery)["part"]
        )
        return StreamingHttpResponse(
            parts(),
            content_type="application/zip",
            headers={"Content-Disposition": f'attachment; filename="{slug}-run-{number}-work.zip"'},
        )

    @extend_schema(
        parameters=[CvatQuery],
        request={"application/xml": OpenApiTypes.BINARY},
        responses=TakenBody,
    )
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Store the boxes or masks of a file “CVAT for images 1.1”; what cannot be stored is told with the
        place of its image.
        """
        run, asked = self.find_run(number), self.query(CvatQuery)
        kind = cvat.shapes_of(run.project)
        with receive_body(request) as body:
            content = body.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            words = _("The file has more than %(most)s bytes. Export the jobs of the task one by one.")
            raise InputError(words % {"most": f"{MOST_BYTES:,}"}, where="body")
        given = cvat.answers_of(content, kind, annotator=asked["annotator"], empty=asked["empty"])
        taken = take_back(run=run, actor=self.access.user, given=given, people={}, part=asked["part"])
        return Response(asdict(taken))


_ONE = "projects/<slug:slug>/runs/<row:number>/"

urlpatterns = [
    path(f"{_ONE}work/", RunWork.as_view(), name="api_run_work"),
    path(f"{_ONE}work/cvat/", RunWorkCvat.as_view(), name="api_run_work_cvat"),
    path(f"{_ONE}work.ndjson", RunWorkLines.as_view(), name="api_run_work_lines"),
]
