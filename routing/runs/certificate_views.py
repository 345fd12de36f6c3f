"""The certificate of a run as a page to read and to print."""

from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render

from annotation.common.access import ProjectRequest, needs
from routing.core.losses import imported_paths
from routing.models import Run
from routing.runs.queries import run_report
from routing.runs.words import limits_of, what_breaks_it


@needs("runs.view", "GET")
def run_certificate_page(request: ProjectRequest, number: int) -> HttpResponseBase:
    run = get_object_or_404(
        Run.objects.select_related("project"), project=request.access.project, number=number
    )
    report = run_report(run)
    if report.certificate is None:
        raise Http404("not analysed yet")
    return render(
        request,
        "routing/runs/run_certificate.html",
        {
            "run": run,
            "report": report,
            "certificate": report.certificate,
            "limits": limits_of(run),
            "breaks": what_breaks_it(),
            "own_code": imported_paths(run.loss, run.loss_params),
        },
    )
