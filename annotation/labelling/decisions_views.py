"""Deciding what happens to an item that everybody skipped."""

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext_lazy

from annotation.common.access import ProjectRequest, needs
from annotation.errors import ConflictError, InputError
from annotation.labelling import queue
from annotation.models import WorkItem

DECIDED = {
    "give_up": gettext_lazy("Decided: this item cannot be labelled."),
    "ask_again": gettext_lazy("Everybody is asked again."),
    "ask_no_more": gettext_lazy("Decided: the answers given are enough."),
}


@needs("work.decide", "POST")
def work_decide(request: ProjectRequest, work_item_id: int) -> HttpResponseBase:
    project = request.access.project
    work_item = get_object_or_404(
        WorkItem.objects.select_related("batch__project"), pk=work_item_id, batch__project=project
    )
    decision = request.POST.get("decision", "")
    try:
        queue.decide(work_item=work_item, actor=request.user, decision=decision)
    except InputError as error:
        messages.error(request, error.message)
    except ConflictError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, DECIDED[decision])
    return redirect("overview", project.slug)
