"""The models of a project and their prices; people come last and have a price, too."""

from collections.abc import Sequence

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation.common.forms import add_error
from annotation.errors import HypacError
from annotation.models import Project
from annotation.services.projects import update_project
from annotation.views.access import ProjectRequest, needs, told
from routing.backends import backend_classes, backends_that
from routing.models import Source
from routing.selectors.tries import cost_of_tries
from routing.services.prompts import prompted
from routing.services.sent_answers import takes_answers
from routing.services.source_warnings import warnings_of
from routing.services.sources import delete_source, move_source, save_source
from routing.services.suggested_sources import add_suggested, not_offered, suggested_sources
from routing.services.usability import Usability, look_at, look_at_one
from routing.services.usability_words import in_words
from routing.views.source_forms import PeopleForm, SourceForm, charged
from routing.views.suggested_form import SuggestedForm


@needs("sources.edit", "GET", "POST")
def sources(request: ProjectRequest) -> HttpResponseBase:
    """The list; a POST sets the price of people."""
    project = request.access.project
    people = PeopleForm(request.POST or None, initial={"human_cost": f"{project.human_cost.normalize():f}"})
    if request.method == "POST" and people.is_valid():
        try:
            update_project(project=project, user=request.user, **people.cleaned_data)
        except HypacError as error:
            add_error(people, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("sources", project.slug)
    return _list(request, people, SuggestedForm(suggestions=suggested_sources(project)))


@needs("sources.edit", "POST")
def source_suggested(request: ProjectRequest) -> HttpResponseBase:
    """Add the models whose answers came with the data."""
    project = request.access.project
    form = SuggestedForm(request.POST, suggestions=suggested_sources(project))
    if form.is_valid():
        try:
            added = add_suggested(project=project, user=request.user, prices=form.prices())
        except HypacError as error:
            form.add_refusal(error)
        else:
            names = ", ".join(source.name for source in added)
            messages.success(request, _("Added, in this order: %(names)s.") % {"names": names})
            for source in added:
                for warning in warnings_of(source):
                    messages.warning(request, warning)
            return redirect("sources", project.slug)
    people = PeopleForm(initial={"human_cost": f"{project.human_cost.normalize():f}"})
    return _list(request, people, form)


def _list(request: ProjectRequest, people: PeopleForm, suggested: SuggestedForm) -> HttpResponseBase:
    project = request.access.project
    rows = list(Source.objects.filter(project=project).order_by("position"))
    return render(
        request,
        "routing/sources.html",
        {
            "sources": rows,
            "usable": _usable(project, rows),
            "backend_names": {name: declared.title for name, declared in backend_classes().items()},
            "described": {source.pk: _described(source) for source in rows},
            "prompted": prompted(),
            "sent": backends_that(lambda backend: backend.known_from == "sent"),
            "asked": backends_that(lambda backend: not backend.known_from),
            "charges": {source.pk: charged(source) for source in rows},
            "people": people,
            "suggested": suggested,
            "not_offered": not_offered(project),
            "cost_of_tries": cost_of_tries(project),
            "step": "sources",
        },
    )


def _usable(project: Project, sources: Sequence[Source]) -> list[tuple[Usability, str]]:
    """How many of their answers can be used, with words; nothing where one of them cannot be opened now."""
    try:
        return [(seen, in_words(seen)) for seen in look_at(project, sources).sources]
    except HypacError:
        return []


@needs("sources.edit", "GET", "POST")
def source_new(request: ProjectRequest) -> HttpResponseBase:
    return _edit(request, None)


@needs("sources.edit", "GET", "POST")
def source_edit(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    return _edit(request, get_object_or_404(Source, project=request.access.project, pk=source_id))


@needs("sources.edit", "POST")
def source_delete(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    source = get_object_or_404(Source, project=request.access.project, pk=source_id)
    with told(request):
        delete_source(source=source, user=request.user)
        messages.success(request, _("%(name)s is removed.") % {"name": source.name})
    return redirect("sources", request.access.project.slug)


@needs("sources.edit", "POST")
def source_move(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    source = get_object_or_404(Source, project=request.access.project, pk=source_id)
    with told(request):
        move_source(source=source, user=request.user, up=request.POST.get("direction") == "up")
    return redirect("sources", request.access.project.slug)


def _edit(request: ProjectRequest, source: Source | None) -> HttpResponseBase:
    project = request.access.project
    if "use_preset" in request.POST:
        form = SourceForm(project=project, source=source, fill=request.POST)
    else:
        form = SourceForm(request.POST or None, project=project, source=source)
    if form.is_valid():
        try:
            saved = save_source(project=project, user=request.user, source=source, **form.values())
        except HypacError as error:
            form.add_refusal(error)
        else:
            messages.success(request, _("%(name)s is saved.") % {"name": saved.name})
            for warning in warnings_of(saved):
                messages.warning(request, warning)
            if source is None and saved.backend in prompted():
                return redirect("source_prompt", project.slug, saved.pk)
            if source is None and takes_answers(saved):
                return redirect("source_predictions", project.slug, saved.pk)
            return redirect("sources", project.slug)
    return render(
        request,
        "routing/source_form.html",
        {
            "form": form,
            "source": source,
            "usable": _usable_of(source) if source else [],
            "step": "sources",
        },
    )


def _usable_of(source: Source) -> list[tuple[Usability, str]]:
    try:
        seen = look_at_one(source)
    except HypacError:
        return []
    return [(seen, in_words(seen))]


def _described(source: Source) -> str:
    """What a source is, in the list: what tells it apart from others of its backend."""
    declared = backend_classes().get(source.backend)
    if declared is None or not declared.told_by:
        return ", ".join(str(value) for value in source.params.values())
    return " · ".join(str(source.params[name]) for name in declared.told_by if source.params.get(name))
