"""Which items people label, and how many people each."""

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.models import MAX_OVERLAP, Project
from routing.by_people.start import Wanted
from routing.items.filters import FILTERS, MAX_TEXT

LARGEST = 10_000_000


class PeopleRunForm(forms.Form):
    """The filters stand beside it, as they do wherever items are filtered."""

    sample = forms.IntegerField(
        label=_("At random, so many of them"),
        required=False,
        min_value=1,
        max_value=LARGEST,
        help_text=_("Empty: all of them."),
        widget=forms.NumberInput(attrs={"inputmode": "numeric"}),
    )
    overlap = forms.IntegerField(
        label=_("People per item"),
        min_value=1,
        max_value=MAX_OVERLAP,
        help_text=_(
            "1: one person labels an item. From 2 on their answers are compared, and a delivery says "
            "how often two people differ."
        ),
    )
    overlap_share = forms.DecimalField(
        label=_("On which share of the items"),
        min_value=Decimal("0.0001"),
        max_value=Decimal(1),
        max_digits=5,
        decimal_places=4,
        localize=False,
        error_messages={"min_value": _("Write a share above 0 and at most 1, with at most four places.")},
        help_text=_("1 is all of them; with 0.25 it is a random quarter, and one person labels the others."),
    )

    def __init__(self, data: Any = None, *, project: Project) -> None:
        initial = {"overlap": project.overlap, "overlap_share": f"{project.overlap_share.normalize():f}"}
        super().__init__(data, initial=initial)
        self.filters = {
            name: value[:MAX_TEXT]
            for name in FILTERS
            if data is not None and (value := data.get(name, "").strip())
        }

    def wanted(self) -> Wanted:
        """Of a valid form."""
        return Wanted(self.filters, **self.cleaned_data)

    def first(self) -> Wanted:
        """Before anything was chosen: all items, as the project says."""
        return Wanted({})
