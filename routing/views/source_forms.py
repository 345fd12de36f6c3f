"""Forms of the sources of labels, models and people. They turn what was typed into values; the services
say what is allowed."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from annotation.common.forms import price_field
from annotation.errors import HypacError
from annotation.models import Project
from routing import backends
from routing.backends.recorded import PARAMS as RECORDED
from routing.core.costs import COSTS, Cost, Price
from routing.core_words import said
from routing.models import ModelPrice, Source
from routing.views import llm_fields

BACKENDS = tuple(
    (name, title)
    for name, title in (
        (
            "openai_api",
            _("A language model on a server (OpenAI-compatible)"),
        ),
        ("openai_batch", _("The same in batch files, hours later and often cheaper")),
        ("vllm", _("A language model in the worker (vLLM)")),
        ("label_studio_ml", _("A Label Studio ML backend")),
        ("sklearn", _("A scikit-learn model on this server")),
        ("recorded", _("Answers that came with the data")),
        ("uploaded", _("Answers that are sent in from outside")),
    )
    if name in backends.BACKENDS
)
UPLOADED = {"model": "declared_model", "revision": "declared_revision"}
"""Params of what is sent in, and their fields."""
# Columns that most data has none of; shown when asked for.
FURTHER = {
    "probabilities_column": (
        _("Column with the probabilities of the labels"),
        _("A JSON object, or cat: 0.7; dog: 0.3. They may leave labels out."),
    ),
    "label_logprobs_column": (_("or with their logarithms"), _("The same, as natural logarithms.")),
    "token_probabilities_column": (
        _("Column with the probabilities of the generated tokens"),
        _("A JSON list, or numbers separated by semicolons."),
    ),
    "token_logprobs_column": (_("or with their logarithms"), _("The same, as natural logarithms.")),
    "samples_column": (
        _("Column with several answers to the item"),
        _("A JSON list, or labels separated by semicolons: how much they disagree is a score."),
    ),
    "verbalized_column": (
        _("Column with the confidences that the model stated"),
        _("A JSON list of its replies, or numbers separated by semicolons."),
    ),
    "tokens_in_column": (_("Column with the number of tokens read"), _("What an API counts as input.")),
    "tokens_out_column": (
        _("Column with the number of tokens generated"),
        _("What an API counts as output, reasoning included."),
    ),
    "seconds_column": (_("Column with the seconds that the answer took"), _("Decimals are fine.")),
    "finish_reason_column": (
        _("Column with the reason why the model stopped"),
        _("Where it says “length”, the answer was cut off and is not used."),
    ),
    "cost_column": (
        _("Column with what the answer cost"),
        _("Where it is known item by item. It goes before the way of counting chosen below."),
    ),
}


def price_text_field(price: Price) -> forms.CharField:
    """The service reads what is typed, so that page and API refuse the same in the same words."""
    default = (
        "" if price.default is None else " " + _("Left empty: %(price)s.") % {"price": f"{price.default:f}"}
    )
    return forms.CharField(
        label=capfirst(said(price.title)),
        required=False,
        max_length=40,
        help_text=said(price.summary) + default,
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
        choices=BACKENDS,
        widget=forms.Select(attrs={"data-shows": "backend"}),
    )
    model = forms.ChoiceField(
        label=_("Model file"),
        required=False,
        help_text=_("Files that whoever runs this server put into its folder of models."),
    )
    declared_model = forms.CharField(
        label=_("Name of the model"),
        max_length=200,
        required=False,
        help_text=_("As you call it: it stands in certificates and deliveries."),
    )
    declared_revision = forms.CharField(
        label=_("Revision"),
        max_length=200,
        required=False,
        help_text=_(
            "Answers do not change: those of a newer version of the model are sent under a revision of their "
            "own. Empty: 1."
        ),
    )
    label_column = forms.ChoiceField(label=_("Column with its label"), required=False)
    confidence_column = forms.ChoiceField(
        label=_("Column with its confidence"), required=False, help_text=_("From 0 to 1; 1 is sure.")
    )
    uncertainty_column = forms.ChoiceField(
        label=_("or column with its uncertainty"), required=False, help_text=_("From 0 to 1; 0 is sure.")
    )
    api_key = forms.CharField(
        label=_("Key for the server"),
        required=False,
        max_length=4_000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Stored encrypted, sent to this server only, and never shown again."),
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
        choices=lambda: [(cost.name, said(cost.title)) for cost in COSTS],
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
        self, *args: Any, models: list[str], columns: list[str], project: Project, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields |= llm_fields.llm_fields()
        self.fields["price"].queryset = project.model_prices.all()  # type: ignore[attr-defined]
        for name, (label, help_text) in FURTHER.items():
            self.fields[name] = forms.ChoiceField(label=label, required=False, help_text=help_text)
        for cost in counted():
            for price in cost.prices:
                self.fields[price.name] = price_text_field(price)
        self._offer("model", models, _("Choose a model"))
        for name in RECORDED:
            self._offer(name, columns, _("Choose a column") if name == "label_column" else _("None"))

    @staticmethod
    def initial_of(source: Source) -> dict[str, Any]:
        return {
            "name": source.name,
            "cost_per_label": f"{source.cost_per_label.normalize():f}",
            "cost_function": source.cost_function,
            "backend": source.backend,
            "price": source.price_id,
            "logprobs": True,
            **source.prices,
            **(
                {UPLOADED[name]: value for name, value in source.params.items() if name in UPLOADED}
                if source.backend == "uploaded"
                else llm_fields.initial_of(source.backend, source.params)
            ),
        }

    def values(self) -> dict[str, Any]:
        """Arguments of `save_source`."""
        data = self.cleaned_data
        function = data["cost_function"] or "flat"
        prices = {price.name: data[price.name] for cost in counted(function) for price in cost.prices}
        if data["price"]:
            function, prices = "flat", {}  # the line says
        return {
            "name": data["name"],
            "backend": data["backend"],
            "params": self._params(),
            "price": data["price"],
            "api_key": "" if data["remove_key"] else data["api_key"] or None,
            "cost_per_label": data["cost_per_label"],
            "cost_function": function,
            "prices": {name: value for name, value in prices.items() if value},
        }

    def _params(self) -> dict[str, Any]:
        data = self.cleaned_data
        if data["backend"] in llm_fields.PARAMS:
            return llm_fields.params_of(data["backend"], data)
        if data["backend"] == "uploaded":
            return {name: data[field].strip() for name, field in UPLOADED.items() if data[field].strip()}
        names: Sequence[str] = ("model",) if data["backend"] == "sklearn" else RECORDED
        return {name: data[name] for name in names if data[name]}

    def add_refusal(self, error: HypacError) -> None:
        """Show what the service refused beside the field of the chosen backend that it names."""
        where = error.where
        if self.data.get("backend") in llm_fields.PARAMS:
            where = llm_fields.FIELD_OF.get(where, where)
        elif self.data.get("backend") == "uploaded":
            where = UPLOADED.get(where, where)
        self.add_error(where if where in self.fields else None, error.message)

    def parts(self) -> dict[str, list[forms.BoundField]]:
        """Fields of language models by what they are about, for the template."""
        return {
            name: [self[field] for field in getattr(llm_fields, name)]
            for name in ("SAMPLING", "SCORES", "FORM_OF_ANSWER", "LIMITS", "TIMES", "ENGINE")
        }

    def opened(self) -> dict[str, bool]:
        """Which of these parts hold something, and so are to be shown at once."""
        usual = {"logprobs"}
        return {
            name: any((field.value() and field.name not in usual) or field.errors for field in fields)
            for name, fields in self.parts().items()
        }

    def key_to_retype(self) -> bool:
        """Whether a key was typed: the page that shows the form again does not hold it."""
        return bool(self.data.get("api_key") or self.initial.get("api_key"))

    def further(self) -> list[forms.BoundField]:
        return [self[name] for name in FURTHER]

    def further_used(self) -> bool:
        """Whether the less usual columns are to be shown at once: also where a way of counting lacks one."""
        return bool(self["cost_function"].errors) or any(
            self[name].value() or self[name].errors for name in FURTHER
        )

    def costs(self) -> Iterator[dict[str, Any]]:
        """Each way of counting in words, with the fields of its prices."""
        for cost in COSTS:
            # Not the cost itself: it can be called, and templates call what they can.
            words = {"name": cost.name, "title": said(cost.title), "summary": said(cost.summary)}
            yield {
                **words,
                "fields": [self[price.name] for price in cost.prices if price.name in self.fields],
            }

    def _offer(self, name: str, values: list[str], nothing: Any) -> None:
        # What is stored stays a choice even where the file or column is gone: the service then says so.
        stored = self.initial.get(name)
        known = [*values, *([stored] if stored and stored not in values else [])]
        self.fields[name].choices = [("", nothing), *((value, value) for value in known)]  # type: ignore[attr-defined]


def charged(source: Source | ModelPrice) -> str:
    """How the labels of a source, or by a line of the price list, are charged: each price with what it is
    for.
    """
    cost = next((cost for cost in COSTS if cost.name == source.cost_function), None)
    if cost is None:
        return source.cost_function
    given = {
        said(price.title): source.prices.get(price.name, price.default)
        for price in cost.prices
        if cost.name != "flat"
    }
    told = [f"{title} {Decimal(value):,f}" for title, value in given.items() if value is not None]
    return f"{said(cost.title)}: {', '.join(told)}" if told else said(cost.title)


def counted(name: str | None = None) -> list[Cost]:
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
