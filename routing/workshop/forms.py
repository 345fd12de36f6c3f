"""What the pages of candidates ask for: how many items, a prompt with how the model writes, and a budget."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.common.forms import price_field
from routing.models import PromptCandidate
from routing.sources.backend_for import task_spec
from routing.sources.backends.params import Flag
from routing.sources.prompt_form import PromptForm
from routing.workshop.candidates import writing_params
from routing.workshop.development import MOST, USUAL


class DrawForm(forms.Form):
    size = forms.IntegerField(
        label=_("Items drawn at random"),
        min_value=1,
        max_value=MOST,
        initial=USUAL,
        help_text=_("20 to 200 in all."),
    )


class BudgetForm(forms.Form):
    budget = price_field(
        label=_("Budget"), required=False, help_text=_("The most that it may cost. Empty: no limit.")
    )


class CandidateForm(PromptForm):
    """A prompt, and a field for each param of how the model writes, called like the param."""

    def __init__(self, data: Any = None, *, like: PromptCandidate) -> None:
        initial = {**like.params, "system": like.system, "template": like.template}
        super().__init__(data, initial=initial)
        task = task_spec(like.project)
        self._params = writing_params(like.source.backend)
        for param in self._params:
            self.fields[param.name] = param.form_field(task)

    def writing(self) -> list[forms.BoundField]:
        """The fields of how the model writes."""
        return [self[param.name] for param in self._params]

    def params(self) -> dict[str, Any]:
        """Of a valid form what is set, and not as it is anyway."""
        data = self.cleaned_data
        return {
            param.name: data[param.name]
            for param in self._params
            if data[param.name] not in (None, "")
            and not (isinstance(param, Flag) and data[param.name] == param.default)
        }
