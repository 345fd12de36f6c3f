"""Candidates of a source: the development items they are compared on, each of them, and two side by side."""

from typing import Any

from django.contrib import messages
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.converters import whole_number
from annotation.common.forms import add_error
from annotation.errors import HypacError, InputError, NotAllowedError
from annotation.jobs import jobs
from annotation.jobs.progress import job_progress
from annotation.labelling.page import controls, value_of
from annotation.projects.jobs_views import STOP_POLLING
from annotation.task_types import TASK_TYPES
from routing.held_out.manage import set_answer
from routing.models import PromptCandidate, Source
from routing.runs.untouched_items import untouched_items
from routing.sources.backend_for import prompt_of, task_spec
from routing.sources.prompt_form import ExampleFormSet, initial_examples, preview_of, prompt_in
from routing.sources.prompt_versions import takes_prompt
from routing.sources.prompts import check_prompt, placeholders
from routing.workshop.candidates import (
    candidate_numbered,
    candidates_of,
    estimate,
    job_of,
    paid_for,
    run_candidate,
    use_candidate,
    write_candidate,
)
from routing.workshop.development import (
    FEWEST,
    MOST,
    development_items,
    draw_items,
    labelled_in_rounds,
    labelled_items,
    next_to_label,
    take_over_rounds,
)
from routing.workshop.forms import BudgetForm, CandidateForm, DrawForm
from routing.workshop.results import compare_candidates, mistakes_of, results_of


@needs("sources.edit", "GET", "POST")
def candidates(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    """All of them, and with ?first and ?second two side by side. A POST draws development items."""
    source, project = _source(request, source_id), request.access.project
    form = DrawForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            draw_items(access=request.access, size=form.cleaned_data["size"])
        except NotAllowedError:
            raise
        except HypacError as error:
            add_error(form, error)
        else:
            return redirect("candidates_label", project.slug, source.pk)
    results = results_of(source)
    drawn = development_items(project).count()
    context: dict[str, Any] = {
        "source": source,
        "results": results,
        "run": [one for one in results if one.asked],
        "form": form,
        "drawn": drawn,
        "paid": paid_for(source),
        "labelled": labelled_items(project).count(),
        "can_draw": min(MOST - drawn, untouched_items(project).count()),
        "fewest": FEWEST,
        "of_rounds": len(labelled_in_rounds(project)),
        "step": "sources",
    }
    by_number = {str(one.candidate.number): one for one in context["run"]}
    pair = [by_number.get(request.GET.get(name, "")) for name in ("first", "second")]
    if pair[0] and pair[1]:
        context |= {"pair": pair, "compared": compare_candidates(pair[0], pair[1])}
    return render(request, "routing/workshop/candidates.html", context)


@needs("sources.edit", "POST")
def candidates_rounds(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    """Take over what people labelled in guideline rounds."""
    source = _source(request, source_id)
    with refusals_as_messages(request):
        count = take_over_rounds(access=request.access)
        messages.success(request, _("%(count)s items were taken over.") % {"count": count})
    return redirect("candidates", request.access.project.slug, source.pk)


@needs("sources.edit", "GET", "POST")
def candidates_label(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    """Label the development items, one after the other; no answer of a model is shown before."""
    source, project = _source(request, source_id), request.access.project
    after, typed = whole_number(request.GET.get("after", "0")), None
    if request.method == "POST":
        sent = get_object_or_404(development_items(project), pk=whole_number(request.POST.get("held", "")))
        try:
            if problem := TASK_TYPES[project.task_type].form_problem(request.POST):
                raise InputError(problem, where="value")
            set_answer(access=request.access, held=sent, answer=value_of(request))
            return redirect(f"{request.path}?after={sent.pk}")
        except InputError as error:
            messages.error(request, str(error))
            after, typed = sent.pk - 1, value_of(request)
    held = next_to_label(project, after=after) or next_to_label(project)
    drawn, labelled = development_items(project).count(), labelled_items(project).count()
    return render(
        request,
        "routing/workshop/label.html",
        {
            "source": source,
            "held": held,
            "drawn": drawn,
            "labelled": labelled,
            **controls(project, held.item if held else None, given=typed),
        },
    )


@needs("sources.edit", "GET", "POST")
def candidate_new(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    """Write one, beginning with ?like. A POST with `show` only shows it filled in."""
    source, project = _source(request, source_id), request.access.project
    existing = candidates_of(source)
    number = whole_number(request.GET.get("like", "0"))
    like = next((one for one in existing if one.number == number), existing[-1])
    sent = request.POST if request.method == "POST" else None
    form, shown = CandidateForm(sent, like=like), prompt_of(like)
    examples = ExampleFormSet(sent, prefix="examples", initial=None if sent else initial_examples(shown))
    if sent is not None and form.is_valid() and examples.is_valid():
        try:
            shown = prompt_in(form, examples)
            if "show" in sent:
                check_prompt(shown, task_spec(project))
            else:
                made = write_candidate(
                    access=request.access, source=source, prompt=shown, params=form.params()
                )
                return redirect("candidate", project.slug, source.pk, made.number)
        except NotAllowedError:
            raise
        except HypacError as error:
            add_error(form, error)
    context = {
        "source": source,
        "like": like,
        "form": form,
        "examples": examples,
        "examples_sent": bool(sent) and any(row.has_changed() for row in examples),
        "placeholders": placeholders(task_spec(project)),
        "step": "sources",
        **preview_of(project, shown, form),
    }
    return render(request, "routing/workshop/candidate_new.html", context)


@needs("sources.edit", "GET", "POST")
def candidate(request: ProjectRequest, source_id: int, number: int) -> HttpResponseBase:
    """One of them. A POST runs it; htmx asks again until the job has ended."""
    source, project = _source(request, source_id), request.access.project
    found = _candidate(source, number)
    form = BudgetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            run_candidate(access=request.access, candidate=found, budget=form.cleaned_data["budget"])
        except NotAllowedError:
            raise
        except HypacError as error:
            add_error(form, error)
        else:
            return redirect("candidate", project.slug, source.pk, found.number)
    result = next(one for one in results_of(source) if one.candidate.number == number)
    job = job_of(found)
    polls = job is not None and job.state in jobs.UNFINISHED
    context: dict[str, Any] = {
        "source": source,
        "candidate": found,
        "result": result,
        "mistakes": mistakes_of(result),
        "form": form,
        "job": job,
        "progress": job_progress(job) if job else None,
        "polls": polls,
        "drawn": development_items(project).count(),
        "examples": prompt_of(found).examples,
        "step": "sources",
    }
    try:
        context["estimate"] = None if polls else estimate(found)
    except HypacError as error:
        context["refusal"] = str(error)
    if request.htmx:
        status = 200 if polls else STOP_POLLING
        return render(request, "routing/workshop/_candidate_run.html", context, status=status)
    context |= preview_of(project, prompt_of(found), CandidateForm(like=found))
    return render(request, "routing/workshop/candidate.html", context)


@needs("sources.edit", "POST")
def candidate_use(request: ProjectRequest, source_id: int, number: int) -> HttpResponseBase:
    """Put it in force."""
    source = _source(request, source_id)
    with refusals_as_messages(request):
        use_candidate(access=request.access, candidate=_candidate(source, number))
        messages.success(request, _("%(name)s is asked so from now on.") % {"name": source.name})
    return redirect("candidate", request.access.project.slug, source.pk, number)


def _source(request: ProjectRequest, source_id: int) -> Source:
    rows = Source.objects.select_related("project", "price")
    source = get_object_or_404(rows, project=request.access.project, pk=source_id)
    if source.backend not in takes_prompt():
        raise Http404("a source that is asked without a prompt")
    return source


def _candidate(source: Source, number: int) -> PromptCandidate:
    found = candidate_numbered(source, number)
    if found is None:
        raise Http404("no such candidate")
    return found
