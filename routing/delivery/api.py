"""The part of /api/v1/ about labelled data as files, and about putting them into buckets."""

from typing import Any, cast

from django.http import Http404
from django.http.response import HttpResponseBase
from django.urls import path, reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import KeysetPages, ProjectView
from annotation.common.api.schema import PageQuery, RegisteredField, page_of
from annotation.common.api.streams import AnyType
from annotation.errors import InputError
from annotation.jobs.serializers import JobBody, accepted
from annotation.labelling.serializers import MAX_ID
from annotation.models import Connection, User
from routing.common.api_bodies import PeopleAgreementBody
from routing.delivery.deliver import deliver
from routing.delivery.downloads import archive_response, file_response
from routing.delivery.exports import export_delivery
from routing.delivery.formats import DEFAULT_FORMATS, FORMATS
from routing.delivery.parts import find_base
from routing.delivery.queries import DeliveryReport, deliveries_of, delivery_reports
from routing.items.filters import MAX_TEXT
from routing.models import Delivery, DeliveryFile
from routing.runs.api import RunView


class DeliveryPages(KeysetPages):
    ordering = "-id"


class DeliveryQuery(PageQuery):
    run = serializers.IntegerField(required=False, min_value=1, help_text="Number of the run.")


class NewDelivery(serializers.Serializer[Any]):
    formats = serializers.ListField(
        child=RegisteredField(registered=lambda: FORMATS), allow_empty=False, required=False
    )
    since = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MAX_ID,
        help_text="`id` of a delivery of the project: only what is not as it gave it out.",
    )
    filters = serializers.DictField(
        child=serializers.CharField(max_length=MAX_TEXT),
        required=False,
        help_text="Only what these filters of the table of items find.",
    )
    unless_delivered = serializers.BooleanField(
        default=False,
        help_text="Make none where the last one of this run with these filters and files holds the same, or "
        "nothing is new since `since`: `made` of the job's `result` is false then, and `delivery` that one.",
    )


class FileBody(serializers.Serializer[Any]):
    name = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes.")
    sha256 = serializers.CharField()
    media_type = serializers.CharField()
    url = serializers.URLField()


class DeliveryBody(serializers.Serializer[Any]):
    """`broken_by` says what broke what the certificate says, if anything did; `partial` whether people were
    still at work.
    """

    id = serializers.IntegerField(help_text="In addresses, and where another one names it.")
    run = serializers.IntegerField(help_text="Number of the run.")
    number = serializers.IntegerField(help_text="1, 2, ... within the run, as pages and names of files say.")
    rows = serializers.IntegerField()
    blanks = serializers.IntegerField(help_text="Rows without a label; each names its reason.")
    items = serializers.IntegerField(help_text="Of the project, then; more than `rows` in a part.")
    since = serializers.IntegerField(
        allow_null=True, help_text="Of a part: `id` of the delivery that it goes on from."
    )
    filters = serializers.DictField(child=serializers.CharField(), help_text="Of a part: what found it.")
    part = serializers.CharField(
        allow_blank=True, help_text="Of a part: that it is one, and what is certified, in words."
    )
    partial = serializers.BooleanField(allow_null=True)  # type: ignore[assignment]
    certified = serializers.BooleanField(
        help_text="Whether something is certified of all the rows together, and nothing in `broken_by` broke "
        "it; of a part it never is."
    )
    sentence = serializers.CharField(
        help_text="The certificate's, with `part` before it; the same where `broken_by` broke it."
    )
    certificate = serializers.CharField(
        allow_blank=True,
        help_text="Its id: the SHA-256 of certificate.json. Empty of a run by people: nothing is certified.",
    )
    two_people = PeopleAgreementBody(
        allow_null=True, help_text="Of a run by people how far two of them differ, as it was then."
    )
    broken_by = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    files = FileBody(many=True)
    zip = serializers.URLField(help_text="All files in one archive.")


class RunDeliveries(RunView):
    actions = {"POST": "deliveries.make"}

    @extend_schema(request=NewDelivery, responses={202: JobBody})
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Write the files of a delivery; the job's `result` has its id as `delivery`, its `number`, and
        whether it was `made`.
        """
        body = self.parsed(NewDelivery)
        since = body.get("since")
        run = self.find_run(number)
        job = deliver(
            run=run,
            user=cast(User, request.user),
            formats=body.get("formats", DEFAULT_FORMATS),
            since=None if since is None else find_base(self.access.project, since),
            filters=body.get("filters", {}),
            unless_delivered=body["unless_delivered"],
        )
        return accepted(job)


class DeliveryList(ProjectView):
    actions = {"GET": "deliveries.view"}

    @extend_schema(parameters=[DeliveryQuery], responses=page_of(DeliveryBody))
    def get(self, request: Request, slug: str) -> Response:
        """Newest first."""
        asked = self.query(DeliveryQuery)
        rows = deliveries_of(self.access.project)
        if "run" in asked:
            rows = rows.filter(run__number=asked["run"])
        pages = DeliveryPages()
        page = pages.paginate_queryset(rows, request, view=self) or []
        reports = delivery_reports(self.access.project, page)
        return pages.get_paginated_response([_content(request, report) for report in reports])


class DeliveryView(ProjectView):
    actions = {"GET": "deliveries.view"}

    def find(self, delivery_id: int) -> Delivery:
        delivery = deliveries_of(self.access.project).filter(pk=delivery_id).first()
        if delivery is None:
            raise Http404
        return delivery


class DeliveryDetail(DeliveryView):
    @extend_schema(responses=DeliveryBody)
    def get(self, request: Request, slug: str, delivery_id: int) -> Response:
        """One of them with its files, and whether its certificate still holds."""
        [report] = delivery_reports(self.access.project, [self.find(delivery_id)])
        return Response(_content(request, report))


class DeliveryContent(DeliveryView):
    content_negotiation_class = AnyType

    @extend_schema(
        responses={
            (200, "*/*"): OpenApiTypes.BINARY,
            (206, "*/*"): OpenApiTypes.BINARY,
            304: None,
            416: None,
        }
    )
    def get(self, request: Request, slug: str, delivery_id: int, name: str) -> HttpResponseBase:
        """A file, or the range of it that is asked for; its ETag is its SHA-256."""
        file = DeliveryFile.objects.select_related("file", "delivery__run__project").filter(
            delivery=self.find(delivery_id), name=name
        )
        if (found := file.first()) is None:
            raise Http404
        return file_response(request._request, found)


class DeliveryArchive(DeliveryView):
    content_negotiation_class = AnyType

    @extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY, 304: None})
    def get(self, request: Request, slug: str, delivery_id: int) -> HttpResponseBase:
        """All files in one archive, made while it is sent."""
        return archive_response(request._request, self.find(delivery_id))


def _content(request: Request, report: DeliveryReport) -> dict[str, Any]:
    delivery = report.delivery
    here = {"slug": request.parser_context["kwargs"]["slug"], "delivery_id": delivery.pk}

    def address(view: str, **parts: str) -> str:
        return str(request.build_absolute_uri(reverse(view, kwargs={**here, **parts})))

    return {
        "id": delivery.pk,
        "run": delivery.run.number,
        "number": delivery.number,
        "rows": delivery.rows,
        "blanks": delivery.blanks,
        "items": report.items,
        "since": delivery.since_id,
        "filters": delivery.filters,
        "part": report.part,
        "partial": report.partial,
        # Programs read these alone: of a part they must not claim what holds of the whole, nor of any what
        # holds no longer.
        "certified": report.certified and not report.broken_by and not report.part,
        "sentence": f"{report.part} {report.sentence}".strip(),
        "certificate": report.certificate_id,
        "two_people": delivery.two_people and {"used": delivery.two_people["items"], **delivery.two_people},
        "broken_by": report.broken_by,
        "created_at": delivery.created_at,
        "files": [
            {
                "name": entry.name,
                "size": entry.file.size,
                "sha256": entry.file.sha256,
                "media_type": entry.media_type,
                "url": address("api_delivery_file", name=entry.name),
            }
            for entry in report.files
        ],
        "zip": address("api_delivery_zip"),
    }


_ALL = "projects/<slug:slug>/deliveries/"


class NewExport(serializers.Serializer[Any]):
    connection = serializers.IntegerField(min_value=1, max_value=MAX_ID, help_text="Its id.")
    prefix = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=490,
        help_text="Folder below that of the connection; without it one named after project and delivery.",
    )
    overwrite = serializers.BooleanField(
        required=False, default=False, help_text="Replace other objects of these names."
    )


class DeliveryExport(DeliveryView):
    actions = {"POST": "deliveries.make"}

    @extend_schema(request=NewExport, responses={202: JobBody})
    def post(self, request: Request, slug: str, delivery_id: int) -> Response:
        """Put all files of the delivery into a bucket, and at last SHA256SUMS. What is there already with the
        same content stays.
        """
        delivery, body = self.find(delivery_id), self.parsed(NewExport)
        connection = Connection.objects.filter(project=self.access.project, pk=body["connection"]).first()
        if connection is None:
            raise InputError("There is no such connection in this project.", where="connection")
        job = export_delivery(
            delivery=delivery,
            connection=connection,
            user=self.access.user,
            prefix=body.get("prefix"),
            overwrite=body["overwrite"],
        )
        return accepted(job)


urlpatterns = [
    path("projects/<slug:slug>/runs/<row:number>/deliveries/", RunDeliveries.as_view(), name="api_deliver"),
    path(_ALL, DeliveryList.as_view(), name="api_deliveries"),
    path(f"{_ALL}<row:delivery_id>.zip", DeliveryArchive.as_view(), name="api_delivery_zip"),
    path(f"{_ALL}<row:delivery_id>/", DeliveryDetail.as_view(), name="api_delivery"),
    path(f"{_ALL}<row:delivery_id>/files/<path:name>", DeliveryContent.as_view(), name="api_delivery_file"),
    path(
        "projects/<slug:slug>/deliveries/<row:delivery_id>/export/",
        DeliveryExport.as_view(),
        name="api_delivery_export",
    ),
]
