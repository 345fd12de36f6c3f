"""Which label becomes which others."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.models import Project


class MergeForm(forms.Form):
    key = forms.ChoiceField(label=_("Label that is given no more"))
    into = forms.ChoiceField(label=_("It counts as"))

    def __init__(self, data: Any = None, *, project: Project) -> None:
        super().__init__(data, auto_id="merge_%s")
        labels = list(project.choices.values_list("key", "name"))
        for name in ("key", "into"):
            self.fields[name].choices = labels  # type: ignore[attr-defined]
        if len(labels) > 1:
            self.fields["into"].initial = labels[1][0]

    def parts(self) -> list[str]:
        """Of a valid form: keys of the labels in its place."""
        return [self.cleaned_data["into"]]


class SplitForm(forms.Form):
    key = forms.ChoiceField(label=_("Label that is given no more"))
    into = forms.CharField(
        label=_("Labels in its place, one on each line"),
        max_length=4_000,
        help_text=_("New ones, or labels that there are."),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )

    def __init__(self, data: Any = None, *, project: Project) -> None:
        super().__init__(data, auto_id="split_%s")
        self.fields["key"].choices = list(project.choices.values_list("key", "name"))  # type: ignore[attr-defined]

    def parts(self) -> list[str]:
        return str(self.cleaned_data["into"]).splitlines()
