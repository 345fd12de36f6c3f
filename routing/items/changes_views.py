"""Changes to many items at once: asked for, confirmed, made, taken back."""

from django.contrib import messages
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _, ngettext

from annotation.common.access import ProjectRequest, needs
from annotation.errors import HypacError, NotAllowedError
from annotation.jobs.progress import job_progress
from annotation.models import Job
from routing.items import table_query
from routing.items.changes import CHANGES, allowed, change_items, change_of, chosen, undo_change
from routing.items.table import MAX_SIZE
from routing.visibility import view_permission


@needs("review", "POST")
def items_change(request: ProjectRequest) -> HttpResponseBase:
    """First a page that says how many items it concerns; with "sure" it is done."""
    access, asked_for = request.access, request.POST
    permission = view_permission(access.project, access, run=table_query.run_of(request.GET))
    asked = table_query.asked_of(request.GET, permission)
    table = f"{reverse('items', args=[access.project.slug])}?{asked.query()}"
    everything = asked_for.get("which") == "all"
    ids = None if everything else [int(text) for text in asked_for.getlist("item")[:MAX_SIZE] if _is_id(text)]
    change = CHANGES.get(asked_for.get("change", ""))
    refusal = ""
    if change is None or not allowed(change, access, permission):
        refusal = _("Choose what to do with the items.")
    elif ids == []:
        refusal = _("Tick the items first, or choose all that match.")
    elif everything and (asked.refused or asked.problems):
        # Without a filter that had to be left out it would be more items than were meant.
        refusal = _("A filter cannot be used now. Look at the table again, and choose from what it shows.")
    if refusal or change is None:
        messages.error(request, refusal)
        return redirect(table)
    if "sure" in asked_for:
        try:
            job = change_items(
                access=access,
                change_name=change.name,
                filters=asked.filters,
                item_ids=ids,
                run=asked.run,
                text=asked_for.get("text", ""),
            )
        except NotAllowedError:
            raise
        except HypacError as error:
            messages.error(request, error.message)
            return redirect(table)
        return _told(request, job, table)
    items = chosen(permission, filters=asked.filters, item_ids=ids)
    return render(
        request,
        "routing/items/items_change.html",
        {
            "change": change,
            "ids": ids,
            "chosen": items.count(),
            "concerned": change.concerns(permission, items).count(),
            "chips": table_query.chips(asked, table_query.options(permission)) if everything else [],
            "query": asked.query(),
            "table": table,
            "text": asked_for.get("text", ""),
        },
    )


@needs("review", "GET")
def items_changed(request: ProjectRequest, job_id: int) -> HttpResponseBase:
    """What a change did, and the way back."""
    job = change_of(request.access.project, job_id)
    if job is None:
        raise Http404("no such change in this project")
    change = CHANGES[job.params["change"]]
    return render(
        request,
        "routing/items/items_changed.html",
        {
            "progress": job_progress(job),
            "change": change,
            "can_undo": change.can_be_undone and request.access.allows(change.needs),
        },
    )


@needs("review", "POST")
def items_change_undo(request: ProjectRequest, job_id: int) -> HttpResponseBase:
    job = change_of(request.access.project, job_id)
    if job is None:
        raise Http404("no such change in this project")
    slug = request.access.project.slug
    try:
        undo = undo_change(access=request.access, job=job)
    except NotAllowedError:
        raise
    except HypacError as error:
        messages.error(request, error.message)
        return redirect("items_changed", slug, job_id)
    if undo.state == Job.State.DONE:
        messages.success(request, _("Taken back."))
        return redirect("items", slug)
    return redirect("job", slug, undo.pk)


def _told(request: ProjectRequest, job: Job, table: str) -> HttpResponseBase:
    slug = request.access.project.slug
    if job.state != Job.State.DONE:
        return redirect("items_changed", slug, job.pk)
    count = job.result["items"]
    done = ngettext("Done: %(count)s item.", "Done: %(count)s items.", count) % {"count": f"{count:,}"}
    change = CHANGES[job.params["change"]]
    if change.can_be_undone:
        link = format_html(
            '<a href="{}">{}</a>', reverse("items_changed", args=[slug, job.pk]), _("Take it back")
        )
        messages.success(request, format_html("{} {}", done, link))
    else:
        messages.success(request, done)
    return redirect(table)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
