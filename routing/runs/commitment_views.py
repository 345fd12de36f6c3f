"""What a run committed to, for whoever wants to look at it, and the form for what its draw comes from."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.errors import ConflictError
from routing.models import Run
from routing.runs.commitment_queries import document_to_show
from routing.runs.commitments import give_value


@needs("runs.edit", "GET")
def run_commitment(request: ProjectRequest, number: int, which: int) -> HttpResponseBase:
    found = get_object_or_404(Run, project=request.access.project, number=number)
    try:
        document = document_to_show(found, which)
    except ConflictError as error:
        messages.error(request, str(error))
        return redirect("run_evidence", request.access.project.slug, number)
    if document is None:
        raise Http404("not made yet")
    name = f"run-{number}-commitment-{which}.json"
    return HttpResponse(
        document,
        content_type="application/json",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
        },
    )


@needs("runs.edit", "POST")
def run_draw_value(request: ProjectRequest, number: int) -> HttpResponseBase:
    found = get_object_or_404(Run, project=request.access.project, number=number)
    with refusals_as_messages(request):
        give_value(run=found, user=request.user, value=request.POST.get("value", "")[:500])
        messages.success(request, _("The calibration set is being drawn."))
    return redirect("run", request.access.project.slug, number)
