"""One click from nothing to a project that can be tried."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from annotation.common.access import PageRequest, signed_in
from annotation.errors import HypacError
from routing.sample.make import make_sample_project


@signed_in("POST")
def project_sample(request: HttpRequest) -> HttpResponseBase:
    try:
        project = make_sample_project(user=cast(PageRequest, request).user)
    except HypacError as error:
        messages.error(request, error.message)
        return redirect("project_list")
    messages.success(
        request, _("The sample is being made. It is a project like any other: delete it in its settings.")
    )
    return redirect("overview", project.slug)
