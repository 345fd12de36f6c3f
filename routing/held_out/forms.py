"""Which items are held out, and how people practise and are checked."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.common.forms import nonblank_lines
from annotation.models import HeldOutItem, Project
from routing.held_out.manage import LARGEST_SHARE, LEAST_LAST, MOST, MOST_LAST


class HoldOutForm(forms.Form):
    purpose = forms.ChoiceField(
        label=_("For"), choices=[(one.value, one.label) for one in HeldOutItem.FOR_PEOPLE]
    )
    size = forms.IntegerField(label=_("Items drawn at random"), required=False, min_value=1, max_value=MOST)
    names = forms.CharField(
        label=_("Or items by their names, one on each line"),
        required=False,
        max_length=100_000,
        help_text=_(
            "A run with the target “population” then covers only what is imported later: the items that you "
            "leave are no random sample."
        ),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )

    def wanted(self) -> dict[str, Any]:
        """Of a valid form, for `hold_out`."""
        data = self.cleaned_data
        return {"purpose": data["purpose"], "size": data["size"], "names": nonblank_lines(data["names"])}


class SettingsForm(forms.Form):
    practice_first = forms.BooleanField(
        label=_("Annotators answer the practice items first, once each"), required=False
    )
    gold_share = forms.FloatField(
        label=_("Gold items, percent of what an annotator is given"),
        min_value=0,
        max_value=100 * LARGEST_SHARE,
        help_text=_("0: none are given."),
    )
    gold_bar = forms.FloatField(label=_("Pause whoever has fewer right, percent"), min_value=0, max_value=100)
    gold_last = forms.IntegerField(
        label=_("Of so many latest answers"), min_value=LEAST_LAST, max_value=MOST_LAST
    )

    def __init__(self, data: Any = None, *, project: Project) -> None:
        initial = {
            "practice_first": project.practice_first,
            "gold_share": f"{100 * project.gold_share:.6g}",
            "gold_bar": f"{100 * project.gold_bar:.6g}",
            "gold_last": project.gold_last,
        }
        super().__init__(data, initial=initial)

    def wanted(self) -> dict[str, Any]:
        """Of a valid form, for `change_settings`."""
        data = self.cleaned_data
        return {
            **data,
            "gold_share": data["gold_share"] / 100,
            "gold_bar": data["gold_bar"] / 100,
        }
