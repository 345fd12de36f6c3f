"""The pages of items: the table, one item, and changes to many at once, which can be undone."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import Http404, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _, ngettext

from annotation.common import limits
from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.errors import HypacError, InputError, NotAllowedError
from annotation.jobs.progress import job_progress
from annotation.labelling.comments import add_comment, resolve_flag
from annotation.labelling.validation import sent_key
from annotation.models import Job
from annotation.task_types import TASK_TYPES
from routing.items import table_query
from routing.items.changes import CHANGES, allowed_changes, change_items, change_of, chosen_items, undo_change
from routing.items.correct import correct_label, correction_of
from routing.items.counts import table_total
from routing.items.erase import erase_items, erasure_in_words
from routing.items.history import item_history
from routing.items.saved_views import delete_view, may_share, rename_view, save_view, views_of
from routing.items.sorts import SORTS, key_of
from routing.items.table import MAX_SIZE, blocking_filters, table_page
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
    chips = table_query.chips(asked, known, permission)
    fields = list(table_query.fields(asked, known, permission))
    context: dict[str, Any] = {
        "page": page,
        "withholds": permission.withholds,
        "asked": asked,
        "query": asked.query(),
        "chips": chips,
        "fields": fields,
        "orders": table_query.orders(permission),
        "columns": table_query.columns(permission),
        "lists_all": SORTS[asked.sort.removeprefix("-")].lists_all,
        "run": permission.run,
        "runs": _runs(permission),
        "views": list(views_of(request.access)),
        "may_share": may_share(request.access),
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
        helpful = blocking_filters(permission, asked.filters)
        context["take_away"] = [chip for chip in chips if chip.name in helpful]
    return render(request, "routing/items/items.html", context)


@needs("views.edit", "POST")
def items_views(request: ProjectRequest) -> HttpResponseBase:
    """Keep what the table shows under a name."""
    project = request.access.project
    address = QueryDict(request.POST.get("query", ""))
    permission = view_permission(project, request.access, run=table_query.run_of(address))
    shown = table_query.table_request(address, permission).query()
    with refusals_as_messages(request):
        view = save_view(
            access=request.access,
            permission=permission,
            name=request.POST.get("name", ""),
            query=shown,
            shared="shared" in request.POST,
        )
        messages.success(request, _("The view “%(name)s” is saved.") % {"name": view.name})
    return redirect(f"{reverse('items', args=[project.slug])}?{shown}")


@needs("views.edit", "POST")
def items_view(request: ProjectRequest, view_id: int) -> HttpResponseBase:
    """Give a view another name, or delete it."""
    project = request.access.project
    view = get_object_or_404(views_of(request.access), pk=view_id)
    shown = view.query
    with refusals_as_messages(request):
        if "delete" in request.POST:
            delete_view(access=request.access, view=view)
            messages.success(request, _("The view “%(name)s” is deleted.") % {"name": view.name})
        else:
            rename_view(access=request.access, view=view, name=request.POST.get("name", ""))
            messages.success(request, _("Saved."))
    return redirect(f"{reverse('items', args=[project.slug])}?{shown}")


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
    return _item(request, item_id, beside=bool(request.htmx) and "beside" in request.GET)


def _item(
    request: ProjectRequest,
    item_id: int,
    *,
    beside: bool,
    refused: HypacError | None = None,
    saved: bool = False,
) -> HttpResponseBase:
    """`refused` says why a correction was not stored."""
    project = request.access.project
    permission = view_permission(project, request.access, run=table_query.run_of(request.GET))
    asked = table_query.table_request(request.GET, permission)
    history = item_history(
        project, request.access, item_id, filters=asked.filters, sort=asked.sort, run=asked.run
    )
    if history is None:
        raise Http404("no such item in this project")
    correction, kind = correction_of(permission, request.access, history.item), TASK_TYPES[project.task_type]
    return render(
        request,
        "routing/items/_item_beside.html" if beside else "routing/items/item.html",
        {
            "history": history,
            "item": history.item,
            "query": asked.query(),
            "chips": table_query.chips(asked, table_query.options(permission), permission),
            "may_comment": request.access.allows("review"),
            "may_erase": request.access.allows("items.erase"),
            "beside": beside,
            "saved": saved,
            "correction": correction,
            "correction_key": uuid4().hex,
            "problem": refused.message if refused else "",
            "problem_at": refused.where if refused else "",
            "confirmed": request.POST.get("confirm") == "yes",
            "typed": kind.from_form(request.POST) if refused else correction.given if correction else None,
            "comment": request.POST.get("comment", ""),
            "task_type": kind,
            "choices": list(project.choices.all()) if correction and kind.has_choices else [],
        },
    )


@needs("review", "POST")
def item_correct(request: ProjectRequest, item_id: int) -> HttpResponseBase:
    """From beside the table the item comes back as it is shown there, and the table is told."""
    project = request.access.project
    found = get_object_or_404(project.items.select_related("project"), pk=item_id)
    kind, beside = TASK_TYPES[project.task_type], bool(request.htmx)
    try:
        if problem := kind.form_problem(request.POST):
            raise InputError(problem)
        correct_label(
            permission=view_permission(project, request.access),
            access=request.access,
            item=found,
            value=kind.from_form(request.POST),
            idempotency_key=sent_key(request.POST.get("key", "")),
            comment=request.POST.get("comment", "").strip(),
            confirmed=request.POST.get("confirm") == "yes",
        )
    except HypacError as error:
        return _item(request, item_id, beside=beside, refused=error)
    if beside:
        response = _item(request, item_id, beside=True, saved=True)
        response.headers["HX-Trigger"] = "item-corrected"
        return response
    messages.success(request, _("The label is corrected."))
    return redirect(f"{reverse('item', args=[project.slug, item_id])}?{request.GET.urlencode()}")


@needs("review", "POST")
def item_comment(request: ProjectRequest, item_id: int) -> HttpResponseBase:
    project = request.access.project
    found = get_object_or_404(project.items.select_related("project"), pk=item_id)
    flag = "flag" in request.POST
    with refusals_as_messages(request):
        add_comment(item=found, author=request.user, text=request.POST.get("text", ""), is_flag=flag)
        messages.success(request, _("Flagged.") if flag else _("Comment saved."))
    return redirect("item", project.slug, found.pk)


@needs("items.erase", "POST")
def item_erase(request: ProjectRequest, item_id: int) -> HttpResponseBase:
    project = request.access.project
    found = get_object_or_404(project.items.only("external_id"), pk=item_id)
    with refusals_as_messages(request):
        done = erase_items(project=project, actor=request.user, external_ids=[found.external_id])
        messages.success(request, erasure_in_words(done))
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
    known = table_query.options(permission) if everything else {}
    return render(
        request,
        "routing/items/items_change.html",
        {
            "change": change,
            "ids": ids,
            "chosen": items.count(),
            "concerned": change.concerns(permission, items).count(),
            "chips": table_query.chips(asked, known, permission) if everything else [],
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
