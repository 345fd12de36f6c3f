"""The project's labelling configuration of Label Studio, for programs that make a project there."""

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from annotation.common.api.base import ProjectView
from annotation.common.api.streams import AnyType
from annotation.projects.label_config_file import label_config


class LabelConfig(ProjectView):
    actions = {"GET": "project.view"}
    content_negotiation_class = AnyType

    @extend_schema(responses={(200, "application/xml"): OpenApiTypes.STR})
    def get(self, request: Request, slug: str) -> HttpResponse:
        """The configuration for Label Studio: that which the project was made from, or one made for it."""
        return label_config(self.access.project)
