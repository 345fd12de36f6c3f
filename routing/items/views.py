"""The pages of items: the table, one item, and changes to many at once, which can be undone."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _, ngettext

from annotation.common import limits
from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.errors import HypacError, NotAllowedError
from annotation.jobs.progress import job_progress
from annotation.labelling.comments import add_comment, resolve_flag
from annotation.models import Job
from routing.items import table_query
from routing.items.changes import CHANGES, allowed_changes, change_items, change_of, chosen_items, undo_change
from routing.items.counts import table_total
from routing.items.history import item_history
from routing.items.sorts import SORTS, key_of
from routing.items.table import MAX_SIZE, in_the_way, table_page
from routing.visibility import view_permission


@needs("items.view", "GET")
def items(request: ProjectRequest) -> HttpResponseBase:
    """A page of the table. How many items there are on all pages takes longer, and is asked for by it."""
    project = request.access.project
    permission = view_permission(project, request.access, run=table_query.run_of(request.GET))
    asked = table_query.table_request(request.GET, permission)
    if request.htmx and "count" in request.GET:
        total = table_total(permission, filters=asked.filters, sort=asked.sort)
        return render(
            request, "routing/items/_items_total.html", {"total": total, "filtered": bool(asked.filters)}
        )
    after, before = request.GET.get("after"), request.GET.get("before")
    lost = any(place and key_of(asked.sort, place) is None for place in (after, before))
    page = table_page(
        permission, filters=asked.filters, sort=asked.sort, after=after, before=before, count=False
    )
    known = table_query.options(permission)
    chips = table_query.chips(asked, known)
    fields = list(table_query.fields(asked, known, permission))
    context: dict[str, Any] = {
        "page": page,
        "asked": asked,
        "query": asked.query(),
        "chips": chips,
        "fields": fields,
        "orders": table_query.orders(permission),
        "columns": table_query.columns(permission),
        "lists_all": SORTS[asked.sort.removeprefix("-")].lists_all,
        "run": permission.run,
        "runs": _runs(permission),
        "changes": [
            change for change in CHANGES.values() if allowed_changes(change, request.access, permission)
        ],
        "has_images": any(row.image for row in page.rows),
        # The same table in its other look: as tiles, where there are images, or as rows again.
        "other_look": replace(asked, gallery=not asked.gallery).query(),
        # A page that was cut off may be followed by one without rows: other pages may have what matches.
        "went_on": bool(after or before) and not lost,
        "lost": lost,
    }
    if not (page.rows or page.cut or context["went_on"]) and chips:
        helpful = in_the_way(permission, asked.filters)
        context["take_away"] = [chip for chip in chips if chip.name in helpful]
    return render(request, "routing/items/items.html", context)


def _runs(permission: Any) -> list[int]:
    """Numbers of the runs whose scores and routes can be looked at."""
    if permission.run is None:
        return []
    runs = permission.project.runs.filter(certificate__isnull=False).order_by("-number")
    return list(runs.values_list("number", flat=True)[: limits.LISTED])


@needs("items.view", "GET")
def item(request: ProjectRequest, item_id: int) -> HttpResponseBase:
    """The address may carry the filters and the order of the table: "next" is the next one there. The table
    asks for what it shows beside its rows.
    """
    project = request.access.project
    permission = view_permission(project, request.access, run=table_query.run_of(request.GET))
    asked = table_query.table_request(request.GET, permission)
    history = item_history(
        project, request.access, item_id, filters=asked.filters, sort=asked.sort, run=asked.run
    )
    if history is None:
        raise Http404("no such item in this project")
    beside = request.htmx and "beside" in request.GET
    return render(
        request,
        "routing/items/_item_beside.html" if beside else "routing/items/item.html",
        {
            "history": history,
            "item": history.item,
            "query": asked.query(),
            "chips": table_query.chips(asked, table_query.options(permission)),
            "may_comment": request.access.allows("review"),
        },
    )


@needs("review", "POST")
def item_comment(request: ProjectRequest, item_id: int) -> HttpResponseBase:
    project = request.access.project
    found = get_object_or_404(project.items.select_related("project"), pk=item_id)
    flag = "flag" in request.POST
    with refusals_as_messages(request):
        add_comment(item=found, author=request.user, text=request.POST.get("text", ""), is_flag=flag)
        messages.success(request, _("Flagged.") if flag else _("Comment saved."))
    return redirect("item", project.slug, found.pk)


@needs("review", "POST")
def item_flag_resolve(request: ProjectRequest, item_id: int, comment_id: int) -> HttpResponseBase:
    project = request.access.project
    permission = view_permission(project, request.access)
    comment = get_object_or_404(
        permission.comments().select_related("item__project"),
        pk=comment_id,
        item=item_id,
        item__project=project,
    )
    with refusals_as_messages(request):
        resolve_flag(comment=comment, actor=request.user)
        messages.success(request, _("The flag is seen to."))
    return redirect("item", project.slug, item_id)


@needs("review", "POST")
def items_change(request: ProjectRequest) -> HttpResponseBase:
    """First a page that says how many items it concerns; with "sure" it is done."""
    access, asked_for = request.access, request.POST
    permission = view_permission(access.project, access, run=table_query.run_of(request.GET))
    asked = table_query.table_request(request.GET, permission)
    table = f"{reverse('items', args=[access.project.slug])}?{asked.query()}"
    everything = asked_for.get("which") == "all"
    ids = None if everything else [int(text) for text in asked_for.getlist("item")[:MAX_SIZE] if _is_id(text)]
    change = CHANGES.get(asked_for.get("change", ""))
    refusal = ""
    if change is None or not allowed_changes(change, access, permission):
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
    items = chosen_items(permission, filters=asked.filters, item_ids=ids)
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
