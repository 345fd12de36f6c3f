"""The page that shows the API: Swagger UI, from files of this server alone."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render

from annotation.common.access import public


@public("GET")
def api_docs(request: HttpRequest) -> HttpResponseBase:
    return render(request, "api_docs.html")
