"""Trying a source on a few items: what it is asked, what it answers, and what that costs."""

from typing import Any

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.jobs import running as jobs
from annotation.jobs.progress import job_progress
from annotation.projects.jobs_views import STOP_POLLING
from annotation.templatetags.hypac import money
from routing.models import Source
from routing.sources.prompt_versions import prompted
from routing.sources.trial_queries import newest_try
from routing.sources.trials import ITEMS, start_try, use_as_price


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
        "prompted": source.backend in prompted(),
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
