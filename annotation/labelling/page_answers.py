"""Reading what the page on which people label has sent."""

from typing import Any

from django.http import Http404

from annotation.common.access import ProjectRequest
from annotation.common.numbers import whole_number
from annotation.errors import InputError
from annotation.models import Label
from annotation.task_types import TASK_TYPES

# A page that was open for longer measured something else than the time somebody looked at an item.
LONGEST_LEAD_TIME_MS = 24 * 3600 * 1000
MOST_HELD = 50
"""Items of which one request can say that the page holds them: far more than it ever does."""


def answer_of(request: ProjectRequest) -> dict[str, Any]:
    lead_time = request.POST.get("lead_time_ms", "")
    measured = int(lead_time) if lead_time.isascii() and lead_time.isdigit() and len(lead_time) < 12 else None
    if problem := TASK_TYPES[request.access.project.task_type].form_problem(request.POST):
        raise InputError(problem, where="value")
    return {
        "value": value_of(request),
        "idempotency_key": request.POST.get("idempotency_key", ""),
        "lead_time_ms": min(measured, LONGEST_LEAD_TIME_MS) if measured is not None else None,
        "comment": request.POST.get("comment", "").strip(),
    }


def value_of(request: ProjectRequest) -> Any:
    """The answer as it was sent."""
    return TASK_TYPES[request.access.project.task_type].from_form(request.POST)


def holding(request: ProjectRequest) -> set[int] | None:
    """The work items that the page has; None where it has none and wants to be shown what is next."""
    if (data := request.POST.get("holding")) is None:
        return None
    return {whole_number(part) for part in data.split(",")[:MOST_HELD] if part}


def held_ahead(request: ProjectRequest) -> list[tuple[int, str]]:
    """Work items behind the one that is shown, each with the token of its lease."""
    parts = (part.partition(":") for part in request.POST.get("ahead", "").split(",")[:MOST_HELD] if part)
    return [(whole_number(number), token) for number, _colon, token in parts]


def work_item_id(request: ProjectRequest) -> int:
    """The work item that the form names, if it is one of this project."""
    number = whole_number(request.POST.get("work_item", ""))
    if not request.access.project.work_batches.filter(work_items=number).exists():
        raise Http404("no such work item in this project")
    return number


def own_label(request: ProjectRequest, number: str) -> Label:
    label = _own_labels(request).filter(pk=whole_number(number)).first()
    if label is None:
        raise Http404("no such label of this person, or a newer version of it")
    return label


def newest_label(request: ProjectRequest, work_item: int) -> Label | None:
    """What the person has answered to a work item so far."""
    return _own_labels(request).filter(work_item=work_item).first()


def _own_labels(request: ProjectRequest) -> Any:
    return Label.objects.select_related("work_item__batch", "item__image", "item__project").filter(
        annotator=request.user, item__project=request.access.project, superseded_by__isnull=True
    )
