"""The list of guideline rounds, and one of them."""

from typing import Any

from django.contrib import messages
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.forms import add_error
from annotation.common.replaced_labels import choice_names
from annotation.errors import HypacError, NotAllowedError
from annotation.labelling.label_queries import label_in_words
from annotation.review.views import tab_counts
from annotation.task_types import TASK_TYPES
from routing.models import GuidelineRound
from routing.rounds.forms import RoundForm
from routing.rounds.results import LISTED, figures_of, people_in, progress_of, result_of
from routing.rounds.start import add_note, close_round, start_round
from routing.runs.untouched_items import untouched_items


@needs("project.view", "GET", "POST")
def rounds(request: ProjectRequest) -> HttpResponseBase:
    """All rounds with how far people agreed, the newest first. A POST starts another one."""
    access, project = request.access, request.access.project
    leads = access.allows("project.edit")
    most = untouched_items(project).count() if leads else 0
    data = request.POST if request.method == "POST" else None
    form = RoundForm(data, project=project, most=most) if leads else None
    if request.method == "POST":
        if form is None:
            raise NotAllowedError(_("Owners and managers start rounds."))
        if form.is_valid():
            try:
                made = start_round(access=access, **form.wanted())
            except NotAllowedError:
                raise
            except HypacError as error:
                add_error(form, error)
            else:
                messages.success(request, _("The round is open: its items wait for these people."))
                return redirect("round", project.slug, made.number)
    found = project.rounds.select_related("batch", "project").order_by("-number")[:LISTED]
    rows = [
        (one, one.items.count(), progress_of(one), figures_of(one) if one.closed_at else None)
        for one in found
    ]
    context = {
        "rows": rows,
        "form": form,
        "open": any(one.closed_at is None for one, *_rest in rows),
        "candidates": most,
        **(tab_counts(request) if access.allows("review") else {}),
    }
    return render(request, "routing/rounds/rounds.html", context)


@needs("project.view", "GET")
def round_page(request: ProjectRequest, number: int) -> HttpResponseBase:
    """While it is open, how far people are; then who said what."""
    found = _round(request, number)
    project = request.access.project
    people = people_in(found)
    kind = TASK_TYPES[project.task_type]
    context: dict[str, Any] = {
        "round": found,
        "progress": progress_of(found),
        "people": people,
        "asked": any(user.pk == request.user.pk for user, *_counts in people),
        "items": found.items.count(),
        "task_type": kind,
        "revised": found.guidelines.strip() != project.guidelines.strip(),
    }
    if found.closed_at is not None:
        result = result_of(found)
        names = choice_names(project)
        context |= {
            "result": result,
            "disputed": [_shown(one, names) for one in result.disputed],
            "agreed": [_shown(one, names) for one in result.agreed if one.answers],
            "choices": list(project.choices.values_list("key", "name")) if kind.one_choice else [],
        }
    return render(request, "routing/rounds/round.html", context)


@needs("project.edit", "POST")
def round_close(request: ProjectRequest, number: int) -> HttpResponseBase:
    found = _round(request, number)
    close_round(access=request.access, found=found)
    messages.success(request, _("The round is closed. Everybody sees now who said what."))
    return redirect("round", request.access.project.slug, number)


@needs("label", "POST")
def round_note(request: ProjectRequest, number: int, item_id: int) -> HttpResponseBase:
    """Say something about an item; with "decide" what its label should have been."""
    found = _round(request, number)
    item = get_object_or_404(request.access.project.items, pk=item_id)
    value = request.POST.get("value", "") if "decide" in request.POST else None
    with refusals_as_messages(request):
        add_note(
            access=request.access, found=found, item=item, text=request.POST.get("text", ""), value=value
        )
    return redirect(f"{request.path.rsplit('/items/', 1)[0]}/#item-{item.pk}")


def _shown(one: Any, names: dict[str, str]) -> dict[str, Any]:
    """An item with its answers in words."""
    return {
        "item": one.item,
        "answers": [(label, label_in_words(label.value, names)) for label in one.answers],
        "notes": [
            (note, None if note.value is None else label_in_words(note.value, names)) for note in one.notes
        ],
        "decided": None if one.decided is None else label_in_words(one.decided.value, names),
    }


def _round(request: ProjectRequest, number: int) -> GuidelineRound:
    rows = GuidelineRound.objects.select_related("batch", "project", "created_by", "closed_by")
    found = rows.filter(project=request.access.project, number=number).first()
    if found is None:
        raise Http404("no such round")
    if found.closed_at is None and not _may_know(request, found):
        raise Http404("not to be seen before it is closed")
    return found


def _may_know(request: ProjectRequest, found: GuidelineRound) -> bool:
    """Whoever leads the project, and whoever is asked: nobody else before it is closed."""
    mine = found.batch.work_items.filter(assigned_to=request.user)
    return request.access.allows("project.edit") or mine.exists()
