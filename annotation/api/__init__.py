"""The part of /api/v1/ that is about people and data. It calls the same services as the pages.

`urlpatterns` is included by hypac_site.urls.
"""

from django.urls import path

from annotation.api import me, root, urls
from annotation.people import tokens_api as tokens

urlpatterns = [
    path("", root.Root.as_view(), name="api_root"),
    path("me/", me.Me.as_view(), name="api_me"),
    path("tokens/", tokens.TokenList.as_view(), name="api_tokens"),
    path("tokens/<row:token_id>/", tokens.TokenDetail.as_view(), name="api_token"),
    path("docs/", root.api_docs, name="api_docs"),
    path("errors/", root.api_errors, name="api_errors"),
    path("errors/<slug:code>/", root.api_errors, name="api_error"),
    path("schema/", root.Schema.as_view(), name="api_schema"),
    *urls.urlpatterns,
]
