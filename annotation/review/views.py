"""Pages for reviewers: items that people label differently, one at a time; flags; how far people agree."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.converters import whole_number
from annotation.common.replaced_labels import names_as_given
from annotation.errors import ConflictError, InputError
from annotation.labelling.comments import resolve_flag
from annotation.labelling.label_queries import label_in_words
from annotation.labelling.labels_of_record import disagreements
from annotation.labelling.page import value_of
from annotation.models import Choice, Comment, Label, WorkItem
from annotation.ports import routing_port
from annotation.review import queries
from annotation.review.agreement_queries import MAX_PEOPLE, agreement
from annotation.review.decide import NoDisputeError, decide_dispute
from annotation.review.queries import Dispute
from annotation.task_types import TASK_TYPES

SHOWN = 60
"""Characters of a decision that a message repeats."""
FLAGS_PER_PAGE = 25


@dataclass(frozen=True)
class Flash:
    """What the reviewer is told: `trouble` where it did not go as meant; `change` is the work item whose
    decision they may still change.
    """

    text: str
    trouble: bool = False
    change: int | None = None


@dataclass(frozen=True)
class Given:
    """One person's answer as it is shown; `key` takes it over, where a text is to be written."""

    label: Label
    who: str
    choices: list[Choice]
    text: str
    key: str


@needs("review", "GET")
def review(request: ProjectRequest) -> HttpResponseBase:
    project, user = request.access.project, request.user
    if wanted := request.GET.get("work_item"):
        dispute = queries.dispute_of(project, user, whole_number(wanted))
        if dispute is None:
            return _gone(request, whole_number(wanted))
        return _show(request, dispute, taken=_taken(request, dispute))
    after = request.GET.get("after")
    # The navigation counts both: it leads to what waits.
    if request.GET.get("waiting") and not (counts := tab_counts(request))["left"] and counts["flags"]:
        return redirect("review_flags", project.slug)
    return _show(request, queries.next_dispute(project, user, after=whole_number(after) if after else None))


@needs("review", "POST")
def review_decide(request: ProjectRequest) -> HttpResponseBase:
    project, user = request.access.project, request.user
    work_item = _work_item(request)
    dispute = queries.dispute_of(project, user, work_item.pk)
    confirmed = request.POST.get("confirm") == "yes"
    try:
        value = _value(request)
        if dispute is not None and work_item.batch.locked_at and not confirmed:
            raise InputError(_("Not changed. Tick the box first to say that you want to change it."))
        settlement = decide_dispute(
            project=project,
            actor=user,
            work_item=work_item,
            value=value,
            comment=request.POST.get("comment", ""),
            confirmed=confirmed,
        )
    except NoDisputeError:
        return _gone(request, work_item.pk)
    except InputError as error:
        if dispute is None:
            return _gone(request, work_item.pk)
        typed = {"value": value_of(request), "comment": request.POST.get("comment", "")}
        return _show(request, dispute, Flash(error.message, trouble=True), typed=typed)
    except ConflictError as error:
        return _next(request, Flash(str(error), trouble=True), work_item.pk)
    names = dict(project.choices.values_list("key", "name"))
    words = _("Decided: %(label)s") % {"label": _short(label_in_words(settlement.value, names))}
    return _next(request, Flash(words, change=work_item.pk), work_item.pk)


@needs("review", "GET")
def review_count(request: ProjectRequest) -> HttpResponseBase:
    """How much waits, for the navigation: asked for after the page, which it would hold up."""
    return render(request, "annotation/review/_review_count.html", tab_counts(request))


@needs("review", "GET")
def review_flags(request: ProjectRequest) -> HttpResponseBase:
    flags = Paginator(queries.open_flags(request.access.project), FLAGS_PER_PAGE)
    page = flags.get_page(request.GET.get("page"))
    return render(request, "annotation/review/review_flags.html", {"page": page, **tab_counts(request)})


@needs("review", "POST")
def flag_resolve(request: ProjectRequest, comment_id: int) -> HttpResponseBase:
    project = request.access.project
    # One that is resolved already is found, too: then somebody else was quicker, which is no missing page.
    flag = Comment.objects.filter(item__project=project, is_flag=True, pk=comment_id).first()
    if flag is None or (
        flag.resolved_at is None and not queries.open_flags(project).filter(pk=comment_id).exists()
    ):
        raise Http404("no such flag in this project")
    with refusals_as_messages(request):
        resolve_flag(comment=flag, actor=request.user)
        messages.success(request, _("The flag is resolved."))
    return redirect("review_flags", project.slug)


@needs("agreement.view", "GET")
def agreement_page(request: ProjectRequest) -> HttpResponseBase:
    project = request.access.project
    context: dict[str, Any] = {
        "agreement": agreement(project),
        "asks_several": queries.asks_several(project),
        "task_type": TASK_TYPES[project.task_type],
        "most_people": MAX_PEOPLE,
        "two_people": routing_port().two_people(access=request.access),
    }
    if request.access.allows("review"):
        context |= tab_counts(request)
    return render(request, "annotation/review/agreement.html", context)


# --- Showing ------------------------------------------------------------------------------------------------


def _next(request: ProjectRequest, said: Flash, after: int) -> HttpResponseBase:
    if not request.htmx:
        _tell(request, said)
        names = "&names=1" if _shows_names(request) else ""
        return redirect(f"{reverse('review', args=[request.access.project.slug])}?after={after}{names}")
    dispute = queries.next_dispute(request.access.project, request.user, after=after)
    return _show(request, dispute, said)


def _gone(request: ProjectRequest, work_item: int) -> HttpResponseBase:
    return _next(
        request, Flash(_("This item does not wait for a decision any more."), trouble=True), work_item
    )


def _tell(request: ProjectRequest, said: Flash) -> None:
    (messages.warning if said.trouble else messages.success)(request, said.text)


def _show(
    request: ProjectRequest,
    dispute: Dispute | None,
    said: Flash | None = None,
    *,
    taken: Label | None = None,
    typed: dict[str, Any] | None = None,
) -> HttpResponseBase:
    """The page, or for htmx the part of it that changes. `taken` is the answer that is taken over into the
    field, `typed` (value, comment) what was refused.
    """
    project, kind = request.access.project, TASK_TYPES[request.access.project.task_type]
    if said and not request.htmx:
        _tell(request, said)
    choices = list(project.choices.all())
    decided = dispute.decided if dispute else None
    value, comment = (decided.value, decided.comment) if decided else (None, "")
    context: dict[str, Any] = {
        "dispute": dispute,
        "answers": _answers(request, dispute, choices) if dispute else [],
        "names_shown": _shows_names(request),
        "said": said if request.htmx else None,
        "choices": choices,
        "task_type": kind,
        "question": project.question or kind.question,
        "given": typed["value"] if typed else taken.value if taken else value,
        "given_comment": typed["comment"] if typed else comment,
        "taken": taken,
        "asks_several": queries.asks_several(project),
        **tab_counts(request),
    }
    template = "annotation/review/_review_item.html" if request.htmx else "annotation/review/review.html"
    return render(request, template, context)


def tab_counts(request: ProjectRequest) -> dict[str, Any]:
    """What the tabs of these pages say beside their names."""
    project = request.access.project
    left = disagreements(project, request.user).count()
    flags = queries.open_flags(project).count()
    return {"left": left, "flags": flags, "waiting": left + flags}


def _answers(request: ProjectRequest, dispute: Dispute, choices: list[Choice]) -> list[Given]:
    by_key = {choice.key: choice for choice in choices}
    names = names_as_given(request.access.project)
    shown = []
    for number, label in enumerate(dispute.answers, start=1):
        keys = label.value if isinstance(label.value, list) else [label.value]
        who = _("Person %(number)s") % {"number": number}
        if _shows_names(request) or not dispute.work_item.batch.blind:
            who = label.annotator.get_full_name() or label.annotator.username
        shown.append(
            Given(
                label=label,
                who=who,
                choices=[by_key[key] for key in keys if key in by_key],
                text=label_in_words(label.value, names),
                key=str(number) if number <= 9 else "",
            )
        )
    return shown


def _shows_names(request: ProjectRequest) -> bool:
    return (request.POST if request.method == "POST" else request.GET).get("names") == "1"


# --- What was sent ------------------------------------------------------------------------------------------


def _work_item(request: ProjectRequest) -> WorkItem:
    found = WorkItem.objects.filter(
        batch__project=request.access.project, slot=0, pk=whole_number(request.POST.get("work_item", ""))
    )
    if (work_item := found.select_related("batch__project", "item").first()) is None:
        raise Http404("no such work item in this project")
    return work_item


def _taken(request: ProjectRequest, dispute: Dispute) -> Label | None:
    """The answer that is to be taken over into the field, if it is one of those given."""
    wanted = request.GET.get("take")
    return next((label for label in dispute.answers if str(label.pk) == wanted), None)


def _value(request: ProjectRequest) -> Any:
    kind, value = TASK_TYPES[request.access.project.task_type], value_of(request)
    if problem := kind.form_problem(request.POST):
        raise InputError(problem)
    if not value and not kind.several:
        raise InputError(_("There is no answer yet."))
    return value


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"
