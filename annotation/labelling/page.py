"""The page on which people label: reading what it sent, and showing the whole of it, the part that changes,
or one item.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from unicodedata import east_asian_width

from django.contrib import messages
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _, ngettext

from annotation.common.access import ProjectRequest
from annotation.common.converters import whole_number
from annotation.errors import InputError
from annotation.labelling import queue
from annotation.labelling.comments import flagged_by
from annotation.labelling.label_queries import label_in_words
from annotation.labelling.limits import first_labels, remaining_quota
from annotation.labelling.queries import annotator_pace, waiting_for
from annotation.labelling.queue import LeasedItem
from annotation.labelling.suggestions import suggested_value, suggests_now
from annotation.labelling.validation import sent_key
from annotation.models import Choice, Item, Label, Membership, Project, Skip, User, WorkBatch, WorkItem
from annotation.ports import routing_port
from annotation.task_types import TASK_TYPES, TaskType

# A page that was open for longer measured something else than the time somebody looked at an item.
LONGEST_LEAD_TIME_MS = 24 * 3600 * 1000
MOST_HELD = 50
"""Items of which one request can say that the page holds them: far more than it ever does."""


def answer_of(request: ProjectRequest) -> dict[str, Any]:
    lead_time = request.POST.get("lead_time_ms", "")
    measured = int(lead_time) if lead_time.isascii() and lead_time.isdigit() and len(lead_time) < 12 else None
    problem = TASK_TYPES[request.access.project.task_type].form_problem(request.POST)
    if problem and not _takes(request):
        raise InputError(problem, where="value")
    return {
        "value": value_of(request),
        "idempotency_key": sent_key(request.POST.get("idempotency_key", "")),
        "lead_time_ms": min(measured, LONGEST_LEAD_TIME_MS) if measured is not None else None,
        "comment": request.POST.get("comment", "").strip(),
    }


def value_of(request: ProjectRequest) -> Any:
    """The answer as it was sent, or where the person took it what was suggested to them."""
    if _takes(request):
        return suggested_value(whole_number(request.POST.get("work_item", "")), request.user.pk)
    return TASK_TYPES[request.access.project.task_type].from_form(request.POST)


def _takes(request: ProjectRequest) -> bool:
    """Whether the button was pressed that accepts the suggestion, on a page without JavaScript."""
    return request.POST.get("take") == "yes"


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


def own_label(request: ProjectRequest, number: str, *, any_version: bool = False) -> Label:
    labels = _own_versions(request) if any_version else _own_labels(request)
    label = labels.filter(pk=whole_number(number)).first()
    if label is None:
        raise Http404("no such label of this person, or a newer version of it")
    return label


def newest_label(request: ProjectRequest, work_item: int) -> Label | None:
    """What the person has answered to a work item so far."""
    return _own_labels(request).filter(work_item=work_item).first()


def _own_labels(request: ProjectRequest) -> Any:
    return _own_versions(request).filter(superseded_by__isnull=True)


def _own_versions(request: ProjectRequest) -> Any:
    return Label.objects.select_related("work_item__batch", "item__image", "item__project").filter(
        annotator=request.user, item__project=request.access.project
    )


# --- Shown ---
SHOWN = 60
"""Characters of an answer that a message repeats."""
ACCEPT = "a"
"""The key that accepts a suggestion (static/annotate/keys.js)."""
MANY_CHOICES = 9
"""From more labels than this on, there is a field that finds them."""
SHORTEST_NAME, SHORT_NAME, LONG_NAME, LONG_WORD = 9, 12, 40, 18
"""Letters of labels of which two lie side by side on a phone, three or two in a window, and of the longest
word in one of these two."""


@dataclass(frozen=True)
class Flash:
    """What the person is told about what they just did: `trouble` where it did not go as meant."""

    text: str
    trouble: bool = False

    @property
    def content(self) -> dict[str, Any]:
        return asdict(self)


def show(
    request: ProjectRequest,
    task: LeasedItem | None,
    said: Flash | None = None,
    *,
    typed: dict[str, Any] | None = None,
) -> HttpResponse:
    """The page, or for htmx the part of it that changes. `typed` (value, comment) is what was refused."""
    project, user = request.access.project, request.user
    if said and not request.htmx:
        (messages.warning if said.trouble else messages.success)(request, said.text)
    choices = list(project.choices.all())
    names = {choice.key: choice.name for choice in choices}
    before = (task.correcting.value if task.correcting else task.draft_value) if task else None
    comment = task.correcting.comment if task and task.correcting else ""
    pace = annotator_pace(project=project, user=user)
    waiting = waiting_for(project=project, user=user) if task else 0
    context: dict[str, Any] = {
        "task": task,
        "task_type": TASK_TYPES[project.task_type],
        "question": project.question or (TASK_TYPES[project.task_type].question if choices else _("Label")),
        "flagged": bool(task and flagged_by(user, [task.item.pk])),
        "suggestion": _suggestion(task, choices, TASK_TYPES[project.task_type]) if task else None,
        "suggests": not request.htmx and suggests_now(project),
        "letter_accepts": _letter_accepts(choices),
        "said": said if request.htmx else None,
        "choices": choices,
        "many_choices": len(choices) > MANY_CHOICES,
        "choice_columns": columns_class([choice.name for choice in choices]),
        "typed": typed is not None,
        "given": typed["value"] if typed else before,
        "given_comment": typed["comment"] if typed else comment,
        "note": _note(task, _short(label_in_words(before, names))) if task else "",
        "idempotency_key": secrets.token_hex(16),
        "skip_reasons": _skip_reasons(TASK_TYPES[project.task_type]),
        "pace": pace,
        "waiting": waiting,
        "most_today": max(1, pace.today + waiting),
        "objection": "" if task else why_not_mine(project, user),
        "missing": None if task else _missing(request),
        "next": None if task else _next(request),
        "over": not task and _is_over(project),
    }
    template = "annotation/labelling/_task.html" if request.htmx else "annotation/labelling/annotate.html"
    return render(request, template, context)


def columns_class(names: Sequence[str]) -> str:
    """In how many columns labels lie, so that no name breaks within a word: in a window, and on a phone."""
    longest = max(map(_width, names), default=0)
    longest_word = max((_width(word) for name in names for word in name.split()), default=0)
    if longest <= SHORT_NAME:
        return "columns-3 narrow-2" if longest <= SHORTEST_NAME else "columns-3"
    return "columns-2" if longest <= LONG_NAME and longest_word <= LONG_WORD else "columns-1"


def _width(text: str) -> int:
    """In Latin letters."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _missing(request: ProjectRequest) -> tuple[str, str, str] | None:
    """What has to be done before anybody can label here, in the port's words; None once people were asked."""
    if request.access.project.work_batches.filter(imported_by__isnull=True).exists():
        return None
    return routing_port().next_step(access=request.access)


def _next(request: ProjectRequest) -> tuple[str, str, str] | None:
    """Where whoever manages the runs goes on now that nothing is left to label, in the port's words; None
    for others, and where there is nothing to press but "Label".
    """
    project = request.access.project
    if not request.access.allows("runs.edit") or _missing(request):
        return None
    words, button, address = routing_port().next_step(access=request.access) or ("", "", "")
    return (
        (words, button, address) if button and address != reverse("annotate", args=[project.slug]) else None
    )


def _is_over(project: Project) -> bool:
    """Whether people were asked, and every item has ended."""
    work = WorkItem.objects.filter(batch__project=project, batch__imported_by__isnull=True)
    return work.exists() and not work.filter(state__in=WorkItem.UNFINISHED).exists()


def redirected(request: ProjectRequest, task: LeasedItem | None, said: Flash) -> HttpResponseBase:
    """To the page, with a message; where a label is to be corrected, to that."""
    (messages.warning if said.trouble else messages.success)(request, said.text)
    address = reverse("annotate", args=[request.access.project.slug])
    return redirect(f"{address}?correct={task.correcting.pk}" if task and task.correcting else address)


def cards(request: ProjectRequest) -> list[dict[str, Any]]:
    """Items that the person labels next and that the page does not hold yet: nothing but what it shows."""
    project = request.access.project
    tasks = queue.claim_ahead(project=project, user=request.user, holding=holding(request) or set())
    tells = any(task.draft_value is not None or task.suggestion is not None for task in tasks)
    choices = list(project.choices.all()) if tells else []
    names = {choice.key: choice.name for choice in choices}
    kind = TASK_TYPES[project.task_type]
    flagged = flagged_by(request.user, [task.item.pk for task in tasks])
    return [
        {
            "work_item": task.work_item.pk,
            "token": task.token,
            "html": render_to_string(
                "components/_item_content.html",
                {"item": task.item, "slug": project.slug, "text_format": project.text_format},
            ).strip(),
            "name": task.item.short_name,
            "flagged": task.item.pk in flagged,
            "given": task.draft_value,
            "note": _note(task, _short(label_in_words(task.draft_value, names))),
            **_suggestion_part(_suggestion(task, choices, kind)),
        }
        for task in tasks
    ]


def _suggestion(task: LeasedItem, choices: Sequence[Choice], task_type: TaskType) -> dict[str, Any] | None:
    """What the page shows of a suggestion: in words, and its value for the script; None for none."""
    if (shown := task.suggestion) is None:
        return None
    return {
        "source": shown.source,
        "words": label_in_words(shown.value, {choice.key: choice.name for choice in choices}),
        "value": json.dumps(shown.value),
        "monospaced": task_type.monospaced,
        "by_letter": task_type.has_choices and _letter_accepts(choices),
    }


def _suggestion_part(suggestion: dict[str, Any] | None) -> dict[str, str]:
    """Of the card of an item, and of that alone: what other items come with has no such part."""
    if suggestion is None:
        return {}
    html = render_to_string("annotation/labelling/_suggestion.html", {"suggestion": suggestion})
    return {"suggestion": html.strip()}


def _letter_accepts(choices: Sequence[Choice]) -> bool:
    """Whether the letter is free that accepts a suggestion: a label's own key goes first."""
    return all(choice.hotkey.lower() != ACCEPT for choice in choices)


def counts(request: ProjectRequest) -> dict[str, Any]:
    project, user = request.access.project, request.user
    return asdict(annotator_pace(project=project, user=user)) | {
        "waiting": waiting_for(project=project, user=user)
    }


def name_of(project: Project, label: Label) -> str:
    names = dict(project.choices.values_list("key", "name"))
    return _short(label_in_words(label.value, names))


def _note(task: LeasedItem, label: str) -> str:
    """What the person has to know about their earlier answer to the item; "" where they gave none."""
    if task.correcting:
        words = _(
            "You are correcting your answer “%(label)s”. Give the right one, or go on without a change."
        )
    elif task.draft_value is not None:
        words = _(
            "Your earlier answer “%(label)s” came too late to count. The item is yours again: give the "
            "answer once more."
        )
    else:
        return ""
    return words % {"label": label}


def _skip_reasons(task_type: TaskType) -> list[tuple[str, Any]]:
    """Only where labels are chosen may none of them fit."""
    return [
        (reason, words)
        for reason, words in Skip.Reason.choices
        if reason != Skip.Reason.NO_LABEL_FITS or task_type.has_choices
    ]


def _short(text: str) -> str:
    """What fits into a message of one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def why_not_mine(project: Project, user: User) -> str:
    """Why items that wait for a label are not given to this person, in words; "" where none are kept back."""
    membership = Membership.objects.filter(project=project, user=user).first()
    if membership is not None and (reached := limit_reached(membership)):
        return reached
    waiting = WorkItem.objects.filter(batch=OuterRef("pk"), state__in=WorkItem.UNFINISHED)
    blind = WorkBatch.objects.filter(
        Exists(waiting), project=project, blind=True, locked_at__isnull=True, withdrawn_at__isnull=True
    )
    return routing_port().blind_objection(project=project, user=user) if blind.exists() else ""


def limit_reached(membership: Membership) -> str:
    """Why this member may label no further item, in words; "" where they may."""
    if membership.paused_at is not None:
        return _(
            "You are paused: too few of your latest answers to items with a known label were right. Whoever "
            "leads the project knows, and can let you go on. Read the guidelines again meanwhile."
        )
    if remaining_quota(membership, most=1):
        return ""
    labels = first_labels(membership.project, membership.user)
    if membership.max_labels is not None and labels.count() >= membership.max_labels:
        return ngettext(
            "You have labelled %(n)s item, as many as you may in this project.",
            "You have labelled %(n)s items, as many as you may in this project.",
            membership.max_labels,
        ) % {"n": f"{membership.max_labels:,}"}
    return ngettext(
        "You have labelled %(n)s item today, as many as you may in a day. You can go on tomorrow.",
        "You have labelled %(n)s items today, as many as you may in a day. You can go on tomorrow.",
        membership.max_per_day or 0,
    ) % {"n": f"{membership.max_per_day or 0:,}"}


def controls(project: Project, item: Item | None, *, given: Any = None) -> dict[str, Any]:
    """What the controls of a task type expect, for an item that is not in the queue; None for none."""
    kind, choices = TASK_TYPES[project.task_type], list(project.choices.all())
    task = LeasedItem(work_item=WorkItem(item=item), item=item, token="", expires_at=None) if item else None
    return {
        "task_type": kind,
        "question": project.question or kind.question,
        "choices": choices,
        "many_choices": len(choices) > MANY_CHOICES,
        "choice_columns": columns_class([choice.name for choice in choices]),
        "given": given,
        "task": task,
    }
