"""Fields of the form of a source that is a server of models, or a language model in the worker."""

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from routing.prompts import PRESETS

STRUCTURED = (
    ("", _("Free: the model may write anything")),
    ("choice", _("Held to one of the labels")),
    ("json", _("JSON of the labels, or of the schema below")),
    ("regex", _("Held to a regular expression")),
)
DTYPES = (("", _("As the model is stored")), *((name, name) for name in ("bfloat16", "float16", "float32")))

SAMPLING = ("temperature", "top_p", "top_k", "min_p", "presence_penalty", "seed", "max_tokens")
SCORES = ("logprobs", "top_logprobs", "samples", "sample_temperature", "verbalized")
FORM_OF_ANSWER = ("structured", "regex", "schema")
LIMITS = ("concurrency", "requests_per_minute", "tokens_per_minute")
TIMES = ("connect_timeout", "read_timeout", "total_timeout", "retries")
ENGINE = ("revision", "dtype", "max_model_len", "gpu_memory_utilization", "template_options")

GENERATES = ("preset", *SAMPLING, *SCORES, *FORM_OF_ANSWER)
PARAMS: Mapping[str, tuple[str, ...]] = {
    "openai_api": ("url", "model", "answers_as", *GENERATES, "extra", *LIMITS, *TIMES),
    "openai_batch": ("url", "model", "answers_as", *GENERATES, "extra", "batch_size", "poll_seconds"),
    "vllm": ("model", *GENERATES, *ENGINE, "concurrency"),
    "label_studio_ml": ("url", "label_config", "batch_size", "concurrency", *TIMES[:3]),
}
"""The params that the form sets, by backend."""
FIELD_OF = {"model": "served_name"}
"""Params whose field is named otherwise, because another backend has a param of that name."""


class JsonField(forms.JSONField):
    """JSON as it was typed, and nothing, not "null", where nothing is set."""

    def prepare_value(self, value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False)


def llm_fields() -> dict[str, forms.Field]:
    """Every field, by its name; none is required here, because the backends say what they need."""
    return {
        "url": _text(
            _("Address of the server"),
            _(
                "For example https://api.openai.com/v1; of a Label Studio ML backend http://ml.example.org:9090."
            ),
            500,
        ),
        "served_name": _text(
            _("Model"),
            _("By the name that its server has for it; in the worker a folder of models, or owner/name."),
            200,
        ),
        "answers_as": _text(
            _("Name in its answers"),
            _("Only where the server signs its answers with another name than this model's."),
            200,
        ),
        "preset": forms.ChoiceField(
            label=_("Settings as its makers recommend them"),
            choices=[("", _("None")), *((preset.name, _(preset.title)) for preset in PRESETS.values())],
            required=False,
            help_text=_("They fill the fields below that are empty when you save."),
        ),
        "temperature": _number(_("Temperature"), _("0 always takes the most likely token.")),
        "top_p": _number(_("Top-p"), ""),
        "top_k": _whole(_("Top-k"), ""),
        "min_p": _number(_("Min-p"), ""),
        "presence_penalty": _number(_("Presence penalty"), ""),
        "seed": _whole(_("Seed"), _("Each item gets one of its own from it.")),
        "max_tokens": _whole(
            _("Most tokens of an answer"),
            _("Thinking counts. A budget sets money aside for so many: take what is needed. Empty: 1,024."),
        ),
        "logprobs": forms.BooleanField(
            label=_("Ask for the probabilities of its tokens"),
            required=False,
            initial=True,
            help_text=_("Costs nothing, and gives the score that the paper uses most."),
        ),
        "top_logprobs": _whole(
            _("Alternatives at each token"), _("1 to 20; for the probabilities of labels.")
        ),
        "samples": _whole(
            _("Answers to each item"),
            _("2 or more: how much they disagree is a score. Each is paid. Empty: 1."),
        ),
        "sample_temperature": _number(_("Temperature of these"), _("Empty: the one above.")),
        "verbalized": _whole(
            _("How often to ask how sure it is"),
            _("10 in the paper; each is a further call. Empty: not at all."),
        ),
        "structured": forms.ChoiceField(
            label=_("Form of its answers"),
            choices=STRUCTURED,
            required=False,
            help_text=_("Where the server can hold the model to one."),
        ),
        "regex": _text(_("Regular expression"), _("Only where answers are held to one."), 2_000),
        "schema": _json(_("JSON schema"), _("Only for JSON of another form than that of the labels.")),
        "extra": _json(_("Further fields of each request"), _('A JSON object, such as {"stop": ["\\n"]}.')),
        "concurrency": _whole(_("Calls at a time"), _("Empty: what suits the kind of source.")),
        "batch_size": _whole(
            _("Items in one request or file"), _("Empty: 16 in a request, 5,000 in a file.")
        ),
        "poll_seconds": _whole(_("Seconds between looks whether it is done"), _("Empty: 30.")),
        "requests_per_minute": _whole(_("Most calls per minute"), _("Empty: no limit of ours.")),
        "tokens_per_minute": _whole(_("Most tokens per minute"), _("Empty: no limit of ours.")),
        "connect_timeout": _number(_("Seconds to connect"), _("Empty: 5.")),
        "read_timeout": _number(
            _("Seconds without a sign of life"), _("Empty: what suits the kind of source.")
        ),
        "total_timeout": _number(
            _("Seconds for an answer in all"),
            _("Its repetitions included. Empty: what suits the kind of source."),
        ),
        "retries": _whole(_("How often a failed call is repeated"), _("With growing pauses. Empty: 5.")),
        "revision": _text(_("Revision"), _("Of a model of the Hugging Face Hub."), 200),
        "dtype": forms.ChoiceField(label=_("Numbers it reckons with"), choices=DTYPES, required=False),
        "max_model_len": _whole(_("Most tokens of prompt and answer"), _("Empty: what the model can.")),
        "gpu_memory_utilization": _number(_("Share of the GPU's memory"), _("Empty: 0.9.")),
        "template_options": _json(
            _("Options of the chat template"), _('Such as {"enable_thinking": false}.')
        ),
        "label_config": forms.CharField(
            label=_("Labelling configuration"),
            required=False,
            max_length=20_000,
            strip=True,
            widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false", "class": "code"}),
            help_text=_(
                "The XML that the backend is set up with. Empty: made from the labels of the project."
            ),
        ),
    }


def params_of(backend: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The params of a backend of this page from the values of the form, without what is not set.

    A preset fills what is empty.
    """
    found = {name: data[FIELD_OF.get(name, name)] for name in PARAMS[backend]}
    preset = PRESETS.get(found.get("preset") or "")
    for name, value in (preset.params if preset else {}).items():
        if name in found and found[name] is None:
            found[name] = value
    if found.get("logprobs"):
        del found["logprobs"]  # as it is anyway
    return {name: value for name, value in found.items() if value not in (None, "")}


def initial_of(backend: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the fields for stored params."""
    return {FIELD_OF.get(name, name) if backend in PARAMS else name: value for name, value in params.items()}


def preset_values(name: str) -> dict[str, Any]:
    """What a preset puts into the fields, all others of the sampling emptied."""
    preset = PRESETS.get(name)
    return {} if preset is None else {**dict.fromkeys(SAMPLING, ""), **preset.params}


def _text(label: Any, help_text: Any, length: int) -> forms.CharField:
    widget = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
    return forms.CharField(label=label, required=False, max_length=length, help_text=help_text, widget=widget)


def _number(label: Any, help_text: Any) -> forms.FloatField:
    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
    return forms.FloatField(label=label, required=False, help_text=help_text, widget=widget)


def _whole(label: Any, help_text: Any) -> forms.IntegerField:
    widget = forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"})
    return forms.IntegerField(label=label, required=False, help_text=help_text, widget=widget)


def _json(label: Any, help_text: Any) -> JsonField:
    widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "code"})
    return JsonField(label=label, required=False, help_text=help_text, widget=widget)
