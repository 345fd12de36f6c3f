"""The form of a prompt, which several pages share: its fields, what was typed as a prompt, and how that looks
filled in.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.utils.translation import gettext as _, gettext_lazy

from annotation.errors import InputError
from annotation.models import Item, Project
from routing.sources.backends import Example, Prompt
from routing.sources.prompt_versions import shown_to_model
from routing.sources.prompts import Messages, item_fields

MAX_EXAMPLES = 50


class PromptForm(forms.Form):
    system = forms.CharField(
        label=gettext_lazy("System message"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "class": "code"}),
        help_text=gettext_lazy("What holds for every item. Empty: none is sent."),
    )
    template = forms.CharField(
        label=gettext_lazy("What is asked about an item"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 14, "class": "code"}),
        help_text=gettext_lazy("Text with placeholders such as {{ text }}; all are listed on this page."),
    )
    item = forms.CharField(
        label=gettext_lazy("Item to show it with"),
        required=False,
        max_length=255,
        help_text=gettext_lazy("Its name. Empty: the first one."),
    )


class ExampleForm(forms.Form):
    content = forms.CharField(
        label=gettext_lazy("Example"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "code"}),
    )
    answer = forms.CharField(
        label=gettext_lazy("Its right answer"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "code"}),
    )


ExampleFormSet = forms.formset_factory(
    ExampleForm, extra=2, max_num=MAX_EXAMPLES, absolute_max=MAX_EXAMPLES + 2
)


def preview_of(project: Project, prompt: Prompt, form: PromptForm) -> dict[str, Any]:
    """The prompt filled in with the item that the form names, or why there is nothing to show."""
    name = str(form["item"].value() or "").strip()
    items = Item.objects.filter(project=project).order_by("position")
    item = (items.filter(external_id=name) if name else items).first()
    if form.errors:
        return {}
    if item is None:
        return {"no_preview": _("There is no item of this name.") if name else _("Import data to see it.")}
    try:
        found: Messages = shown_to_model(project, prompt, item)
    except InputError as error:
        return {"no_preview": error.message}
    return {"preview": found.as_chat(), "preview_item": item}


def initial_examples(prompt: Prompt) -> list[dict[str, str]]:
    """The examples as the form shows them: the one field that is asked about as it is, several as JSON."""
    single = len(item_fields(prompt.template)) == 1
    return [
        {
            "content": next(iter(example.fields.values()))
            if single and len(example.fields) == 1
            else json.dumps(dict(example.fields), ensure_ascii=False, indent=1),
            "answer": example.answer,
        }
        for example in prompt.examples
    ]


def prompt_in(form: PromptForm, examples: Any) -> Prompt:
    """Raises InputError where an example cannot be read."""
    template = form.cleaned_data["template"]
    rows = [cast(Mapping[str, str], row.cleaned_data) for row in examples.forms]
    filled = [row for row in rows if row.get("content", "").strip() or row.get("answer", "").strip()]
    return Prompt(
        template=template,
        system=form.cleaned_data["system"],
        examples=tuple(
            Example(_fields(number, row["content"], item_fields(template)), row["answer"].strip())
            for number, row in enumerate(filled, 1)
        ),
    )


def _fields(number: int, content: str, names: list[str]) -> dict[str, str]:
    content = content.replace("\r\n", "\n")
    if len(names) == 1:
        return {names[0]: content}
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise InputError(
            _("Example %(number)d: the template has several fields (%(names)s); write a JSON object of them.")
            % {"number": number, "names": ", ".join(names)},
            where="template",
        )
    return fields
