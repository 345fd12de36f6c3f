"""Forms of sources and plans. They turn what was typed into values; the services say what is allowed."""

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.models import Project
from annotation.views.forms import price_field
from routing.models import Run, Source

BACKENDS = (
    ("sklearn", _("A scikit-learn model on this server")),
    ("recorded", _("Answers that came with the data")),
)
RECORDED = ("label_column", "confidence_column", "uncertainty_column", "cost_column")


class SourceForm(forms.Form):
    """One model. Each backend has fields of its own; only those of the chosen one count."""

    name = forms.CharField(
        label=_("Name"), max_length=100, help_text=_("As it is to be called in tables and deliveries.")
    )
    cost_per_label = price_field(label=_("Price of one label"))
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
    label_column = forms.ChoiceField(label=_("Column with its label"), required=False)
    confidence_column = forms.ChoiceField(
        label=_("Column with its confidence"), required=False, help_text=_("From 0 to 1; 1 is sure.")
    )
    uncertainty_column = forms.ChoiceField(
        label=_("or column with its uncertainty"), required=False, help_text=_("From 0 to 1; 0 is sure.")
    )
    cost_column = forms.ChoiceField(
        label=_("Column with what the answer cost"),
        required=False,
        help_text=_("Where it differs from item to item."),
    )

    def __init__(self, *args: Any, models: list[str], columns: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._offer("model", models, _("Choose a model"))
        for name in RECORDED:
            self._offer(name, columns, _("Choose a column") if name == "label_column" else _("None"))

    @staticmethod
    def initial_of(source: Source) -> dict[str, Any]:
        return {
            "name": source.name,
            "cost_per_label": f"{source.cost_per_label.normalize():f}",
            "backend": source.backend,
            **source.params,
        }

    def values(self) -> dict[str, Any]:
        """Arguments of `save_source`."""
        data = self.cleaned_data
        names = ("model",) if data["backend"] == "sklearn" else RECORDED
        return {
            "name": data["name"],
            "backend": data["backend"],
            "params": {name: data[name] for name in names if data[name]},
            "cost_per_label": data["cost_per_label"],
        }

    def _offer(self, name: str, values: list[str], nothing: Any) -> None:
        # What is stored stays a choice even where the file or column is gone: the service then says so.
        stored = self.initial.get(name)
        known = [*values, *([stored] if stored and stored not in values else [])]
        self.fields[name].choices = [("", nothing), *((value, value) for value in known)]  # type: ignore[attr-defined]


class PeopleForm(forms.Form):
    human_cost = price_field(label=_("Price of one label by a person"))


def _share(**options: Any) -> forms.DecimalField:
    return forms.DecimalField(
        max_digits=9,
        decimal_places=8,
        localize=False,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
        error_messages={"invalid": _("Write a number such as 0.05.")},
        **options,
    )


class PlanForm(forms.Form):
    epsilon = _share(
        label=_("At most this share of wrong labels"),
        initial=Decimal("0.05"),
        help_text=_("0.05 means that at most 5 % of the delivered labels may be wrong."),
    )
    alpha = _share(
        label=_("Accepted risk that this does not hold"),
        initial=Decimal("0.05"),
        help_text=_("0.05: of a hundred such draws at most five may lead to a wrong promise."),
    )
    target = forms.ChoiceField(
        label=_("What the promise is about"),
        choices=Run.Target.choices,
        initial=Run.Target.DATASET,
        widget=forms.RadioSelect,
    )
    m = forms.IntegerField(
        label=_("Items drawn at random for calibration"),
        min_value=1,
        help_text=_("More of them allow thresholds that save more, and cost labels by people."),
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
    )
    p = _share(
        label=_("Share of the drawn items that people are asked about"),
        initial=Decimal("0.9"),
        help_text=_("0.9: people label about nine of ten drawn items."),
    )
    anyway = forms.BooleanField(
        label=_("Start anyway: people will label everything"),
        required=False,  # asked for only where nothing can be certified; see `ask_whether_anyway`
        widget=forms.CheckboxInput(attrs={"required": True}),
    )

    def values(self) -> dict[str, Any]:
        """Arguments of `outlook` and `start_run`."""
        return {name: value for name, value in self.cleaned_data.items() if name != "anyway"}

    def initial_values(self) -> dict[str, Any]:
        """The same of a form that nobody has filled in yet."""
        named = {name: field for name, field in self.fields.items() if name != "anyway"}
        return {name: self.get_initial_for_field(field, name) for name, field in named.items()}

    def ask_whether_anyway(self) -> None:
        self.add_error(
            "anyway",
            _(
                "Nothing was started: with this plan too few labels come together to certify anything, so no "
                "model may label and people get every item. Draw more items, or accept more errors or a "
                "higher risk; otherwise confirm that you want this."
            ),
        )


def suggested_m(project: Project) -> int:
    """A draw that is worth its labels: a fifth of the items, 100 to 1,000, and no more than there are."""
    count = project.items.count()
    return max(1, min(max(100, min(1000, count // 5)), count))
