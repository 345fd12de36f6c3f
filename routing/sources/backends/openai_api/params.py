"""The params of an `openai_api` source (docs/backends.md)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from annotation.errors import InputError
from routing.sources.backends.llm import SAMPLING, Sampling, sampling_of
from routing.sources.backends.llm.params import MODEL, PRESET
from routing.sources.backends.params import (
    CONCURRENCY,
    CONNECT_TIMEOUT,
    KEY,
    READ_TIMEOUT,
    SPEED,
    TOTAL_TIMEOUT,
    URL,
    Json,
    Param,
    Text,
    Whole,
    read_values,
)
from routing.sources.source_context import TaskSpec

DAY = 86_400
ANSWERS_AS = Text(
    "answers_as",
    gettext_lazy("Name in its answers"),
    gettext_lazy("Only where the server signs its answers with another name than this model's."),
    strip=True,
    part=SPEED,
)
EXTRA = Json(
    "extra",
    gettext_lazy("Further fields of each request"),
    gettext_lazy('A JSON object, such as {"stop": ["\\n"]}.'),
    part=SPEED,
)
CALLS: tuple[Param, ...] = (
    replace(CONCURRENCY, high=512, default=16),
    Whole(
        "requests_per_minute",
        gettext_lazy("Most calls per minute"),
        gettext_lazy("Empty: no limit of ours."),
        low=1,
        high=10**7,
        part=SPEED,
        row="limits",
    ),
    Whole(
        "tokens_per_minute",
        gettext_lazy("Most tokens per minute"),
        gettext_lazy("Empty: no limit of ours."),
        low=1,
        high=10**10,
        part=SPEED,
        row="limits",
    ),
    Whole(
        "retries",
        gettext_lazy("How often a failed call is repeated"),
        gettext_lazy("With growing pauses. Empty: 5."),
        low=0,
        high=20,
        default=5,
        part=SPEED,
        row="limits",
    ),
)
"""How fast and how often calls are made."""
TIMES: tuple[Param, ...] = (
    replace(CONNECT_TIMEOUT, high=600),
    replace(READ_TIMEOUT, low=0.1, high=DAY, default=300.0),
    replace(TOTAL_TIMEOUT, low=0.1, high=DAY, default=600.0),
)
ASKED = (URL, MODEL, KEY, PRESET, *SAMPLING)
"""What is asked, and of which model."""
PARAMS = (*ASKED, *CALLS, EXTRA, ANSWERS_AS, *TIMES)
# What is set by params of its own, or would make the answer one that cannot be read, or draw more texts than
# money is set aside for.
OWN = frozenset({"model", "messages", "n", "stream", "best_of", "use_beam_search"}).union(
    param.name for param in SAMPLING
)
TOKEN_LIMITS = ("max_completion_tokens",)
"""What some servers call `max_tokens`; given in `extra`, it goes in its place."""


@dataclass(frozen=True)
class Params:
    """`url` has no slash at its end; times are in seconds, the total one for an item in all, waiting for rate
    limits apart."""

    url: str
    model: str
    sampling: Sampling
    extra: Mapping[str, Any]
    answers_as: str
    concurrency: int
    requests_per_minute: int | None
    tokens_per_minute: int | None
    connect_timeout: float
    read_timeout: float
    total_timeout: float
    retries: int

    @property
    def max_tokens(self) -> int:
        """The most tokens of one generated text."""
        given = next((self.extra[name] for name in TOKEN_LIMITS if name in self.extra), None)
        return given if isinstance(given, int) else self.sampling.max_tokens


def read_params(params: Mapping[str, Any], spec: TaskSpec) -> Params:
    """Raises InputError naming the wrong param."""
    values = read_values(PARAMS, params)
    if len(values["model"]) > MODEL.most:
        raise InputError(_("A model's name has at most 200 characters."), where="model")
    extra = values["extra"] or {}
    if taken := sorted(OWN.intersection(extra)):
        raise InputError(
            _("%(taken)r has a field of its own, or cannot be set.") % {"taken": taken[0]}, where="extra"
        )
    for name in TOKEN_LIMITS:
        limit = extra.get(name, 1)
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InputError(
                _("%(name)s must be a whole number of at least 1.") % {"name": name}, where="extra"
            )
    shared = ("model", "answers_as", *(param.name for param in (*CALLS, *TIMES)))
    return Params(
        url=_base(values["url"]),
        sampling=sampling_of(values, spec),
        extra=extra,
        **{name: values[name] for name in shared},
    )


def _base(checked: str) -> str:
    """The address that /chat/completions follows; it may be given with that, or with the list of models."""
    if "?" in checked:
        raise InputError(_("Leave out what follows the question mark."), where="url")
    return re.sub(r"(?:/chat/completions|(?<=/v1)/models)?/*\Z", "", checked)
