"""The table of items, and one item."""

from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from annotation.views.access import ProjectRequest, needs
from routing.selectors.items import STAGES, item_history, item_rows

STAGE_NAMES = {
    "labelled": _("Labelled by a person"),
    "unlabelled": _("Not labelled by a person"),
    "waiting": _("Waiting for a person"),
    "unlabelable": _("Nobody can label it"),
}


@needs("items.view", "GET")
def items(request: ProjectRequest) -> HttpResponseBase:
    project = request.access.project
    asked = request.GET
    choices = list(project.choices.all())
    filters = {
        "q": asked.get("q", "").strip()[:200],
        "label": asked.get("label", "") if asked.get("label") in {choice.key for choice in choices} else "",
        "stage": asked.get("stage", "") if asked.get("stage") in STAGES else "",
    }
    page = item_rows(
        project,
        request.access,
        after=_position(asked.get("after")),
        before=_position(asked.get("before")),
        q=filters["q"],
        label=filters["label"] or None,
        stage=filters["stage"] or None,
    )
    return render(
        request,
        "routing/items.html",
        {
            "page": page,
            "filters": filters,
            "filtered": any(filters.values()),
            "query": urlencode({name: value for name, value in filters.items() if value}),
            "choices": choices,
            "stages": [(key, STAGE_NAMES[key]) for key in STAGES],
            "has_images": any(row.image for row in page.rows),
        },
    )


@needs("items.view", "GET")
def item(request: ProjectRequest, item_id: int) -> HttpResponseBase:
    history = item_history(request.access.project, request.access, item_id)
    if history is None:
        raise Http404("no such item in this project")
    return render(request, "routing/item.html", {"history": history, "item": history.item})


def _position(text: str | None) -> int | None:
    """A place in the table; what is no whole number means the beginning."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None
