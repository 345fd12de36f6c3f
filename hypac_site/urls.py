"""Addresses of the whole site; each application names its own."""

from django.contrib import admin
from django.urls import include, path

from hypac_site.metrics.views import metrics
from hypac_site.readiness import ready

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("annotation.api")),
    path("api/v1/", include("routing.api")),
    path("readyz", ready, name="ready"),
    path("metrics", metrics, name="metrics"),
    path("", include("annotation.urls")),
    path("", include("routing.urls")),
]
