"""Planning a run: what is promised, how many labels that takes, and what it will cost."""

from decimal import Decimal
from typing import Any

from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from annotation.common.access import ProjectRequest, needs
from annotation.common.forms import add_error
from annotation.errors import HypacError
from annotation.jobs.progress import job_progress
from annotation.models import Project
from routing.common.states import UNDER_WAY
from routing.models import Source
from routing.runs.forecast import forecast_of_plan
from routing.runs.forms import PlanForm, suggested_m
from routing.runs.labelling_pace import PeopleTime, people_time_of
from routing.runs.measure import discard_measurement, offer, start_measurement
from routing.runs.plan import PlanOutlook, outlook_of_plan
from routing.runs.pool import labelled_by_runs_of_people
from routing.runs.reference_outlook import (
    missing_for_references,
    references_of_plan,
    warning_of_references,
)
from routing.runs.start import refuse_while_busy, start_run
from routing.sources.warnings import confirmation_question, usability_in_words

# What the buttons beside the forecast change, and beside which the form is shown again.
LOOKS = ("look", "measure", "discard", "use_m", "without")


@needs("runs.edit", "GET", "POST")
def plan(request: ProjectRequest) -> HttpResponseBase:
    """The form, with its outlook. A POST starts the run, or with one of `LOOKS` shows the form again: "look"
    for whoever has no JavaScript, by which the outlook follows the fields, the others with what they change.
    """
    project = request.access.project
    form = PlanForm(_chosen(request.POST) or None, project=project, initial={"m": suggested_m(project)})
    values: dict[str, Any] | None = None if form.is_bound else form.initial_values()
    if request.method == "POST" and form.is_valid():
        values = form.values()
        try:
            _measure(request, values)
            seen = outlook_of_plan(project=project, **values)
            if not any(name in request.POST for name in LOOKS) and _confirmed(form, project, seen):
                run = start_run(
                    project=project,
                    user=request.user,
                    accept_unusable=form.cleaned_data["accept_unusable"] or None,
                    **values,
                )
                return redirect("run", project.slug, run.number)
        except HypacError as error:
            values = None  # what is wrong stands beside its field
            add_error(form, error)
    ready = project.items.exists() and Source.objects.filter(project=project).exists()
    shown = _outlook(request, values, form.seconds_per_label) if ready and values else {}
    if not form.is_bound and (foretold := shown.get("foretold")) and foretold.better_m:
        # What is proposed is where a plan begins.
        form = PlanForm(None, project=project, initial={"m": foretold.better_m})
        shown = _outlook(request, form.initial_values(), form.seconds_per_label)
    return render(
        request,
        "routing/runs/plan.html",
        {
            "form": form,
            "options": form.options,
            "step": "plan",
            "open_run": project.runs.filter(state__in=UNDER_WAY).first(),
            "has_items": project.items.exists(),
            "labelled_by_people": labelled_by_runs_of_people(project),
            "has_sources": Source.objects.filter(project=project).exists(),
            **shown,
        },
    )


def _chosen(data: QueryDict) -> QueryDict:
    """What was typed, with what a button beside the forecast says."""
    changed = data.copy()
    if "use_m" in data:
        changed["m"] = str(data["use_m"])
    if "without" in data:
        changed.appendlist("leave_out", str(data["without"]))
        changed.pop("score", None)  # of the model that may have been the first
        changed.pop("score_params", None)
    return changed


def _measure(request: ProjectRequest, values: dict[str, Any]) -> None:
    """Do what a button of the forecast asks for, if one does."""
    project, user = request.access.project, request.user
    if "measure" in request.POST:
        asked = {name: values[name] for name in ("target", "leave_out", "budget") if name in values}
        start_measurement(project=project, user=user, **asked)
    elif "discard" in request.POST:
        discard_measurement(project=project, user=user)


def _confirmed(form: PlanForm, project: Project, seen: PlanOutlook) -> bool:
    """Whether nothing is left to be confirmed; the form asks for what is."""
    dearer = "" if form.cleaned_data["accept_dearer"] else warning_of_references(project, seen)
    anyway = form.cleaned_data["anyway"] or seen.statistics.certifiable
    accepted = form.cleaned_data["accept_unusable"] or not seen.looked.asking
    if not anyway:
        form.ask_whether_anyway()
    if not accepted:
        form.ask_whether_unusable(confirmation_question(seen.looked.asking))
    if dearer:
        form.ask_whether_dearer(dearer)
    return anyway and accepted and not dearer


@needs("runs.edit", "GET")
def plan_outlook(request: ProjectRequest) -> HttpResponseBase:
    """What the plan as typed would mean: the parts of the page that follow the fields."""
    form = PlanForm(request.GET, project=request.access.project)
    context: dict[str, Any] = {"form": form, "problems": [], "quiet": "quiet" in request.GET}
    if form.is_valid():
        context |= _outlook(request, form.values(), form.seconds_per_label, form)
    else:
        context["problems"] = [
            (form.fields[name].label if name in form.fields else "", " ".join(str(error) for error in errors))
            for name, errors in form.errors.items()
        ]
    return render(request, "routing/runs/_outlook_live.html", context | {"options": form.options})


def _outlook(
    request: ProjectRequest, values: dict[str, Any], seconds: int, form: PlanForm | None = None
) -> dict[str, Any]:
    try:
        found: PlanOutlook = outlook_of_plan(project=request.access.project, seconds=seconds, **values)
    except HypacError as error:
        if form is not None:
            add_error(form, error)
        label = PlanForm.base_fields[error.where].label if error.where in PlanForm.base_fields else ""
        return {"problems": [(label, error.message)]}
    return {
        "outlook": found,
        "usable": [(seen, usability_in_words(seen)) for seen in found.looked.sources],
        "hours": people_time_of(
            labels=found.plan.expected_labels,
            least=found.labels_at_least,
            items=found.pool_size,
            people_per_item=found.people_per_item,
            seconds=seconds,
        ),
        "expert_hours": _hours_of_expert(found),
        "seconds": seconds,
        "committed_share": found.committed / found.people_only if found.people_only else None,
        **_forecast(request.access.project, found),
        "references": references_of_plan(request.access.project, found),
        "references_missing": missing_for_references(request.access.project, found),
    }


def _hours_of_expert(seen: PlanOutlook) -> PeopleTime | None:
    if seen.expert_labels is None:
        return None
    least, most = seen.expert_labels
    each = seen.expert_time.seconds
    return PeopleTime(calibration=most * each, least=least * each, everything=seen.pool_size * each)


def _forecast(project: Project, seen: PlanOutlook) -> dict[str, Any]:
    """What was measured and what it foretells; where nothing was, what measuring would take."""
    measured = seen.measured
    if measured.under_way and measured.job is not None:
        return {"progress": job_progress(measured.job)}
    if seen.expert is not None and measured.usable:
        return {}
    if foretold := forecast_of_plan(seen):
        rows = [
            {
                "seen": row,
                "best": foretold.proposal is not None and row == foretold.proposal.best,
                "net": Decimal(row.net_cost).quantize(Decimal("0.01")),
            }
            for row in foretold.rows
        ]
        return {"foretold": foretold, "forecast_rows": rows}
    try:
        refuse_while_busy(project)
        left_out = {source.name for source in project.sources.all()} - {one.name for one in seen.sources}
        return {"offer": offer(project, target=seen.plan.target, leave_out=sorted(left_out))}
    except HypacError as error:
        return {"not_offered": error.message}
