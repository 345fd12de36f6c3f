"""From what a model wrote, held to a JSON schema or not, to an answer that can be stored."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from annotation.common.value_reader import ValueReason
from annotation.storable import storable_text
from routing.sources.backends.base import Answer
from routing.sources.backends.llm.sampling import Sampling
from routing.sources.backends.llm.tokens import Token, label_logprobs, stored_logprobs, without_end
from routing.sources.prompts import read_answer, split_thinking
from routing.sources.source_context import TaskSpec

MOST_STORED = 20_000
"""Characters of a text that are kept."""
CUT_OFF = frozenset({"length", "max_tokens", "model_length"})
BROKEN_OFF = frozenset({"abort", "cancelled", "error", "insufficient_system_resource"})
"""Reasons to stop that servers give where they had to end in the middle of an answer."""


@dataclass(frozen=True)
class Usage:
    """Tokens read and generated; None where the server does not say."""

    tokens_in: int | None = 0
    tokens_out: int | None = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(_sum(self.tokens_in, other.tokens_in), _sum(self.tokens_out, other.tokens_out))


@dataclass(frozen=True)
class Generated:
    """One text as a model generated it. `reasoning` is what came apart from it; there may be more in the
    text. `tokens` are all that were generated, thinking included; None where their probabilities are unknown.
    """

    text: str
    reasoning: str = ""
    finish_reason: str = ""
    refusal: str = ""
    tokens: Sequence[Token] | None = field(default=None, repr=False)

    @property
    def spoken(self) -> str:
        """The text without the thinking, as it can be stored."""
        return split_thinking(storable_text(self.text))[1]


def answer_of(
    generated: Generated,
    *,
    spec: TaskSpec,
    sampling: Sampling,
    usage: Usage,
    samples: Sequence[Generated] = (),
    verbalized: Sequence[str] = (),
    notes: Sequence[str] = (),
    latency_ms: float | None = None,
    served_model: str = "",
    served_revision: str = "",
) -> Answer:
    """The answer, with what scores are computed from in `raw`: "token_logprobs", "label_logprobs", "samples"
    and "verbalized", and beside them "text", "reasoning" and "note", each where there is any.
    """
    value, reason = read_value(generated, spec, sampling)
    inner, spoken = split_thinking(storable_text(generated.text))
    reasoning = "\n".join(filter(None, [storable_text(generated.reasoning).strip(), inner]))
    said = list(notes)
    raw: dict[str, Any] = {"text": _kept(spoken, "answer", said)}
    if reasoning:
        raw["reasoning"] = _kept(reasoning, "reasoning", said)
    if sampling.logprobs and generated.tokens:
        tokens = without_end(generated.tokens, generated.text)
        raw["token_logprobs"] = stored_logprobs(tokens)
        if isinstance(value, str) and "label_logprobs" in sampling.fields(spec):
            raw |= {"label_logprobs": found} if (found := label_logprobs(tokens, value, spec)) else {}
    if samples:
        raw["samples"] = [sample_of(sample, spec, sampling) for sample in samples]
    if verbalized:
        raw["verbalized"] = [storable_text(reply)[-MOST_STORED:] for reply in verbalized]
    if said:
        raw["note"] = "; ".join(said)
    return Answer(
        value,
        reason,
        raw,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        finish_reason=storable_text(generated.finish_reason)[:40],
        latency_ms=latency_ms,
        served_model=storable_text(served_model)[:200],
        served_revision=storable_text(served_revision)[:200],
    )


def read_value(
    generated: Generated, spec: TaskSpec, sampling: Sampling
) -> tuple[str | list[str] | None, str]:
    """The value that the text gives and "", or None and why there is none."""
    if generated.refusal:
        return None, f"the model refused: {' '.join(storable_text(generated.refusal).split())[:150]}"
    finish = generated.finish_reason.lower()
    if finish == "content_filter":
        return None, "the server's content filter stopped the answer"
    if finish in CUT_OFF:
        inside = "inside its thinking " if not generated.spoken else ""
        return None, ValueReason(f"the answer was cut off {inside}(finish_reason is {finish!r})", "cut_off")
    if finish in BROKEN_OFF:
        return None, f"the server broke the answer off (finish_reason is {finish!r})"
    text = storable_text(generated.text)
    if not text.strip() and generated.reasoning:
        return None, "there is thinking, and no answer after it"
    if sampling.structured == "json" and sampling.schema is None:
        text = unwrapped(split_thinking(text)[1], spec)
    reading = read_answer(text, spec)
    return reading.value, reading.reason if reading.value is None else ""


def sample_of(generated: Generated, spec: TaskSpec, sampling: Sampling) -> str | list[str]:
    """The answer of one sample as scores compare it; "" where there is none, which agrees with nothing."""
    value, _ = read_value(generated, spec, sampling)
    return "" if value is None else sorted(value) if isinstance(value, list) else value


def _kept(text: str, what: str, notes: list[str]) -> str:
    if len(text) > MOST_STORED:
        notes.append(f"{MOST_STORED:,} of {len(text):,} characters of the {what} are kept")
    return text[:MOST_STORED]


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def schema_of(spec: TaskSpec) -> dict[str, Any]:
    """The schema of an answer of the task type: an object with one property."""
    name, one = spec.kind.schema_name, spec.kind.schema(spec.choices)
    return {"type": "object", "properties": {name: one}, "required": [name], "additionalProperties": False}


def unwrapped(text: str, spec: TaskSpec) -> str:
    """The answer within a JSON object of that schema, as text; `text` itself where it is none."""
    try:
        # The digits of a number as they were written: 0.10 is no 0.1000000000000000055.
        found = json.loads(text, parse_float=str, parse_int=str)
        answer = found[spec.kind.schema_name]
    except (ValueError, TypeError, KeyError, RecursionError):
        return text
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
