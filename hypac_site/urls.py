"""Addresses of the whole site; each application names its own."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("annotation.api")),
    path("api/v1/", include("routing.api")),
    path("", include("annotation.urls")),
    path("", include("routing.urls")),
]
