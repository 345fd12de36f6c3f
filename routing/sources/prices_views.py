"""The price list of a project."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.forms import add_error
from annotation.errors import HypacError
from routing.core_language import translated
from routing.models import ModelPrice
from routing.sources.forms import charged, counted, price_text_field
from routing.sources.prices import MOST_CHARACTERS, delete_price, save_price


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
        self.fields["cost_function"].choices = [(cost.name, translated(cost.title)) for cost in counted()]  # type: ignore[attr-defined]
        for cost in counted():
            for price in cost.prices:
                self.fields[price.name] = price_text_field(price)

    def values(self) -> dict[str, Any]:
        """Arguments of `save_price`."""
        data = self.cleaned_data
        names = [price.name for cost in counted(data["cost_function"]) for price in cost.prices]
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
            for cost in counted()
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
            "rows": [(row, charged(row), list(row.sources.all())) for row in rows],
            "form": form,
            "price": price,
            "step": "sources",
        },
    )


def _price(request: ProjectRequest, price_id: int) -> ModelPrice:
    return get_object_or_404(ModelPrice, project=request.access.project, pk=price_id)
