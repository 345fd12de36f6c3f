"""What a manager does in a run with an expert: ask the expert, and hand over the work of people who left."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _, ngettext

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from routing.models import FinalCertificate, RosterEntry, Run
from routing.runs.expert.ask import ask_expert
from routing.runs.expert.final import analyse_final_audit, draw_final_audit
from routing.runs.expert.leaving import give_up_open_items


@needs("runs.edit", "POST")
def run_ask_expert(request: ProjectRequest, number: int) -> HttpResponseBase:
    found = _run(request, number)
    with refusals_as_messages(request):
        ask_expert(run=found, user=request.user)
        messages.success(request, _("The labels are locked, and the expert is asked next."))
    return redirect("run", request.access.project.slug, number)


@needs("runs.edit", "POST")
def run_hand_over(request: ProjectRequest, number: int) -> HttpResponseBase:
    found = _run(request, number)
    entry = get_object_or_404(
        RosterEntry.objects.select_related("user"), run=found, user__username=request.POST.get("user", "")
    )
    with refusals_as_messages(request):
        count = give_up_open_items(run=found, user=entry.user, actor=request.user)
        messages.success(request, _what_becomes_of(found, entry, count))
    return redirect("run", request.access.project.slug, number)


@needs("runs.edit", "POST")
def run_final_audit(request: ProjectRequest, number: int) -> HttpResponseBase:
    found = _run(request, number)
    with refusals_as_messages(request):
        draw_final_audit(run=found, user=request.user)
        messages.success(request, _("The final audit is being drawn; the expert is asked next."))
    return redirect("run", request.access.project.slug, number)


@needs("runs.edit", "POST")
def run_analyse_final_audit(request: ProjectRequest, number: int) -> HttpResponseBase:
    found = _run(request, number)
    with refusals_as_messages(request):
        analyse_final_audit(run=found, user=request.user)
        messages.success(request, _("The analysis of the final audit has begun."))
    return redirect("run", request.access.project.slug, number)


@needs("predictions.view", "GET")
def run_final_certificate(request: ProjectRequest, number: int) -> HttpResponseBase:
    """Labels of single items are in it, as in the draw."""
    found = FinalCertificate.objects.filter(audit__run=_run(request, number)).first()
    if found is None:
        raise Http404("no final audit was analysed")
    return HttpResponse(
        found.document.encode(),
        content_type="application/json",
        headers={
            "Content-Disposition": f'attachment; filename="run-{number}-final_audit.json"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def _what_becomes_of(run: Run, entry: RosterEntry, count: int) -> str:
    if entry.role == RosterEntry.Role.EXPERT:
        words = ngettext(
            "%(count)s item stays without the expert's label.",
            "%(count)s items stay without the expert's label.",
            count,
        )
    elif run.state == Run.State.CALIBRATING:
        words = ngettext(
            "%(count)s item counts as not answered.", "%(count)s items count as not answered.", count
        )
    elif not run.by_expert:
        words = ngettext(
            "%(count)s item stays without a label.", "%(count)s items stay without a label.", count
        )
    else:
        words = ngettext("%(count)s item goes to the expert.", "%(count)s items go to the expert.", count)
    return words % {"count": f"{count:,}"}


def _run(request: ProjectRequest, number: int) -> Run:
    return get_object_or_404(
        Run.objects.select_related("project"), project=request.access.project, number=number
    )
