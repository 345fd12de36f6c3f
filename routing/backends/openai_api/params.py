"""The params of an `openai_api` source (docs/backends.md)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.net import check_url
from routing.backends.base import refuse_unknown, text_param
from routing.backends.context import TaskSpec
from routing.backends.llm import SAMPLING_PARAMS, Sampling, read_sampling
from routing.backends.llm.params import json_object, number, whole

PARAMS = (
    "url",
    "model",
    "answers_as",
    *SAMPLING_PARAMS,
    "extra",
    "concurrency",
    "requests_per_minute",
    "tokens_per_minute",
    "connect_timeout",
    "read_timeout",
    "total_timeout",
    "retries",
    "preset",
)
# What is set by params of its own, or would make the answer one that cannot be read, or draw more texts than
# money is set aside for.
OWN = frozenset({"model", "messages", "n", "stream", "best_of", "use_beam_search", *SAMPLING_PARAMS})
TOKEN_LIMITS = ("max_completion_tokens",)
"""What some servers call `max_tokens`; given in `extra`, it goes in its place."""
DAY = 86_400


@dataclass(frozen=True)
class Params:
    """`url` has no slash at its end; times are in seconds, the total one for an item in all, waiting for rate
    limits apart."""

    url: str
    model: str
    sampling: Sampling
    extra: Mapping[str, Any]
    answers_as: str = ""
    concurrency: int = 16
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    connect_timeout: float = 5.0
    read_timeout: float = 300.0
    total_timeout: float = 600.0
    retries: int = 5

    @property
    def max_tokens(self) -> int:
        """The most tokens of one generated text."""
        given = next((self.extra[name] for name in TOKEN_LIMITS if name in self.extra), None)
        return given if isinstance(given, int) else self.sampling.max_tokens


def read_params(params: dict[str, Any], spec: TaskSpec) -> Params:
    """Raises InputError naming the wrong param."""
    refuse_unknown(params, PARAMS)
    text_param(params, "preset")
    model = text_param(params, "model", required=True).strip()
    if len(model) > 200:
        raise InputError(_("A model's name has at most 200 characters."), where="model")
    extra = json_object(params, "extra") or {}
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
    return Params(
        url=_base(text_param(params, "url", required=True)),
        model=model,
        sampling=read_sampling(params, spec),
        extra=extra,
        answers_as=text_param(params, "answers_as").strip(),
        concurrency=whole(params, "concurrency", 1, 512) or Params.concurrency,
        requests_per_minute=whole(params, "requests_per_minute", 1, 10**7),
        tokens_per_minute=whole(params, "tokens_per_minute", 1, 10**10),
        connect_timeout=number(params, "connect_timeout", 0.1, 600) or Params.connect_timeout,
        read_timeout=number(params, "read_timeout", 0.1, DAY) or Params.read_timeout,
        total_timeout=number(params, "total_timeout", 0.1, DAY) or Params.total_timeout,
        retries=_or(whole(params, "retries", 0, 20), Params.retries),
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _base(url: str) -> str:
    """The address that /chat/completions follows; it may be given with that, or with the list of models."""
    checked = check_url(url.strip(), where="url")
    if "?" in checked:
        raise InputError(_("Leave out what follows the question mark."), where="url")
    return re.sub(r"(?:/chat/completions|(?<=/v1)/models)?/*\Z", "", checked)
