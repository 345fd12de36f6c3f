"""The form in which models whose answers came with the data are taken as sources."""

from collections.abc import Container, Iterator, Sequence
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.common.forms import price_field
from annotation.errors import HypacError
from routing.sources.suggested import SuggestedSource


class SuggestedForm(forms.Form):
    """Fields use-N, name-N and price-N for the N-th suggestion; the hidden column-N says which one that was,
    as the list may have changed since the page was made."""

    def __init__(
        self, data: Any = None, *, suggestions: Sequence[SuggestedSource], taken: Container[str]
    ) -> None:
        super().__init__(data, prefix="suggested")
        self.suggestions, self.taken = suggestions, taken
        for number, one in enumerate(suggestions):
            self.fields[f"column-{number}"] = forms.CharField(
                initial=one.label_column, widget=forms.HiddenInput
            )
            self.fields[f"use-{number}"] = forms.BooleanField(
                label=_("Use “%(column)s”") % {"column": one.label_column}, required=False, initial=one.sound
            )
            self.fields[f"name-{number}"] = forms.CharField(
                label=_("Name"),
                required=False,  # of one that is not used; see `clean`
                max_length=100,
                initial=one.name,
                widget=forms.TextInput(attrs={"autocomplete": "off"}),
            )
            self.fields[f"price-{number}"] = price_field(
                label=_("Price of one label"),
                required=False,
                initial=None if one.cost is None else f"{one.cost.normalize():f}",
            )

    def rows(self) -> Iterator[tuple[SuggestedSource, Any, Any, Any, Any]]:
        """Each suggestion with its column, tick, name and price."""
        for number, one in enumerate(self.suggestions):
            column, use, name, price = (
                self[f"{field}-{number}"] for field in ("column", "use", "name", "price")
            )
            yield one, column, use, name, price

    def clean(self) -> dict[str, Any]:
        """Each that is used needs a name of its own."""
        cleaned = super().clean() or self.cleaned_data
        found = set[str]()
        for number in range(len(self.suggestions)):
            name = cleaned.get(f"name-{number}")
            if name is None or not cleaned.get(f"use-{number}"):
                continue
            if not name:
                self.add_error(f"name-{number}", _("Say how it is to be called."))
            elif name in found or name in self.taken:
                self.add_error(f"name-{number}", _("Another source has this name."))
            found.add(name)
        return cleaned

    def names(self) -> dict[str, str]:
        """Label column -> name, of those that are ticked."""
        return {column: self.cleaned_data[f"name-{number}"] for number, column in self._ticked()}

    def prices(self) -> dict[str, Decimal | None]:
        """Label column -> price, of those that are ticked."""
        return {column: self.cleaned_data[f"price-{number}"] for number, column in self._ticked()}

    def _ticked(self) -> Iterator[tuple[int, str]]:
        data = self.cleaned_data
        for number in range(len(self.suggestions)):
            if data[f"use-{number}"]:
                yield number, data[f"column-{number}"]

    def add_refusal(self, error: HypacError) -> None:
        """Beside the price of the model that it is about, or above the list."""
        columns = [self.cleaned_data.get(f"column-{number}") for number in range(len(self.suggestions))]
        field = f"price-{columns.index(error.where)}" if error.where in columns else None
        self.add_error(field, error.message)
