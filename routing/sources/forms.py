"""Forms of the sources of labels, models and people, with a field for each param that a backend declares.

They turn what was typed into values; the services say what is allowed.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from annotation.common.forms import price_field
from annotation.errors import HypacError
from annotation.models import Project
from routing.core.costs import COSTS, Cost, Price
from routing.core_language import translated
from routing.models import ModelPrice, Source
from routing.sources.backend_for import task_spec
from routing.sources.backends import BACKENDS, TaskSpec, backend_classes
from routing.sources.backends.params import Flag, Param, Part, Secret, Text


@dataclass(frozen=True)
class SourceField:
    """A field of the form, and the names of the backends that are asked for it."""

    name: str
    param: Param
    backends: tuple[str, ...]

    @property
    def kind(self) -> str:
        """How it is shown: "flag", "secret", "fills" (others of its part), or "" for as any field."""
        if isinstance(self.param, Text) and self.param.fills:
            return "fills"
        return "flag" if isinstance(self.param, Flag) else "secret" if isinstance(self.param, Secret) else ""

    def fills(self, choice: Any) -> Mapping[str, Any]:
        """What `choice` puts into other fields, by their params."""
        return self.param.fills.get(choice or "", {}) if isinstance(self.param, Text) else {}


class SourceFields:
    """Those of all backends, in the order in which a form shows them. `taken` are names of its other fields:
    what is called like one of them, or like another param, has its backend's name before its own.
    """

    def __init__(self, taken: Container[str]) -> None:
        params: dict[str, Param] = {}
        self._names: dict[str, dict[str, str]] = {}
        for backend, declared in backend_classes().items():
            self._names[backend] = {}
            for param in (param for param in declared.params if param.in_form):
                name = param.form_name or param.name
                if name in taken or params.get(name, param) != param:
                    name = f"{backend}_{name}"
                params.setdefault(name, param)
                self._names[backend][param.name] = name
        names = {backend: list(by_param.values()) for backend, by_param in self._names.items()}
        self.all = [
            SourceField(name, params[name], tuple(backend for backend in names if name in names[backend]))
            for name in _merged(list(names.values()))
        ]

    def name_of(self, backend: str, param: str) -> str:
        """The field of a param of `backend`; the param's own name where the form has none for it."""
        return self._names.get(backend, {}).get(param, param)

    def initial(self, backend: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Values of the fields for the stored params of a source."""
        return {self.name_of(backend, name): value for name, value in params.items()}

    def params_in(self, backend: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """The params of `backend` from the values of the form, without what is not set or as it is anyway.

        What was chosen to fill others fills those that are empty.
        """
        fields = [field for field in self.all if backend in field.backends and field.kind != "secret"]
        found = {field.param.name: data[field.name] for field in fields}
        for field in fields:
            for name, value in field.fills(found[field.param.name]).items():
                if name in found and found[name] is None:
                    found[name] = value
        usual = {field.param.name: field.param.default for field in fields if field.kind == "flag"}
        return {
            name: value
            for name, value in found.items()
            if value not in (None, "") and not (name in usual and value == usual[name])
        }

    def filled(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """The fields as they were sent, with what was chosen to fill others in these, whatever they held."""
        found = {**sent, **{field.name: field.name in sent for field in self.all if field.kind == "flag"}}
        for field in self.all:
            if values := field.fills(sent.get(field.name)):
                others = (one for one in self.all if one.param.part == field.param.part and one != field)
                found |= {other.name: values.get(other.param.name, "") for other in others}
        return found


def likely_backend(task: TaskSpec) -> str:
    """The one that is chosen until somebody chooses: the first that has something to offer for what it
    cannot do without, or else the first of all.
    """
    for name, declared in backend_classes().items():
        needed = (param for param in declared.params if param.required and isinstance(param, Text))
        if any(any(param.offers(task)) for param in needed if param.offers):
            return name
    return next(iter(BACKENDS))


def _merged(orders: Sequence[Sequence[str]]) -> list[str]:
    """All names once. What an order adds to those before it stands before what they share."""
    found: list[str] = []
    for order in orders:
        place = len(found)
        for name in reversed(order):
            if name in found:
                place = found.index(name)
            else:
                found.insert(place, name)
    return found


def price_text_field(price: Price) -> forms.CharField:
    """The service reads what is typed, so that page and API refuse the same in the same words."""
    default = (
        "" if price.default is None else " " + _("Left empty: %(price)s.") % {"price": f"{price.default:f}"}
    )
    return forms.CharField(
        label=capfirst(translated(price.title)),
        required=False,
        max_length=40,
        help_text=translated(price.summary) + default,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )


class SourceForm(forms.Form):
    """One model. Each backend and each way of counting has fields of its own; only those of the chosen ones
    count.
    """

    name = forms.CharField(
        label=_("Name"), max_length=100, help_text=_("As it is to be called in tables and deliveries.")
    )
    backend = forms.ChoiceField(
        label=_("Where its answers come from"),
        choices=lambda: [(name, declared.title) for name, declared in backend_classes().items()],
        widget=forms.Select(attrs={"data-shows": "backend"}),
    )
    remove_key = forms.BooleanField(label=_("Remove the stored key"), required=False)
    cost_per_label = price_field(
        label=_("Price of one label"),
        help_text=_(
            "Where it differs from item to item, the average that plans reckon with: guess it, and take "
            "what a try costs afterwards."
        ),
    )
    cost_function = forms.ChoiceField(
        label=_("How its labels are charged"),
        choices=lambda: [(cost.name, translated(cost.title)) for cost in COSTS],
        initial="flat",
        required=False,
        widget=forms.Select(attrs={"data-shows": "cost_function"}),
        help_text=_("Counts only where no line of the price list is chosen: a line has a way of its own."),
    )

    price = forms.ModelChoiceField(
        label=_("Line of the price list"),
        queryset=ModelPrice.objects.none(),
        required=False,
        empty_label=_("None: the prices below"),
        help_text=_("Its way of counting and its prices then count, now and whenever the line changes."),
    )

    def __init__(
        self,
        *args: Any,
        project: Project,
        source: Source | None = None,
        fill: QueryDict | None = None,
        **kwargs: Any,
    ) -> None:
        """Of `source`, or of a new one; `fill` are fields that were sent to be filled in and shown again."""
        super().__init__(*args, **kwargs)
        self._asked = SourceFields(taken={*self.fields, *(price.name for price in _prices())})
        task = task_spec(project)
        if fill is not None:
            self.initial = self._asked.filled(fill.dict())
        else:
            self.initial = {"backend": likely_backend(task)} if source is None else self._stored(source)
        self.fields["price"].queryset = project.model_prices.all()  # type: ignore[attr-defined]
        for asked in self._asked.all:
            self.fields[asked.name] = self._field(asked, task)
        for price in _prices():
            self.fields[price.name] = price_text_field(price)

    def values(self) -> dict[str, Any]:
        """Arguments of `save_source`."""
        data = self.cleaned_data
        function = data["cost_function"] or "flat"
        prices = {price.name: data[price.name] for price in _prices(function)}
        if data["price"]:
            function, prices = "flat", {}  # the line says
        return {
            "name": data["name"],
            "backend": data["backend"],
            "params": self._asked.params_in(data["backend"], data),
            "price": data["price"],
            "api_key": "" if data["remove_key"] else data["api_key"] or None,
            "cost_per_label": data["cost_per_label"],
            "cost_function": function,
            "prices": {name: value for name, value in prices.items() if value},
        }

    def add_refusal(self, error: HypacError) -> None:
        """Show what the service refused beside the field of the chosen backend that it names."""
        where = self._asked.name_of(self.data.get("backend", ""), error.where)
        self.add_error(where if where in self.fields else None, error.message)

    def notes(self) -> list[tuple[str, Any]]:
        """What to know of a backend before it is chosen."""
        return [(name, declared.note) for name, declared in backend_classes().items() if declared.note]

    def parts(self) -> Iterator[dict[str, Any]]:
        """The fields of the backends in their parts, and rows of these, for the template."""
        for part, of_part in groupby(self._asked.all, key=lambda asked: asked.param.part):
            fields = list(of_part)
            rows = groupby(fields, key=lambda asked: asked.param.row or asked.name)
            yield {
                "part": part,
                "open": part is not None and self._is_open(part, fields),
                "backends": sorted({name for asked in fields for name in asked.backends}),
                "rows": [[(asked, self[asked.name]) for asked in row] for _name, row in rows],
            }

    def key_to_retype(self) -> bool:
        """Whether a key was typed: the page that shows the form again does not hold it."""
        return bool(self.data.get("api_key") or self.initial.get("api_key"))

    def costs(self) -> Iterator[dict[str, Any]]:
        """Each way of counting in words, with the fields of its prices."""
        for cost in COSTS:
            # Not the cost itself: it can be called, and templates call what they can.
            words = {"name": cost.name, "title": translated(cost.title), "summary": translated(cost.summary)}
            yield {
                **words,
                "fields": [self[price.name] for price in cost.prices if price.name in self.fields],
            }

    def _stored(self, source: Source) -> dict[str, Any]:
        return {
            "name": source.name,
            "cost_per_label": f"{source.cost_per_label.normalize():f}",
            "cost_function": source.cost_function,
            "backend": source.backend,
            "price": source.price_id,
            **source.prices,
            **self._asked.initial(source.backend, source.params),
        }

    def _field(self, asked: SourceField, task: TaskSpec) -> forms.Field:
        field = asked.param.form_field(task)
        if isinstance(field, forms.ChoiceField) and isinstance(asked.param, Text):
            choices: list[Any] = list(field.choices)  # type: ignore[arg-type]
            if len(choices) == 1:
                field.none_yet = asked.param.none_yet  # type: ignore[attr-defined]
            # What is stored stays a choice even where the file or column is gone: the service then says so.
            stored = self.initial.get(asked.name)
            if stored and stored not in dict(choices):
                field.choices = [*choices, (stored, stored)]
        return field

    def _is_open(self, part: Part, fields: Sequence[SourceField]) -> bool:
        """Whether the part is to be shown unfolded."""
        shown = [(asked, self[asked.name]) for asked in fields]
        return (
            part.unfolded
            or bool(part.opened_by and self[part.opened_by].errors)
            or any(
                field.errors or field.value() not in (None, "", asked.param.default) for asked, field in shown
            )
        )


def _prices(function: str | None = None) -> list[Price]:
    """Those of all ways of counting, or of the one called `function`."""
    return [price for cost in costs_with_prices(function) for price in cost.prices]


def charge_in_words(source: Source | ModelPrice) -> str:
    """How the labels of a source, or by a line of the price list, are charged: each price with what it is
    for.
    """
    cost = next((cost for cost in COSTS if cost.name == source.cost_function), None)
    if cost is None:
        return source.cost_function
    given = {
        translated(price.title): source.prices.get(price.name, price.default)
        for price in cost.prices
        if cost.name != "flat"
    }
    told = [f"{title} {Decimal(value):,f}" for title, value in given.items() if value is not None]
    return f"{translated(cost.title)}: {', '.join(told)}" if told else translated(cost.title)


def costs_with_prices(name: str | None = None) -> list[Cost]:
    """The ways of counting that have prices beside the one per label: all, or the one called `name`."""
    return [cost for cost in COSTS if cost.name != "flat" and name in (None, cost.name)]


class PeopleForm(forms.Form):
    human_cost = price_field(
        label=_("Price of one label by a person"),
        help_text=_(
            "In the same currency as the prices of the models: what you pay somebody for one label, for "
            "example the wage of an hour divided by the labels that a person gives in it."
        ),
    )
