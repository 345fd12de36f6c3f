"""Addresses of the whole site; each application names its own."""

from django.contrib import admin
from django.urls import include, path, register_converter
from django.urls.converters import StringConverter

from annotation.api.root import NothingHere
from hypac_site.metrics.views import metrics
from hypac_site.readiness import ready


class Anything(StringConverter):
    """Line breaks, too, which may be in an address, and which the converter `path` does not take."""

    regex = r"[\s\S]*"


register_converter(Anything, "anything")

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("annotation.api")),
    path("api/v1/", include("annotation.api.webhooks")),
    path("api/v1/", include("annotation.api.connections")),
    path("api/v1/", include("routing.api")),
    path("api/v1/<anything:path>", NothingHere.as_view(), name="api_nothing_here"),
    path("label-studio/", include("routing.label_studio_ml_server.urls")),
    path("readyz", ready, name="ready"),
    path("metrics", metrics, name="metrics"),
    path("", include("annotation.urls")),
    path("", include("routing.urls")),
]
