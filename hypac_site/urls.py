"""Addresses of the whole site; each application names its own."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("annotation.urls")),
    path("", include("routing.urls")),
]
