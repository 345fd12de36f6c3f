"""One item with its history."""

from django.contrib import messages
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.labelling.comments import add_comment, resolve_flag
from routing.items import table_query
from routing.items.history import item_history
from routing.sources.visibility import view_permission


@needs("items.view", "GET")
def item(request: ProjectRequest, item_id: int) -> HttpResponseBase:
    """The address may carry the filters and the order of the table: "next" is the next one there."""
    project = request.access.project
    permission = view_permission(project, request.access, run=table_query.run_of(request.GET))
    asked = table_query.asked_of(request.GET, permission)
    history = item_history(
        project, request.access, item_id, filters=asked.filters, sort=asked.sort, run=asked.run
    )
    if history is None:
        raise Http404("no such item in this project")
    return render(
        request,
        "routing/items/item.html",
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
