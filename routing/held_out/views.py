"""Practice and gold items: the page of those who lead a project."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.forms import add_error
from annotation.common.replaced_labels import choice_names
from annotation.errors import HypacError, NotAllowedError
from annotation.labelling.gold import resume
from annotation.labelling.label_queries import label_in_words
from annotation.models import HeldOutItem, User
from annotation.task_types import TASK_TYPES
from routing.held_out.forms import HoldOutForm, SettingsForm
from routing.held_out.manage import change_settings, hold_out, release, set_answer
from routing.held_out.results import people_checked
from routing.runs.untouched_items import untouched_items

A_PAGE = 50


@needs("project.edit", "GET", "POST")
def held_out(request: ProjectRequest) -> HttpResponseBase:
    """What is held out, with its known answers, and how people did. A POST holds more out."""
    form = HoldOutForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            made = hold_out(access=request.access, **form.wanted())
        except NotAllowedError:
            raise
        except HypacError as error:
            add_error(form, error)
        else:
            words = _("%(count)s items are held out. Say now what their labels are.")
            messages.success(request, words % {"count": len(made)})
            return redirect("held_out", request.access.project.slug)
    return _page(request, form=form)


@needs("project.edit", "POST")
def held_out_settings(request: ProjectRequest) -> HttpResponseBase:
    form = SettingsForm(request.POST, project=request.access.project)
    if form.is_valid():
        try:
            change_settings(access=request.access, **form.wanted())
        except NotAllowedError:
            raise
        except HypacError as error:
            add_error(form, error)
        else:
            messages.success(request, _("Stored."))
            return redirect("held_out", request.access.project.slug)
    return _page(request, settings=form)


@needs("project.edit", "POST")
def held_out_answer(request: ProjectRequest, held_id: int) -> HttpResponseBase:
    """Set the known answer of an item, and why."""
    held = _held(request, held_id)
    kind = TASK_TYPES[request.access.project.task_type]
    with refusals_as_messages(request):
        set_answer(
            access=request.access,
            held=held,
            answer=kind.from_form(request.POST),
            explanation=request.POST.get("explanation", ""),
        )
    return redirect(f"{_back(request)}#held-{held.pk}")


@needs("project.edit", "POST")
def held_out_release(request: ProjectRequest, held_id: int) -> HttpResponseBase:
    with refusals_as_messages(request):
        release(access=request.access, held=_held(request, held_id))
    return redirect(_back(request))


@needs("project.edit", "POST")
def resume_person(request: ProjectRequest, user_id: int) -> HttpResponseBase:
    """Let a paused person go on."""
    user = get_object_or_404(User, pk=user_id, memberships__project=request.access.project)
    with refusals_as_messages(request):
        resume(project=request.access.project, actor=request.user, user=user)
        messages.success(request, _("%(name)s may go on.") % {"name": user.username})
    return redirect("held_out", request.access.project.slug)


def _page(
    request: ProjectRequest, *, form: HoldOutForm | None = None, settings: SettingsForm | None = None
) -> HttpResponseBase:
    project = request.access.project
    kind = TASK_TYPES[project.task_type]
    choices = list(project.choices.all())
    names = choice_names(project)
    rows = project.held_out.select_related("item__image").order_by("purpose", "pk")
    page = Paginator(rows, A_PAGE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "page": page,
        "rows": [
            (one, "" if one.answer is None else label_in_words(one.answer, names) or _("none of them"))
            for one in page
        ],
        "form": form or HoldOutForm(),
        "settings": settings or SettingsForm(project=project),
        "candidates": untouched_items(project).count(),
        "people": people_checked(project) if page.paginator.count else [],
        "practice": project.held_out.filter(purpose=HeldOutItem.Purpose.PRACTICE).count(),
        "kind": kind,
        "choices": choices,
    }
    return render(request, "routing/held_out/held_out.html", context)


def _held(request: ProjectRequest, held_id: int) -> HeldOutItem:
    return get_object_or_404(request.access.project.held_out.select_related("item"), pk=held_id)


def _back(request: ProjectRequest) -> str:
    """The page of the list from which something was sent."""
    number = request.POST.get("page", "")
    address = request.path.split("/held-out/", maxsplit=1)[0] + "/held-out/"
    return f"{address}?page={number}" if number.isascii() and number.isdigit() else address
