"""Planning a run: what is promised, how many labels that takes, and what it will cost."""

from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from annotation.common.access import ProjectRequest, needs
from annotation.common.forms import add_error
from annotation.errors import HypacError
from routing.common.states import UNDER_WAY
from routing.models import Source
from routing.runs.forms import PlanForm, suggested_m
from routing.runs.labelling_pace import people_time_of
from routing.runs.plan import Outlook, outlook
from routing.runs.start import start_run
from routing.sources.warnings import confirmation_question, usability_in_words


@needs("runs.edit", "GET", "POST")
def plan(request: ProjectRequest) -> HttpResponseBase:
    """The form, with its outlook. A POST starts the run, or with "look" shows what the plan would mean:
    for whoever has no JavaScript, by which the outlook follows the fields.
    """
    project = request.access.project
    form = PlanForm(request.POST or None, project=project, initial={"m": suggested_m(project)})
    values: dict[str, Any] | None = None if form.is_bound else form.initial_values()
    if request.method == "POST" and form.is_valid():
        values = form.values()
        try:
            seen = outlook(project=project, **values)
            if "look" not in request.POST and _confirmed(form, seen):
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
    return render(
        request,
        "routing/runs/plan.html",
        {
            "form": form,
            "options": form.options,
            "step": "plan",
            "open_run": project.runs.filter(state__in=UNDER_WAY).first(),
            "has_items": project.items.exists(),
            "has_sources": Source.objects.filter(project=project).exists(),
            **(_outlook(request, values, form.seconds_per_label) if ready and values else {}),
        },
    )


def _confirmed(form: PlanForm, seen: Outlook) -> bool:
    """Whether nothing is left to be confirmed; the form asks for what is."""
    anyway = form.cleaned_data["anyway"] or seen.statistics.certifiable
    accepted = form.cleaned_data["accept_unusable"] or not seen.looked.asking
    if not anyway:
        form.ask_whether_anyway()
    if not accepted:
        form.ask_whether_unusable(confirmation_question(seen.looked.asking))
    return anyway and accepted


@needs("runs.edit", "GET")
def plan_outlook(request: ProjectRequest) -> HttpResponseBase:
    """What the plan as typed would mean: the parts of the page that follow the fields."""
    form = PlanForm(request.GET, project=request.access.project)
    context: dict[str, Any] = {"form": form, "problems": []}
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
        found: Outlook = outlook(project=request.access.project, **values)
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
        "seconds": seconds,
        "committed_share": found.committed / found.people_only if found.people_only else None,
    }
