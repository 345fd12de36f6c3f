"""How a language model generates: the params that every backend of one knows, and that shape its answers."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import InputError
from routing.sources.backends.llm.params import DEFAULT_MAX_TOKENS, SAMPLING
from routing.sources.source_context import TaskSpec

TOP_LOGPROBS = 5
"""Alternatives that are asked for where an answer is one label, unless told otherwise."""


@dataclass(frozen=True)
class Sampling:
    """None: whatever the server does. `samples` of at least 2 has several answers drawn for each item, at
    `sample_temperature` where it is set; `verbalized` has the model asked so often how sure it is.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS
    samples: int = 1
    sample_temperature: float | None = None
    verbalized: int = 0
    logprobs: bool = True
    top_logprobs: int = 1
    structured: str = "none"
    schema: Mapping[str, Any] | None = None
    regex: str = ""

    def shaping(self) -> dict[str, Any]:
        """What the answers depend on, for a fingerprint; without what is not set."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}

    def seed_for(self, text: str) -> int | None:
        """The seed for one item. Of its own, so that no two items share their luck, and the same in whatever
        order they come."""
        if self.seed is None:
            return None
        return int.from_bytes(hashlib.sha256(f"{self.seed}\n{text}".encode()).digest()[:4], "big") >> 1

    @property
    def generations(self) -> int:
        """The most texts that are generated for one item."""
        drawn_apart = 1 if self.samples > 1 and self.sample_temperature is not None else 0
        return self.samples + drawn_apart + self.verbalized

    def fields(self, spec: TaskSpec) -> frozenset[str]:
        """What of `Answer.raw` uncertainty scores can read."""
        wanted = {
            "token_logprobs": self.logprobs,
            "label_logprobs": self.logprobs and self.top_logprobs > 1 and spec.kind.one_choice,
            "samples": self.samples > 1,
            "verbalized": self.verbalized > 0,
        }
        return frozenset(name for name, given in wanted.items() if given)

    @property
    def default_score(self) -> str:
        if self.logprobs:
            return "logits"
        return "verbalized" if self.verbalized else "ensemble" if self.samples > 1 else "logits"


def sampling_of(values: Mapping[str, Any], spec: TaskSpec) -> Sampling:
    """That of the params in SAMPLING, as they were read. Raises InputError naming one that another one
    excludes.
    """
    structured, regex, schema = values["structured"], values["regex"], values["schema"]
    if structured == "choice" and not spec.kind.one_choice:
        raise InputError(
            _("Only the answer to a single choice can be held to the labels; take json, regex or none."),
            where="structured",
        )
    if structured == "regex" and not regex:
        raise InputError(_("Give the regular expression that answers have to match."), where="regex")
    if regex and structured != "regex":
        raise InputError(_("This only counts where structured is regex."), where="regex")
    if schema is not None and structured != "json":
        raise InputError(_("This only counts where structured is json."), where="schema")
    samples, sample_temperature = values["samples"], values["sample_temperature"]
    if sample_temperature is not None and samples < 2:
        raise InputError(_("This only counts where several samples are drawn."), where="sample_temperature")
    if samples > 1 and values["temperature"] == 0 and sample_temperature is None:
        raise InputError(
            _(
                "At temperature 0 all samples are alike. Set a sample_temperature above 0, or the "
                "temperature."
            ),
            where="samples",
        )
    usual = TOP_LOGPROBS if spec.kind.one_choice else 1
    # llama.cpp gives log-probabilities only with alternatives: at least one is always asked for.
    top_logprobs = (values["top_logprobs"] or usual) if values["logprobs"] else 0
    return Sampling(**{param.name: values[param.name] for param in SAMPLING} | {"top_logprobs": top_logprobs})
