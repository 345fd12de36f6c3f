"""Params of every backend of a language model."""

from django.utils.translation import gettext as translated, gettext_lazy as _

from routing.sources.backends.params import Choice, Flag, Json, Number, Param, Part, Text, Whole
from routing.sources.prompts.presets import PRESETS

DEFAULT_MAX_TOKENS = 1024
MOST_TOKENS = 1_000_000
MOST_SAMPLES = 100
MOST_TOP_LOGPROBS = 20
"""What OpenAI allows, and vLLM unless it is told otherwise."""

WRITES = Part(_("How it writes"), _("temperature, length, recommended settings"))
UNSURE = Part(_("How it tells that it is unsure"), _("what uncertainty scores are made of"), unfolded=True)
FORM_OF_ANSWER = Part(_("Form of its answers"), _("structured output"))

MODEL = Text(
    "model",
    _("Model"),
    _("By the name that its server has for it; in the worker a folder of models, or owner/name."),
    required=True,
    strip=True,
    form_name="served_name",
)
PRESET = Text(
    "preset",
    _("Settings as its makers recommend them"),
    _("They fill the fields below that are empty when you save."),
    offers=lambda task: ((preset.name, translated(preset.title)) for preset in PRESETS.values()),
    nothing=_("None"),
    fills={preset.name: preset.params for preset in PRESETS.values()},
    part=WRITES,
)
SAMPLING: tuple[Param, ...] = (
    Number(
        "temperature",
        _("Temperature"),
        _("0 always takes the most likely token."),
        low=0,
        high=2,
        part=WRITES,
        row="sampling",
    ),
    Number("top_p", _("Top-p"), low=0, high=1, part=WRITES, row="sampling"),
    Whole("top_k", _("Top-k"), low=-1, high=MOST_TOKENS, part=WRITES, row="sampling"),
    Number("min_p", _("Min-p"), low=0, high=1, part=WRITES, row="sampling"),
    Number("presence_penalty", _("Presence penalty"), low=-2, high=2, part=WRITES, row="sampling"),
    Whole(
        "seed",
        _("Seed"),
        _("Each item gets one of its own from it."),
        low=0,
        high=2**31 - 1,
        part=WRITES,
        row="sampling",
    ),
    Whole(
        "max_tokens",
        _("Most tokens of an answer"),
        _("Thinking counts. A budget sets money aside for so many: take what is needed. Empty: 1,024."),
        low=1,
        high=MOST_TOKENS,
        default=DEFAULT_MAX_TOKENS,
        part=WRITES,
        row="sampling",
    ),
    Flag(
        "logprobs",
        _("Ask for the probabilities of its tokens"),
        _("Costs nothing, and gives the score that the paper uses most."),
        default=True,
        part=UNSURE,
    ),
    Whole(
        "top_logprobs",
        _("Alternatives at each token"),
        _("1 to 20; for the probabilities of labels."),
        low=1,
        high=MOST_TOP_LOGPROBS,
        part=UNSURE,
        row="scores",
    ),
    Whole(
        "samples",
        _("Answers to each item"),
        _("2 or more: how much they disagree is a score. Each is paid. Empty: 1."),
        low=1,
        high=MOST_SAMPLES,
        default=1,
        part=UNSURE,
        row="scores",
    ),
    Number(
        "sample_temperature",
        _("Temperature of these"),
        _("Empty: the one above."),
        low=0,
        high=2,
        part=UNSURE,
        row="scores",
    ),
    Whole(
        "verbalized",
        _("How often to ask how sure it is"),
        _("10 in the paper; each is a further call. Empty: not at all."),
        low=0,
        high=MOST_SAMPLES,
        default=0,
        part=UNSURE,
        row="scores",
    ),
    Choice(
        "structured",
        _("Form of its answers"),
        _("Where the server can hold the model to one."),
        choices=(
            ("none", _("Free: the model may write anything")),
            ("choice", _("Held to one of the labels")),
            ("json", _("JSON of the labels, or of the schema below")),
            ("regex", _("Held to a regular expression")),
        ),
        part=FORM_OF_ANSWER,
    ),
    Text(
        "regex",
        _("Regular expression"),
        _("Only where answers are held to one."),
        most=2_000,
        part=FORM_OF_ANSWER,
    ),
    Json(
        "schema",
        _("JSON schema"),
        _("Only for JSON of another form than that of the labels."),
        part=FORM_OF_ANSWER,
    ),
)
"""What shapes the texts that a model generates."""
