"""Planning a run: what is promised, how many labels that takes, and what it will cost."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render

from annotation.common.access import ProjectRequest, needs
from annotation.common.converters import whole_number
from annotation.common.forms import add_error
from annotation.errors import HypacError
from annotation.jobs.progress import job_progress
from annotation.models import Project
from routing.common.states import UNDER_WAY
from routing.core.choices import DEFAULT_TARGET
from routing.models import Run, Source
from routing.runs.busy import refuse_while_busy
from routing.runs.forecast import forecast_of_plan
from routing.runs.form_fields import typed_percent
from routing.runs.forms import PlanForm
from routing.runs.labelling_pace import PeopleTime, people_time_of
from routing.runs.measure import discard_measurement, offer, start_measurement
from routing.runs.missing_answers import missing_in_words
from routing.runs.plan import PlanOutlook, check_plan, outlook_of_plan
from routing.runs.plan_choices import (
    EPSILONS,
    PRESETS,
    Preset,
    PromiseOutlook,
    promises_of_plan,
    sends_nearly_all,
    suggested_m,
)
from routing.runs.pool import labelled_already, size_of_pool
from routing.runs.reference_outlook import (
    missing_for_references,
    references_of_plan,
    warning_of_references,
)
from routing.runs.replan import plan_form_data
from routing.runs.start import start_run
from routing.sources.warnings import confirmation_question, usability_in_words

# What the buttons beside the forecast change, and beside which the form is shown again.
LOOKS = ("look", "measure", "discard", "use_m", "without", "take")
LARGE = 100
NUMBERS = {"epsilon", "alpha", "m", "p", "split_share", "later_audit_share", "budget", "seconds"}


@needs("runs.edit", "GET", "POST")
def plan(request: ProjectRequest) -> HttpResponseBase:
    """The form, with its outlook. A POST starts the run, or with one of `LOOKS` shows the form again: "look"
    for whoever has no JavaScript, by which the outlook follows the fields, the others with what they change.
    """
    project = request.access.project
    like = _like(request)
    form = PlanForm(
        _chosen(request.POST) or (plan_form_data(like) if like else None),
        project=project,
        initial={"m": suggested_m(size_of_pool(project, DEFAULT_TARGET))},
    )
    values: dict[str, Any] | None = None if form.is_bound else form.initial_values()
    if like and form.is_valid():
        values = form.values()
    if request.method == "POST" and form.is_valid():
        values = form.values()
        try:
            _measure(request, values)
            seen = outlook_of_plan(project=project, **values)
            starts = not any(name in request.POST for name in LOOKS)
            left = _questions(form, project, seen) if starts else []
            for ask in left:
                ask()
            if starts and not left:
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
    shown = _outlook(request, form, values) if ready and values else {}
    if ready and form.faults:
        _tell_others(form, project)
    if not form.is_bound and (m := _proposed_m(shown)):
        # What is proposed is where a plan begins: the row of its epsilon says the same.
        form = PlanForm(None, project=project, initial={"m": m})
        shown = _outlook(request, form, form.initial_values())
    return render(
        request,
        "routing/runs/plan.html",
        {
            "form": form,
            "options": form.options,
            "step": "plan",
            "like": like,
            "open_run": project.runs.filter(state__in=UNDER_WAY).first(),
            "has_items": project.items.exists(),
            "labelled_by_people": labelled_already(project),
            "has_sources": Source.objects.filter(project=project).exists(),
            **shown,
        },
    )


def _proposed_m(shown: dict[str, Any]) -> int | None:
    """The draw that is proposed for the plan that is shown, if it is another one than it has."""
    if foretold := shown.get("foretold"):
        return foretold.better_m or None
    if not (outlook := shown.get("outlook")):
        return None
    rows = (row.seen for row in shown["promises"] if row.seen.epsilon == outlook.plan.epsilon)
    return next((row.m for row in rows if row.m != outlook.plan.m), None)


def _like(request: ProjectRequest) -> Run | None:
    """The run that this plan is to begin as, named by the address."""
    if "like" not in request.GET:
        return None
    return get_object_or_404(
        request.access.project.runs, number=whole_number(request.GET["like"]), by_people=False
    )


def _chosen(data: QueryDict) -> QueryDict:
    """What was typed, with what a button beside the forecast says."""
    changed = data.copy()
    if "use_m" in data:
        changed["m"] = str(data["use_m"])
    if "take" in data:
        for name, typed in zip(("epsilon", "alpha", "m"), str(data["take"]).split("|"), strict=False):
            if typed:
                changed[name] = typed
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


def _questions(form: PlanForm, project: Project, seen: PlanOutlook) -> list[Callable[[], None]]:
    """What is left to be confirmed before a start, each as what has the form ask for it."""
    ticked = form.cleaned_data if form.is_bound else {}
    left: list[Callable[[], None]] = []
    if not ticked.get("anyway") and not seen.statistics.certifiable:
        left.append(form.ask_whether_anyway)
    if not ticked.get("accept_unusable") and seen.looked.asking:
        left.append(partial(form.ask_whether_unusable, confirmation_question(seen.looked.asking)))
    if not ticked.get("accept_missing") and seen.missing:
        left.append(partial(form.ask_whether_missing, missing_in_words(seen.missing)))
    if not ticked.get("accept_dearer") and (dearer := warning_of_references(project, seen)):
        left.append(partial(form.ask_whether_dearer, dearer))
    return left


@needs("runs.edit", "GET")
def plan_outlook(request: ProjectRequest) -> HttpResponseBase:
    """What the plan as typed would mean: the parts of the page that follow the fields."""
    form = PlanForm(request.GET, project=request.access.project)
    context: dict[str, Any] = {"form": form, "problems": [], "quiet": "quiet" in request.GET}
    if form.is_valid():
        context |= _outlook(request, form, form.values())
    if form.faults:
        _tell_others(form, request.access.project)
        context["problems"] = [
            (form.fields[name].label if name in form.fields else "", " ".join(str(error) for error in errors))
            for name, errors in form.errors.items()
        ]
    return render(request, "routing/runs/_outlook_live.html", context | {"options": form.options})


def _tell_others(form: PlanForm, project: Project) -> None:
    """What the plan is refused for besides, so that all of it is told at once: numbers that are wrong stand
    where the form begins while the others are looked at. Choices hang together: behind a wrong one nothing is
    looked at.
    """
    begins = {"m": suggested_m(size_of_pool(project, DEFAULT_TARGET)), **form.initial_values()}
    needed = {name: begins[name] for name in ("epsilon", "alpha", "m")}
    while form.errors.keys() <= NUMBERS:
        values = needed | form.values()
        try:
            check_plan(project=project, **values)
        except HypacError as error:
            if error.where in form.errors or error.where not in form.fields:
                return
            add_error(form, error)
        else:
            return


def _outlook(request: ProjectRequest, form: PlanForm, values: dict[str, Any]) -> dict[str, Any]:
    project, seconds = request.access.project, form.seconds_per_label
    try:
        found: PlanOutlook = outlook_of_plan(project=project, seconds=seconds, **values)
    except HypacError as error:
        if form.is_bound:
            add_error(form, error)
        label = form.fields[error.where].label if error.where in form.fields else ""
        return {"problems": [(label, error.message)]}
    return {
        "outlook": found,
        "asks_first": bool(_questions(form, project, found)),
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
        **_forecast(project, found),
        **_promises(project, found, seconds),
        "references": references_of_plan(project, found),
        "references_missing": missing_for_references(project, found),
    }


def _hours_of_expert(seen: PlanOutlook) -> PeopleTime | None:
    if seen.expert_labels is None:
        return None
    least, most = seen.expert_labels
    each = seen.expert_time.seconds
    return PeopleTime(calibration=most * each, least=least * each, everything=seen.pool_size * each)


@dataclass(frozen=True)
class Promised:
    """A row of what one gets, with what takes it into the form, and a preset where it is one."""

    seen: PromiseOutlook
    seconds: float
    cost: Decimal
    preset: Preset | None = None

    @property
    def take(self) -> str:
        """Epsilon, alpha and m as they are typed."""
        return "|".join(
            (typed_percent(self.seen.epsilon), typed_percent(self.seen.alpha), str(self.seen.m or ""))
        )


def _promises(project: Project, seen: PlanOutlook, seconds: int) -> dict[str, Any]:
    """What one gets for other promises, at the alpha of the plan, and for those to begin with."""
    asked = [(epsilon, seen.plan.alpha) for epsilon in EPSILONS]
    found = promises_of_plan(project, seen, [*asked, *((one.epsilon, one.alpha) for one in PRESETS)])
    each, price = float(seen.people_per_item) * seconds, seen.plan.costs[-1]
    rows = [
        Promised(
            one,
            (one.labels if one.best is None else one.best.people) * each,
            about(one.labels * price if one.best is None else one.best.net_cost),
            preset,
        )
        for one, preset in zip(found, (*(None for _ in asked), *PRESETS), strict=False)
    ]
    return {"promises": rows[: len(asked)], "presets": rows[len(asked) :]}


def about(amount: Decimal | float) -> Decimal:
    """A foretold amount, in whole units where it has three digits of them."""
    exact = Decimal(amount)
    return exact.quantize(Decimal(1) if exact >= LARGE else Decimal("0.01"))


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
                "net": about(row.net_cost),
            }
            for row in foretold.rows
        ]
        nearly_all = sends_nearly_all(foretold.now, seen.pool_size)
        return {"foretold": foretold, "forecast_rows": rows, "foretold_nearly_all": nearly_all}
    if measured.usable:
        return {}  # its losses are not computed yet: measuring again would be paid for again
    try:
        refuse_while_busy(project)
        left_out = {source.name for source in project.sources.all()} - {one.name for one in seen.sources}
        return {"offer": offer(project, target=seen.plan.target, leave_out=sorted(left_out))}
    except HypacError as error:
        return {"not_offered": error.message}
