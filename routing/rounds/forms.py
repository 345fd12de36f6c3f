"""Which items a round has, and who answers them."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.common.forms import nonblank_lines
from annotation.models import Membership, Project
from annotation.permissions import members_who_label
from routing.rounds.start import FEWEST, MOST, USUAL

MOST_LISTED = 200


class RoundForm(forms.Form):
    size = forms.IntegerField(
        label=_("Items drawn at random"),
        required=False,
        min_value=FEWEST,
        max_value=MOST,
        help_text=_("20 to 50 show enough of what is understood differently."),
    )
    names = forms.CharField(
        label=_("Or items by their names, one on each line"),
        required=False,
        max_length=30_000,
        help_text=_(
            "Such as are hard. A run with the target “population” then covers only what is imported later: "
            "the items that you leave are no random sample."
        ),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    people = forms.MultipleChoiceField(
        label=_("Who answers"), required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, data: Any = None, *, project: Project, most: int) -> None:
        """`most` items can be in a round."""
        members = (
            members_who_label(project.pk).select_related("user").order_by("user__username")[:MOST_LISTED]
        )
        annotators = [one.user.username for one in members if one.role == Membership.Role.ANNOTATOR]
        super().__init__(data, initial={"size": min(USUAL, max(most, FEWEST)), "people": annotators})
        self.fields["people"].choices = [  # type: ignore[attr-defined]
            (one.user.username, f"{one.user.username} · {one.get_role_display()}") for one in members
        ]

    def wanted(self) -> dict[str, Any]:
        """Of a valid form, for `start_round`."""
        data = self.cleaned_data
        return {"size": data["size"], "names": nonblank_lines(data["names"]), "people": data["people"]}
