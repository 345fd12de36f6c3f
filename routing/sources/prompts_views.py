"""The prompt of a source: written, seen filled in with an item before it is used, and its versions."""

from typing import Any

from django.contrib import messages
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.forms import add_error
from annotation.errors import HypacError
from annotation.jobs import jobs
from annotation.jobs.progress import job_progress
from annotation.projects.jobs_views import STOP_POLLING
from annotation.templatetags.hypac import money
from routing.models import Source
from routing.sources.backend_for import prompt_of, task_spec
from routing.sources.backends import Prompt
from routing.sources.manage import run_in_use, save_prompt
from routing.sources.prompt_form import (
    ExampleFormSet,
    PromptForm,
    initial_examples,
    preview_of,
    prompt_in,
)
from routing.sources.prompt_versions import prompt_in_force, takes_prompt
from routing.sources.prompts import check_prompt, placeholders
from routing.sources.trials import ITEMS, newest_try, start_try, use_as_price

SHOWN_VERSIONS = 30


@needs("sources.edit", "GET", "POST")
def source_prompt(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    """A POST with `show` only shows the prompt filled in; without it the prompt is saved."""
    project = request.access.project
    source = get_object_or_404(Source, project=project, pk=source_id)
    if source.backend not in takes_prompt():
        raise Http404("a source that is asked without a prompt")
    shown = _version(source, request.GET.get("version", "")) or prompt_in_force(source)
    form = PromptForm(request.POST or None, initial={"system": shown.system, "template": shown.template})
    # What was sent counts as it is: a row that is like one of the stored prompt is no empty one.
    sent = request.POST if request.method == "POST" else None
    examples = ExampleFormSet(sent, prefix="examples", initial=None if sent else initial_examples(shown))
    if request.method == "POST" and form.is_valid() and examples.is_valid():
        try:
            shown = prompt_in(form, examples)
            if "show" in request.POST:
                check_prompt(shown, task_spec(project))
            else:
                save_prompt(source=source, user=request.user, prompt=shown)
                messages.success(request, _("The prompt is saved. Try it on a few items before a run."))
                return redirect("source_try", project.slug, source.pk)
        except HypacError as error:
            add_error(form, error)
    return render(
        request,
        "routing/sources/prompt.html",
        {
            "source": source,
            "form": form,
            "examples": examples,
            "in_force": prompt_in_force(source),
            "resting": run_in_use(source),
            "examples_sent": bool(sent) and any(row.has_changed() for row in examples),
            "versions": source.prompt_versions.select_related("created_by").order_by("-number")[
                :SHOWN_VERSIONS
            ],
            "placeholders": placeholders(task_spec(project)),
            "step": "sources",
            **preview_of(project, shown, form),
        },
    )


def _version(source: Source, number: str) -> Prompt | None:
    if not (number.isascii() and number.isdigit() and len(number) < 9):
        return None
    version = source.prompt_versions.filter(number=int(number)).first()
    return None if version is None else prompt_of(version)


@needs("sources.edit", "GET", "POST")
def source_try(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    """The newest try; a POST starts another one. htmx asks again until the job has ended."""
    source = _source(request, source_id)
    if request.method == "POST":
        with refusals_as_messages(request):
            start_try(source=source, user=request.user)
        return redirect("source_try", request.access.project.slug, source.pk)
    shown = newest_try(source)
    progress = job_progress(shown.job) if shown.job else None
    polls = shown.job is not None and shown.job.state in jobs.UNFINISHED
    context: dict[str, Any] = {
        "source": source,
        "shown": shown,
        "progress": progress,
        "polls": polls,
        "count": ITEMS,
        "prompted": source.backend in takes_prompt(),
        "step": "sources",
    }
    if request.htmx:
        return render(request, "routing/sources/_try.html", context, status=200 if polls else STOP_POLLING)
    return render(request, "routing/sources/try.html", context)


@needs("sources.edit", "POST")
def source_try_price(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    """Take the mean cost of the newest try as the price per label."""
    source = _source(request, source_id)
    with refusals_as_messages(request):
        shown = newest_try(source)
        if shown.tried is None:
            messages.error(request, _("Try the source first."))
        else:
            price = use_as_price(tried=shown.tried, user=request.user)
            currency = request.access.project.currency
            messages.success(
                request,
                _("Plans now reckon with %(price)s per label.") % {"price": money(price, currency)},
            )
    return redirect("source_try", request.access.project.slug, source.pk)


def _source(request: ProjectRequest, source_id: int) -> Source:
    return get_object_or_404(
        Source.objects.select_related("project"), project=request.access.project, pk=source_id
    )
