"""Planning a run: what is promised, how many labels that takes, and what it will cost."""

from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from annotation.errors import ConflictError, HypacError, InputError
from annotation.views.access import ProjectRequest, needs
from annotation.views.forms import add_error
from routing.models import Source
from routing.services.runs import Outlook, outlook, start_run
from routing.services.states import UNDER_WAY
from routing.views.forms import PlanForm, suggested_m


@needs("runs.edit", "GET", "POST")
def plan(request: ProjectRequest) -> HttpResponseBase:
    """The form, with its outlook. A POST starts the run."""
    project = request.access.project
    form = PlanForm(request.POST or None, initial={"m": suggested_m(project)})
    values: dict[str, Any] | None = None if form.is_bound else form.initial_values()
    if request.method == "POST" and form.is_valid():
        values = form.values()
        try:
            if form.cleaned_data["anyway"] or outlook(project=project, **values).statistics.certifiable:
                run = start_run(project=project, user=request.user, **values)
                return redirect("run", project.slug, run.number)
        except HypacError as error:
            values = None  # what is wrong stands beside its field
            add_error(form, error)
        else:
            form.ask_whether_anyway()
    ready = project.items.exists() and Source.objects.filter(project=project).exists()
    return render(
        request,
        "routing/plan.html",
        {
            "form": form,
            "step": "plan",
            "open_run": project.runs.filter(state__in=UNDER_WAY).first(),
            "has_items": project.items.exists(),
            "has_sources": Source.objects.filter(project=project).exists(),
            **(_outlook(request, values) if ready and values else {}),
        },
    )


@needs("runs.edit", "GET")
def plan_outlook(request: ProjectRequest) -> HttpResponseBase:
    """What the plan as typed would mean: the part of the page that follows the fields."""
    form = PlanForm(request.GET)
    context: dict[str, Any] = {"problems": []}
    if form.is_valid():
        context |= _outlook(request, form.values())
    else:
        context["problems"] = [
            (form.fields[name].label if name in form.fields else "", " ".join(str(error) for error in errors))
            for name, errors in form.errors.items()
        ]
    return render(request, "routing/_outlook.html", context)


def _outlook(request: ProjectRequest, values: dict[str, Any]) -> dict[str, Any]:
    try:
        found: Outlook = outlook(project=request.access.project, **values)
    except (InputError, ConflictError) as error:
        label = PlanForm.base_fields[error.where].label if error.where in PlanForm.base_fields else ""
        return {"problems": [(label, error.message)]}
    return {
        "outlook": found,
        "committed_share": found.committed / found.people_only if found.people_only else None,
    }
