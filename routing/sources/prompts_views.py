"""The prompt of a source: written, seen filled in with an item before it is used, and its versions."""

import json
from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.forms import add_error
from annotation.errors import HypacError, InputError
from annotation.jobs import jobs
from annotation.jobs.progress import job_progress
from annotation.models import Item, Project
from annotation.projects.jobs_views import STOP_POLLING
from annotation.templatetags.hypac import money
from routing.models import Source
from routing.sources.backend_for import prompt_of, task_spec
from routing.sources.backends import Example, Prompt
from routing.sources.manage import run_in_use, save_prompt
from routing.sources.prompt_versions import prompt_in_force, shown_to_model, takes_prompt
from routing.sources.prompts import Messages, check_prompt, item_fields, placeholders
from routing.sources.trials import ITEMS, newest_try, start_try, use_as_price

MAX_EXAMPLES = 50
SHOWN_VERSIONS = 30


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


@needs("sources.edit", "GET", "POST")
def source_prompt(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    """A POST with `show` only shows the prompt filled in; without it the prompt is saved."""
    project = request.access.project
    source = get_object_or_404(Source, project=project, pk=source_id)
    if source.backend not in takes_prompt():
        raise Http404("a source that is asked without a prompt")
    shown = _version(source, request.GET.get("version", "")) or prompt_in_force(source)
    form = PromptForm(request.POST or None, initial={"system": shown.system, "template": shown.template})
    # What was sent counts as it is: a row that is like one of the stored prompt is no empty one.
    sent = request.POST if request.method == "POST" else None
    examples = ExampleFormSet(sent, prefix="examples", initial=None if sent else _initial(shown))
    if request.method == "POST" and form.is_valid() and examples.is_valid():
        try:
            shown = _prompt(form, examples)
            if "show" in request.POST:
                check_prompt(shown, task_spec(project))
            else:
                save_prompt(source=source, user=request.user, prompt=shown)
                messages.success(request, _("The prompt is saved. Try it on a few items before a run."))
                return redirect("source_try", project.slug, source.pk)
        except HypacError as error:
            add_error(form, error)
    return render(
        request,
        "routing/sources/prompt.html",
        {
            "source": source,
            "form": form,
            "examples": examples,
            "in_force": prompt_in_force(source),
            "resting": run_in_use(source),
            "examples_sent": bool(sent) and any(row.has_changed() for row in examples),
            "versions": source.prompt_versions.select_related("created_by").order_by("-number")[
                :SHOWN_VERSIONS
            ],
            "placeholders": placeholders(task_spec(project)),
            "step": "sources",
            **_preview(project, shown, form),
        },
    )


def _preview(project: Project, prompt: Prompt, form: PromptForm) -> dict[str, Any]:
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


def _version(source: Source, number: str) -> Prompt | None:
    if not (number.isascii() and number.isdigit() and len(number) < 9):
        return None
    version = source.prompt_versions.filter(number=int(number)).first()
    return None if version is None else prompt_of(version)


def _initial(prompt: Prompt) -> list[dict[str, str]]:
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


def _prompt(form: PromptForm, examples: Any) -> Prompt:
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


@needs("sources.edit", "GET", "POST")
def source_try(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    """The newest try; a POST starts another one. htmx asks again until the job has ended."""
    source = _source(request, source_id)
    if request.method == "POST":
        with refusals_as_messages(request):
            start_try(source=source, user=request.user)
        return redirect("source_try", request.access.project.slug, source.pk)
    shown = newest_try(source)
    progress = job_progress(shown.job) if shown.job else None
    polls = shown.job is not None and shown.job.state in jobs.UNFINISHED
    context: dict[str, Any] = {
        "source": source,
        "shown": shown,
        "progress": progress,
        "polls": polls,
        "count": ITEMS,
        "prompted": source.backend in takes_prompt(),
        "step": "sources",
    }
    if request.htmx:
        return render(request, "routing/sources/_try.html", context, status=200 if polls else STOP_POLLING)
    return render(request, "routing/sources/try.html", context)


@needs("sources.edit", "POST")
def source_try_price(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    """Take the mean cost of the newest try as the price per label."""
    source = _source(request, source_id)
    with refusals_as_messages(request):
        shown = newest_try(source)
        if shown.tried is None:
            messages.error(request, _("Try the source first."))
        else:
            price = use_as_price(tried=shown.tried, user=request.user)
            currency = request.access.project.currency
            messages.success(
                request,
                _("Plans now reckon with %(price)s per label.") % {"price": money(price, currency)},
            )
    return redirect("source_try", request.access.project.slug, source.pk)


def _source(request: ProjectRequest, source_id: int) -> Source:
    return get_object_or_404(
        Source.objects.select_related("project"), project=request.access.project, pk=source_id
    )
