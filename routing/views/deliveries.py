"""Files of labelled data."""

from django.contrib import messages
from django.http import FileResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.jobs import UNFINISHED
from annotation.services.files import open_file
from annotation.views.access import ProjectRequest, needs
from routing.models import Delivery, DeliveryFile
from routing.services.states import ROUTED


@needs("deliveries.view", "GET")
def deliveries(request: ProjectRequest) -> HttpResponseBase:
    project = request.access.project
    found = (
        Delivery.objects.filter(run__project=project)
        .select_related("run", "created_by")
        .prefetch_related("files__file")
        .order_by("-id")
    )
    job = project.jobs.filter(kind="deliver_run").order_by("-id").first()
    return render(
        request,
        "routing/deliveries.html",
        {
            "deliveries": found,
            "deliverable": project.runs.filter(state__in=ROUTED).order_by("-number").first(),
            "job": job,
            "job_unfinished": job is not None and job.state in UNFINISHED,
        },
    )


@needs("deliveries.view", "GET")
def delivery_file(request: ProjectRequest, delivery_id: int, name: str) -> HttpResponseBase:
    file = get_object_or_404(
        DeliveryFile.objects.select_related("file", "delivery__run"),
        delivery_id=delivery_id,
        delivery__run__project=request.access.project,
        name=name,
    )
    prefix = f"run-{file.delivery.run.number}-delivery-{file.delivery.number}"
    try:
        content = open_file(file.file)
    except InputError:
        messages.error(request, _("This file is no longer in the storage. Make a new delivery."))
        return redirect("deliveries", request.access.project.slug)
    response = FileResponse(
        content,
        as_attachment=True,
        filename=f"{prefix}-{file.name}",
        content_type=file.file.media_type,
    )
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Length"] = str(file.file.size)
    return response
