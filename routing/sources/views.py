"""The pages of the models of a project, its price list, and of sending in what a model answered elsewhere."""

from collections.abc import Sequence

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.forms import add_error
from annotation.errors import HypacError
from annotation.models import Project
from annotation.projects.manage import update_project
from routing.models import Source
from routing.sources.backends import backend_classes, backends_that
from routing.sources.forms import PeopleForm, SourceForm, SuggestedForm, charged
from routing.sources.manage import delete_source, move_source, save_source
from routing.sources.prompt_versions import prompted
from routing.sources.sent_answers import takes_answers
from routing.sources.suggested import add_suggested, not_offered, suggested_sources
from routing.sources.trials import cost_of_tries
from routing.sources.usability import Usability, look_at, look_at_one
from routing.sources.warnings import in_words, warnings_of


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
        "routing/sources/sources.html",
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
    with refusals_as_messages(request):
        delete_source(source=source, user=request.user)
        messages.success(request, _("%(name)s is removed.") % {"name": source.name})
    return redirect("sources", request.access.project.slug)


@needs("sources.edit", "POST")
def source_move(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    source = get_object_or_404(Source, project=request.access.project, pk=source_id)
    with refusals_as_messages(request):
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
        "routing/sources/source_form.html",
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
