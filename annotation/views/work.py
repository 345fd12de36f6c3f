"""Deciding what happens to an item that everybody skipped."""

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from annotation import queue
from annotation.models import WorkItem
from annotation.views.access import ProjectRequest, needs, told


@needs("work.decide", "POST")
def work_decide(request: ProjectRequest, work_item_id: int) -> HttpResponseBase:
    project = request.access.project
    work_item = get_object_or_404(
        WorkItem.objects.select_related("batch__project"), pk=work_item_id, batch__project=project
    )
    decision = request.POST.get("decision")
    with told(request):
        if decision == "give_up":
            queue.give_up(work_item=work_item, actor=request.user)
            messages.success(request, _("Decided: this item cannot be labelled."))
        elif decision == "ask_again":
            queue.ask_again(work_item=work_item, actor=request.user)
            messages.success(request, _("Everybody is asked again."))
        elif decision == "ask_no_more":
            queue.ask_no_more(work_item=work_item, actor=request.user)
            messages.success(request, _("Decided: the answers given are enough."))
        else:
            messages.error(request, _("Choose what to do with the item."))
    return redirect("overview", project.slug)
