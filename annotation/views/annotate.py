"""The page on which people label, one item at a time.

Every answer brings the next item along: htmx gets the part of the page that changes, a browser without
JavaScript is redirected to the page. Nothing here says what an item is asked for, and no model's answer comes
near it.
"""

import secrets
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from annotation import queue
from annotation.errors import ConflictError, InputError
from annotation.models import Label, Project, Skip
from annotation.queue import Task
from annotation.selectors.label_values import in_words
from annotation.selectors.objections import why_not_mine
from annotation.selectors.work import annotator_pace, waiting_for
from annotation.values import MAX_CHARACTERS
from annotation.views.access import ProjectRequest, needs

SHOWN = 60
"""Characters of an answer that a message repeats."""
# A page that was open for longer measured something else than the time somebody looked at an item.
LONGEST_LEAD_TIME_MS = 24 * 3600 * 1000


@dataclass(frozen=True)
class Said:
    """What the person is told about what they just did: `trouble` where it did not go as meant."""

    text: str
    trouble: bool = False


@needs("label", "GET")
def annotate(request: ProjectRequest) -> HttpResponseBase:
    if wanted := request.GET.get("correct"):
        return _show(request, _to_correct(_own_label(request, wanted)))
    return _show(request, queue.claim(project=request.access.project, user=request.user))


@needs("label", "POST")
def submit(request: ProjectRequest) -> HttpResponseBase:
    try:
        label = queue.submit(
            user=request.user,
            work_item_id=_work_item_id(request),
            token=request.POST.get("token", ""),
            **_answer_of(request),
        )
    except InputError as error:
        return _refused(request, error, queue.claim(project=request.access.project, user=request.user))
    except ConflictError as error:
        return _next(request, Said(str(error), trouble=True))
    return _next(request, Said(_("Saved: %(label)s") % {"label": _name(label)}))


@needs("label", "POST")
def correct(request: ProjectRequest) -> HttpResponseBase:
    label = _own_label(request, request.POST.get("label", ""))
    if label.work_item.batch.locked_at and request.POST.get("confirm") != "yes":
        said = Said(_("Not changed. Tick the box first to say that you want to change it."), trouble=True)
        return _respond(request, said, _to_correct(label))
    try:
        newest = queue.correct(user=request.user, label_id=label.pk, **_answer_of(request))
    except InputError as error:
        return _refused(request, error, _to_correct(label))
    except ConflictError as error:
        return _next(request, Said(str(error), trouble=True))
    return _next(request, Said(_("Corrected: %(label)s") % {"label": _name(newest)}))


@needs("label", "POST")
def skip(request: ProjectRequest) -> HttpResponseBase:
    try:
        queue.skip(
            user=request.user,
            work_item_id=_work_item_id(request),
            token=request.POST.get("token", ""),
            reason=request.POST.get("reason", ""),
            comment=request.POST.get("comment", ""),
        )
    except (ConflictError, InputError) as error:
        return _next(request, Said(str(error), trouble=True))
    return _next(request, Said(_("Skipped. Somebody else will look at it.")))


@needs("label", "POST")
def undo(request: ProjectRequest) -> HttpResponseBase:
    try:
        before = _whole(data) if (data := request.POST.get("before")) else None
        task = queue.undo(project=request.access.project, user=request.user, before=before)
    except (ConflictError, InputError) as error:
        return _next(request, Said(str(error), trouble=True))
    if task is None:
        return _next(request, Said(_("There is nothing to take back."), trouble=True))
    said = _("Your last answer is back.") if task.correcting else _("The item that you skipped is back.")
    return _respond(request, Said(said), task)


@needs("label", "POST")
def heartbeat(request: ProjectRequest) -> HttpResponseBase:
    """Keep the item with the person for as long as they look at it."""
    try:
        until = queue.heartbeat(
            user=request.user, work_item_id=_work_item_id(request), token=request.POST.get("token", "")
        )
    except (ConflictError, InputError) as error:
        return JsonResponse({"message": str(error)}, status=409)
    return JsonResponse({"expires_at": until.isoformat()})


@needs("label", "POST")
def release(request: ProjectRequest) -> HttpResponseBase:
    """Give back what the person holds, so that others need not wait for it."""
    queue.release_all(project=request.access.project, user=request.user)
    messages.success(request, _("Nothing is waiting for you any more. Thank you for your labels."))
    return redirect("overview", request.access.project.slug)


# --- Answers ------------------------------------------------------------------------------------------------


def _next(request: ProjectRequest, said: Said) -> HttpResponseBase:
    if not request.htmx:
        return _respond(request, said, None)  # the page it is redirected to claims
    return _respond(request, said, queue.claim(project=request.access.project, user=request.user))


def _respond(request: ProjectRequest, said: Said, task: Task | None) -> HttpResponseBase:
    if request.htmx:
        return _show(request, task, said)
    (messages.warning if said.trouble else messages.success)(request, said.text)
    address = reverse("annotate", args=[request.access.project.slug])
    return redirect(f"{address}?correct={task.correcting.pk}" if task and task.correcting else address)


def _refused(request: ProjectRequest, error: InputError, task: Task | None) -> HttpResponseBase:
    """The same item again with what was typed; it is not redirected, because that would lose it. Where the
    item has passed on meanwhile, the answer does not go to another one.
    """
    same = task is not None and str(task.work_item.pk) == request.POST.get("work_item")
    said = Said(error.message, trouble=True)
    if not request.htmx:
        messages.warning(request, said.text)
    return _show(request, task, said if request.htmx else None, typed=_value_of(request) if same else None)


def _show(
    request: ProjectRequest, task: Task | None, said: Said | None = None, *, typed: Any = None
) -> HttpResponseBase:
    project, user = request.access.project, request.user
    choices = list(project.choices.all())
    before = (task.correcting.value if task.correcting else task.draft_value) if task else None
    context: dict[str, Any] = {
        "task": task,
        "task_type": project.task_type,
        "max_characters": MAX_CHARACTERS.get(project.task_type),
        "said": said,
        "choices": choices,
        "given": before if typed is None else typed,
        "given_name": _short(in_words(before, {choice.key: choice.name for choice in choices})),
        "idempotency_key": secrets.token_hex(16),
        "skip_reasons": Skip.Reason.choices,
        "pace": annotator_pace(project=project, user=user),
        "waiting": waiting_for(project=project, user=user) if task else 0,
        "objection": "" if task else why_not_mine(project, user),
    }
    template = "annotation/_task.html" if request.htmx else "annotation/annotate.html"
    return render(request, template, context)


def _to_correct(label: Label) -> Task:
    return Task(
        work_item=label.work_item,
        item=label.item,
        token="",
        expires_at=None,
        draft_value=None,
        correcting=label,
    )


# --- What was sent ------------------------------------------------------------------------------------------


def _answer_of(request: ProjectRequest) -> dict[str, Any]:
    lead_time = request.POST.get("lead_time_ms", "")
    measured = int(lead_time) if lead_time.isascii() and lead_time.isdigit() and len(lead_time) < 12 else None
    value = _value_of(request)
    if isinstance(value, list) and bool(value) == (request.POST.get("none") == "yes"):
        raise InputError(
            _("You ticked labels and said that none of them fits. Give one of the two answers.")
            if value
            else _("Tick each label that fits, or say that none of them does."),
            where="value",
        )
    return {
        "value": value,
        "idempotency_key": request.POST.get("idempotency_key", ""),
        "lead_time_ms": min(measured, LONGEST_LEAD_TIME_MS) if measured is not None else None,
        "comment": request.POST.get("comment", ""),
    }


def _value_of(request: ProjectRequest) -> str | list[str]:
    """The answer as it was sent; of several choices a list."""
    if request.access.project.task_type != Project.TaskType.MULTIPLE_CHOICE:
        return request.POST.get("value", "")
    return request.POST.getlist("value")


def _work_item_id(request: ProjectRequest) -> int:
    """The work item that the form names, if it is one of this project."""
    number = _whole(request.POST.get("work_item", ""))
    if not request.access.project.work_batches.filter(work_items=number).exists():
        raise Http404("no such work item in this project")
    return number


def _own_label(request: ProjectRequest, number: str) -> Label:
    label = (
        Label.objects.select_related("work_item__batch", "item__image")
        .filter(
            pk=_whole(number),
            annotator=request.user,
            item__project=request.access.project,
            superseded_by__isnull=True,
        )
        .first()
    )
    if label is None:
        raise Http404("no such label of this person, or a newer version of it")
    return label


def _whole(text: str | None) -> int:
    if not text or not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Http404("not a number")
    return int(text)


def _name(label: Label) -> str:
    names = dict(label.item.project.choices.values_list("key", "name"))
    return _short(in_words(label.value, names))


def _short(text: str) -> str:
    """What fits into a message of one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"
