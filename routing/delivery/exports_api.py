"""The part of /api/v1/ that puts deliveries into buckets."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.errors import InputError
from annotation.jobs.serializers import JobBody, accepted
from annotation.labelling.serializers import MAX_ID
from annotation.models import Connection
from routing.delivery.api import DeliveryView
from routing.delivery.exports import export_delivery


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
    path(
        "projects/<slug:slug>/deliveries/<row:delivery_id>/export/",
        DeliveryExport.as_view(),
        name="api_delivery_export",
    ),
]
