"""The API without the pages around it."""

from django.http import HttpResponse
from django.urls import include, path

urlpatterns = [
    path("api/v1/", include("annotation.api")),
    path("projects/<slug:slug>/images/<str:sha256>/", lambda *_: HttpResponse(), name="image"),
]
