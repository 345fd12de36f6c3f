"""The models that the imported data seems to hold, each with a tick and a price."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.common.forms import price_field
from annotation.errors import HypacError
from routing.sources.suggested import SuggestedSource


class SuggestedForm(forms.Form):
    """Fields use-N and price-N for the N-th suggestion; the hidden column-N says which one that was, as the
    list may have changed since the page was made."""

    def __init__(self, data: Any = None, *, suggestions: Sequence[SuggestedSource]) -> None:
        super().__init__(data, prefix="suggested")
        self.suggestions = suggestions
        for number, one in enumerate(suggestions):
            self.fields[f"column-{number}"] = forms.CharField(
                initial=one.label_column, widget=forms.HiddenInput
            )
            self.fields[f"use-{number}"] = forms.BooleanField(label=one.name, required=False, initial=True)
            self.fields[f"price-{number}"] = price_field(
                label=_("Price of one label by %(name)s") % {"name": one.name},
                required=False,
                initial=None if one.cost is None else f"{one.cost.normalize():f}",
            )

    def rows(self) -> Iterator[tuple[SuggestedSource, Any, Any, Any]]:
        """Each suggestion with its column, tick and price."""
        for number, one in enumerate(self.suggestions):
            yield one, self[f"column-{number}"], self[f"use-{number}"], self[f"price-{number}"]

    def prices(self) -> dict[str, Decimal | None]:
        """Label column -> price, of those that are ticked."""
        data = self.cleaned_data
        return {
            data[f"column-{number}"]: data[f"price-{number}"]
            for number in range(len(self.suggestions))
            if data[f"use-{number}"]
        }

    def add_refusal(self, error: HypacError) -> None:
        """Beside the price of the model that it is about, or above the list."""
        columns = [self.cleaned_data.get(f"column-{number}") for number in range(len(self.suggestions))]
        field = f"price-{columns.index(error.where)}" if error.where in columns else None
        self.add_error(field, error.message)
