"""Addresses of the whole site; each application names its own."""

from django.contrib import admin
from django.urls import include, path

from annotation.api.root import NothingHere
from hypac_site.help import views as help_views
from hypac_site.metrics.views import metrics
from hypac_site.readiness import ready
from hypac_site.security_txt import security_txt

handler400 = "hypac_site.errors.bad_request"
handler403 = "hypac_site.errors.permission_denied"
handler404 = "hypac_site.errors.page_not_found"
handler500 = "hypac_site.errors.server_error"
urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("annotation.api")),
    path("api/v1/", include("annotation.outside.webhooks.api")),
    path("api/v1/", include("annotation.projects.bucket_sync_api")),
    path("api/v1/", include("annotation.projects.connections_api")),
    path("api/v1/", include("routing.api")),
    path("api/<anything:path>", NothingHere.as_view(), name="api_nothing_here"),
    path("label-studio/", include("routing.label_studio.urls")),
    path("label-studio/<anything:path>", NothingHere.as_view(), name="api_label_studio_nothing_here"),
    path("readyz", ready, name="ready"),
    path("metrics", metrics, name="metrics"),
    path(".well-known/security.txt", security_txt, name="security_txt"),
    path("help/", help_views.help_index, name="help_index"),
    path("help/<slug:document>/", help_views.help_document, name="help_document"),
    path("", include("annotation.urls")),
    path("", include("routing.urls")),
]
