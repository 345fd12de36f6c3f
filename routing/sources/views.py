"""The pages of the models of a project, and its price list."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.forms import add_error
from annotation.errors import HypacError
from annotation.models import Project
from annotation.projects.manage import update_project
from routing.core_language import translated
from routing.models import ModelPrice, Source
from routing.sources.backends import backend_classes, backends_that
from routing.sources.forms import (
    PeopleForm,
    SourceForm,
    charge_in_words,
    costs_with_prices,
    price_text_field,
)
from routing.sources.manage import delete_source, move_source, save_source
from routing.sources.prices import MOST_CHARACTERS, delete_price, save_price
from routing.sources.prompt_versions import takes_prompt
from routing.sources.score_fields import by_price
from routing.sources.sent_answers import takes_answers
from routing.sources.suggested import FoundModels, add_suggested, found_models
from routing.sources.suggested_doubts import no_answers
from routing.sources.suggested_form import SuggestedForm
from routing.sources.trials import cost_of_tries
from routing.sources.usability import Usability, usability_of, usability_of_sources
from routing.sources.warnings import usability_in_words, warnings_of


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
    found = found_models(project)
    return _list(request, people, found, _suggested_form(project, found))


@needs("sources.edit", "POST")
def source_suggested(request: ProjectRequest) -> HttpResponseBase:
    """Add the models whose answers came with the data."""
    project = request.access.project
    found = found_models(project)
    form = _suggested_form(project, found, request.POST)
    if form.is_valid():
        try:
            added = add_suggested(
                project=project,
                user=request.user,
                prices=form.prices(),
                names=form.names(),
                found=found,
            )
        except HypacError as error:
            form.add_refusal(error)
        else:
            names = ", ".join(source.name for source in added)
            messages.success(request, _("Added, in this order: %(names)s.") % {"names": names})
            for source in added:
                for warning in warnings_of(source):
                    messages.warning(request, warning)
            doubtful = {one.label_column for one in form.suggestions if not one.sound}
            for source in added:
                if source.params["label_column"] in doubtful:  # there it is said what its answers mean
                    return redirect("source_health", project.slug, source.pk)
            return redirect("sources", project.slug)
    people = PeopleForm(initial={"human_cost": f"{project.human_cost.normalize():f}"})
    return _list(request, people, found, form)


def _suggested_form(project: Project, found: FoundModels, data: Any = None) -> SuggestedForm:
    taken = project.sources.values_list("name", flat=True)
    return SuggestedForm(data, suggestions=found.suggestions, taken=set(taken))


def _list(
    request: ProjectRequest, people: PeopleForm, found: FoundModels, suggested: SuggestedForm
) -> HttpResponseBase:
    project = request.access.project
    rows = list(Source.objects.filter(project=project).order_by("position"))
    return render(
        request,
        "routing/sources/sources.html",
        {
            "sources": rows,
            "by_price": by_price(rows) if by_price(rows) != rows else [],
            "usable": _usable(project, rows),
            "backend_names": {name: declared.title for name, declared in backend_classes().items()},
            "described": {source.pk: _described(source) for source in rows},
            "prompted": takes_prompt(),
            "sent": backends_that(lambda backend: backend.known_from == "sent"),
            "asked": backends_that(lambda backend: not backend.known_from),
            "charges": {source.pk: charge_in_words(source) for source in rows},
            "people": people,
            "suggested": suggested,
            "without_answers": list(map(no_answers, found.without_answers)),
            "cost_of_tries": cost_of_tries(project),
            "step": "sources",
        },
    )


def _usable(project: Project, sources: Sequence[Source]) -> list[tuple[Usability, str]]:
    """How many of their answers can be used, with words; nothing where one of them cannot be opened now."""
    try:
        return [(seen, usability_in_words(seen)) for seen in usability_of_sources(project, sources).sources]
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
            if source is None and takes_answers(saved):
                # Nothing is wrong yet: the page that follows is the next step.
                words = _("%(name)s is saved. Next, send its answers.")
                messages.success(request, words % {"name": saved.name})
                return redirect("source_predictions", project.slug, saved.pk)
            messages.success(request, _("%(name)s is saved.") % {"name": saved.name})
            for warning in warnings_of(saved):
                messages.warning(request, warning)
            if source is None and saved.backend in takes_prompt():
                return redirect("source_prompt", project.slug, saved.pk)
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
        seen = usability_of(source)
    except HypacError:
        return []
    return [(seen, usability_in_words(seen))]


def _described(source: Source) -> str:
    """What a source is, in the list: what tells it apart from others of its backend."""
    declared = backend_classes().get(source.backend)
    if declared is None or not declared.told_by:
        return ", ".join(str(value) for value in source.params.values())
    return " · ".join(str(source.params[name]) for name in declared.told_by if source.params.get(name))


class PriceForm(forms.Form):
    """One line. Each way of counting has prices of its own; only those of the chosen one count."""

    name = forms.CharField(
        label=gettext_lazy("Model or machine"),
        max_length=MOST_CHARACTERS,
        help_text=gettext_lazy("For example the model's name as its provider lists it, or the type of GPU."),
    )
    cost_function = forms.ChoiceField(
        label=gettext_lazy("How it is charged"),
        initial="api_price",
        widget=forms.Select(attrs={"data-shows": "cost_function"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        titles = [(cost.name, translated(cost.title)) for cost in costs_with_prices()]
        self.fields["cost_function"].choices = titles  # type: ignore[attr-defined]
        for cost in costs_with_prices():
            for price in cost.prices:
                self.fields[price.name] = price_text_field(price)

    def values(self) -> dict[str, Any]:
        """Arguments of `save_price`."""
        data = self.cleaned_data
        names = [price.name for cost in costs_with_prices(data["cost_function"]) for price in cost.prices]
        prices = {name: data[name] for name in names if data[name]}
        return {"name": data["name"], "cost_function": data["cost_function"], "prices": prices}

    def costs(self) -> list[dict[str, Any]]:
        """Each way of counting in words, with the fields of its prices."""
        return [
            {
                "name": cost.name,
                "title": translated(cost.title),
                "summary": translated(cost.summary),
                "fields": [self[price.name] for price in cost.prices],
            }
            for cost in costs_with_prices()
        ]


@needs("sources.edit", "GET", "POST")
def prices(request: ProjectRequest) -> HttpResponseBase:
    """The list, and a form that adds a line to it."""
    return _page(request, None)


@needs("sources.edit", "GET", "POST")
def price_edit(request: ProjectRequest, price_id: int) -> HttpResponseBase:
    return _page(request, _price(request, price_id))


@needs("sources.edit", "POST")
def price_delete(request: ProjectRequest, price_id: int) -> HttpResponseBase:
    price = _price(request, price_id)
    with refusals_as_messages(request):
        delete_price(price=price, user=request.user)
        messages.success(request, _("%(name)s is removed.") % {"name": price.name})
    return redirect("prices", request.access.project.slug)


def _page(request: ProjectRequest, price: ModelPrice | None) -> HttpResponseBase:
    project = request.access.project
    stored = {"name": price.name, "cost_function": price.cost_function, **price.prices} if price else None
    form = PriceForm(request.POST or None, initial=stored)
    if request.method == "POST" and form.is_valid():
        try:
            saved = save_price(project=project, user=request.user, price=price, **form.values())
        except HypacError as error:
            add_error(form, error)
        else:
            messages.success(request, _("%(name)s is saved.") % {"name": saved.name})
            return redirect("prices", project.slug)
    rows = project.model_prices.prefetch_related("sources")
    return render(
        request,
        "routing/sources/model_prices.html",
        {
            "rows": [(row, charge_in_words(row), list(row.sources.all())) for row in rows],
            "form": form,
            "price": price,
            "step": "sources",
        },
    )


def _price(request: ProjectRequest, price_id: int) -> ModelPrice:
    return get_object_or_404(ModelPrice, project=request.access.project, pk=price_id)
