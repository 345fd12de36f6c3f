"""The pages of a run: how far it is, after the analysis what is certified, and the certificate to print."""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation.common import limits
from annotation.common.access import ProjectRequest, needs, refusals_as_messages, signed_in
from annotation.common.forms import add_error
from annotation.errors import HypacError
from annotation.models import Job, User
from annotation.projects.jobs_views import STOP_POLLING
from routing.common.figures import Figure
from routing.common.states import BUSY, CANCELLABLE, ROUTED, UNDER_WAY
from routing.core.losses import imported_paths
from routing.models import Certificate, Draw, Run
from routing.runs.ask_losses import ask_losses
from routing.runs.budget import set_budget, stopped_at_budget
from routing.runs.cancel import cancel_run
from routing.runs.certificate_words import erased_in_words, evidence_of, limitations_of, what_breaks_it
from routing.runs.certify import analyse
from routing.runs.charts import run_charts
from routing.runs.commitment_report import commitment_report
from routing.runs.commitments import is_drawn_elsewhere
from routing.runs.delivered import is_delivered, is_overtaken, run_with_model_labels
from routing.runs.forms import BudgetForm
from routing.runs.labelling_pace import run_labelling
from routing.runs.later.intakes import KIND as TAKE_IN
from routing.runs.later.take_in import take_in
from routing.runs.queries import RunReport, failed_job_of, run_progress, run_report
from routing.runs.route import route
from routing.runs.route_outlook import RouteOutlook, route_outlook
from routing.runs.seal import seal_of
from routing.runs.spending import model_money
from routing.runs.threshold_figure import region_figure
from routing.runs.usable_answers import accept_unusable, stopped_at_unusable
from routing.runs.work_order import set_work_order, work_order

# Of a run with models, and of one by people.
PAGE = ("routing/runs/run.html", "routing/by_people/run.html")
PROGRESS = ("routing/runs/_run_progress.html", "routing/by_people/_progress.html")


@needs("runs.view", "GET")
def runs(request: ProjectRequest) -> HttpResponseBase:
    found = request.access.project.runs.order_by("-number")
    context = {
        "page": Paginator(found, limits.RUNS_LISTED).get_page(request.GET.get("page")),
        "open_run": found.filter(state__in=UNDER_WAY).first(),
    }
    return render(request, "routing/runs/runs.html", context)


@signed_in("GET")
def glossary(request: HttpRequest) -> HttpResponseBase:
    """The words of statistics, each in a sentence."""
    return render(request, "routing/glossary.html")


@needs("runs.view", "GET")
def run(request: ProjectRequest, number: int) -> HttpResponseBase:
    found = _run(request, number)
    return _page(request, found, BudgetForm(initial=BudgetForm.initial_of(found)))


def _page(request: ProjectRequest, found: Run, form: BudgetForm) -> HttpResponseBase:
    live = _live(request, found, run_progress(found)) if request.htmx else None
    if live is not None and request.GET.get("state") != live["page_state"]:
        # The progress alone is asked for again and again; a new state changes the whole page.
        response = HttpResponse(status=STOP_POLLING)
        response.headers["HX-Refresh"] = "true"
        return response
    if live is not None:
        status = 200 if live["polls"] else STOP_POLLING
        return render(request, PROGRESS[found.by_people], live, status=status)
    report = run_report(found)
    shown = _live(request, found, report)
    failed_job = shown["failed_job"]
    context: dict[str, Any] = shown | {
        "certificate": report.certificate,
        "tab": "result",
        "order": work_order(found),
        "can_be_cancelled": found.state in CANCELLABLE,
        "drawn": found.state != Run.State.PREPARING
        or Draw.objects.filter(run=found).exists()
        or is_drawn_elsewhere(found),
        "foretold_net": _foretold_net(shown["outlook"], report),
        "budget_form": form
        if (found.state in CANCELLABLE or stopped_at_budget(failed_job))
        and (found.state != Run.State.LABELLING or stopped_at_budget(failed_job))
        and request.access.allows("runs.edit")
        else None,
    }
    return render(request, PAGE[found.by_people], context)


def _foretold_net(outlook: RouteOutlook | None, report: RunReport) -> Decimal | None:
    """By what routing would do, as the page says of it; None where the analysis alone tells."""
    if outlook is None or report.run.by_expert:
        return None
    return outlook.net_saving(report.savings)


@needs("runs.view", "GET")
def run_evidence(request: ProjectRequest, number: int) -> HttpResponseBase:
    """What the certificate rests on: figures, other rules on the same labels, each step, commitments."""
    found = _run(request, number)
    context = _part(found, "evidence")
    report, certificate = context["report"], context["certificate"]
    if certificate is None and context["committed"] is None:
        raise Http404("not analysed yet")
    context["charts"] = _charts(report, certificate) if certificate else []
    return render(request, "routing/runs/run_evidence.html", context)


@needs("runs.view", "GET")
def run_plan(request: ProjectRequest, number: int) -> HttpResponseBase:
    """What was fixed at the start, and the ledger of the accepted risk."""
    found = _run(request, number)
    if found.by_people:
        raise Http404("a run by people has no plan")
    context = _part(found, "plan") | {"run_states": dict(Run.State.choices)}
    return render(request, "routing/runs/run_plan.html", context)


def _part(found: Run, tab: str) -> dict[str, Any]:
    report = run_report(found)
    return {
        "run": found,
        "report": report,
        "certificate": report.certificate,
        "committed": commitment_report(found),
        "tab": tab,
    }


def _live(request: ProjectRequest, found: Run, report: RunReport) -> dict[str, Any]:
    """What the part of the page needs that is asked for again and again."""
    failed = failed_job_of(found.project, found) if request.access.allows("jobs.view") else None
    if failed is not None and found.state not in BUSY:
        failed = failed if found.state in ROUTED and failed.kind == TAKE_IN else None
    money = model_money(found) if found.state != Run.State.CANCELLED else None
    work = money.work if money else None
    paused = work is not None and work.job.state == Job.State.PAUSED
    takes_in = work is not None and work.job.kind == TAKE_IN
    labelling = run_labelling(found, report.progress, report.routed_progress)
    committed = commitment_report(found)
    waits = (labelling is not None and not labelling.left) or (committed is not None and committed.waits)
    return {
        "run": found,
        "report": report,
        # What changes it changes the whole page.
        "page_state": f"{found.state}.{TAKE_IN}" if takes_in else found.state,
        "polls": not paused and (takes_in or (found.state in UNDER_WAY and not failed and not waits)),
        "poll_seconds": 10 if labelling or report.losses else 3,
        "labelling": labelling,
        "delivered": is_delivered(found),
        "overtaken": is_overtaken(found),
        "with_models": run_with_model_labels(found),
        "failed_job": failed if failed and "run" in failed.params else None,
        "stopped_at_budget": stopped_at_budget(failed),
        "stopped_at_unusable": stopped_at_unusable(failed),
        "committed": committed,
        "money": money,
        "outlook": route_outlook(found),
    }


@needs("runs.edit", "POST")
def run_analyse(request: ProjectRequest, number: int) -> HttpResponseBase:
    return _act(request, number, analyse, _("The analysis has begun."))


@needs("runs.edit", "POST")
def run_ask_losses(request: ProjectRequest, number: int) -> HttpResponseBase:
    return _act(request, number, ask_losses, _("The labels are locked, and can be measured against."))


@needs("runs.edit", "POST")
def run_route(request: ProjectRequest, number: int) -> HttpResponseBase:
    return _act(request, number, route, _("Every item is being sent to its source."))


@needs("runs.edit", "POST")
def run_take_in(request: ProjectRequest, number: int) -> HttpResponseBase:
    return _act(request, number, take_in, _("The new items are being taken in."))


@needs("runs.edit", "POST")
def run_order(request: ProjectRequest, number: int) -> HttpResponseBase:
    order = partial(set_work_order, order=request.POST.get("order", ""))
    return _act(request, number, order, _("Open items are given out in the new order."))


@needs("runs.edit", "POST")
def run_cancel(request: ProjectRequest, number: int) -> HttpResponseBase:
    return _act(request, number, cancel_run, _("The run is cancelled. Labels given so far stay."))


@needs("runs.edit", "POST")
def run_accept_unusable(request: ProjectRequest, number: int) -> HttpResponseBase:
    return _act(request, number, accept_unusable, _("The run goes on: people are asked next."))


@needs("runs.edit", "POST")
def run_budget(request: ProjectRequest, number: int) -> HttpResponseBase:
    found = _run(request, number)
    form = BudgetForm(request.POST)
    stopped = stopped_at_budget(failed_job_of(found.project, found))
    if form.is_valid():
        try:
            set_budget(run=found, user=request.user, budget=form.cleaned_data["budget"])
        except HypacError as error:
            add_error(form, error)
        else:
            if stopped:
                messages.success(request, _("The budget is set, and the models go on where they stopped."))
            else:
                messages.success(request, _("The budget is set. It counts from the next call on."))
            return redirect("run", request.access.project.slug, number)
    return _page(request, found, form)


@needs("runs.view", "GET")
def run_certificate(request: ProjectRequest, number: int) -> HttpResponseBase:
    certificate = _certificate(request, number)
    return _download(certificate.document.encode(), "application/json", f"run-{number}-certificate.json")


@needs("predictions.view", "GET")
def run_draw(request: ProjectRequest, number: int) -> HttpResponseBase:
    certificate = _certificate(request, number)
    return _download(certificate.draw_lines.encode(), "application/jsonl", f"run-{number}-draw.jsonl")


def _act(
    request: ProjectRequest, number: int, service_call: Callable[..., Any], words: str
) -> HttpResponseBase:
    found = _run(request, number)
    user: User = request.user
    with refusals_as_messages(request):
        service_call(run=found, user=user)
        messages.success(request, words)
    return redirect("run", request.access.project.slug, number)


def _run(request: ProjectRequest, number: int) -> Run:
    return get_object_or_404(
        Run.objects.select_related("project"), project=request.access.project, number=number
    )


def _charts(report: RunReport, certificate: Certificate) -> list[Figure]:
    thresholds = [None if limit.u is None else {"u": limit.u} for limit in report.thresholds]
    region = region_figure(
        certificate.figures, thresholds, report.rule_titles, [limit.name for limit in report.thresholds]
    )
    return [*([region] if region else []), *run_charts(report)]


def _certificate(request: ProjectRequest, number: int) -> Certificate:
    found = Certificate.objects.filter(run__project=request.access.project, run__number=number).first()
    if found is None:
        raise Http404("not analysed yet")
    return found


def _download(content: bytes, media_type: str, name: str) -> HttpResponse:
    return HttpResponse(
        content,
        content_type=media_type,
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
        },
    )


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
            "evidence": evidence_of(run, report),
            "limits": limitations_of(run, report.beside, report.two_people, report.how_labelled),
            "breaks": what_breaks_it(run),
            "erased": erased_in_words(run),
            "seal": seal_of(report.certificate),
            "committed": commitment_report(run),
            "own_code": imported_paths(run.loss, run.loss_params),
        },
    )
