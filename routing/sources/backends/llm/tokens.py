"""Log-probabilities of generated tokens, from servers that do not agree on what belongs to them, and those of
the labels among the alternatives at the first token of an answer.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routing.core.scores.base import ROUNDING
from routing.sources.source_context import TaskSpec

TOKENS_PER_MESSAGE = 64
"""More than any chat template puts around a message."""
TOKENS_PER_CALL = 1024
"""More than one puts before the first: some have a system message of their own, of several hundred tokens."""
DECIMALS = 6
LOWEST = -9999.0
"""What OpenAI and vLLM write for a probability of 0."""
# A special token such as <|im_end|>, </s>, <eos>, <end_of_turn> or <|endoftext|>.
_END = re.compile(
    r"\s*(?:<\|[^<>|]*\|>|</s>|<(?:eos|eot|end_of_turn|end|\uff5cend[^<>]*\uff5c)>|\[EOS\])\s*", re.IGNORECASE
)


@dataclass(frozen=True)
class Token:
    """One generated token; `top` are the most likely ones at its place, itself perhaps among them. Natural
    logarithms."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


def most_read(chat: Sequence[Mapping[str, str]], beside: Mapping[str, Any] | None = None) -> int:
    """The most tokens that a model reads of a chat: none is shorter than a byte. `beside` is what else is
    sent with it, such as tools and schemas, which templates and servers may write into the prompt.
    """
    messages = sum(len(message["content"].encode()) + TOKENS_PER_MESSAGE for message in chat)
    return messages + TOKENS_PER_CALL + (len(json.dumps(beside).encode()) if beside else 0)


def without_end(tokens: Sequence[Token], text: str) -> list[Token]:
    """The tokens without the one that ends the answer `text`: vLLM gives it, llama.cpp does not, and one more
    token of probability 1 would make short answers look surer."""
    if not tokens:
        return []
    last = tokens[-1].text
    ends = (not last and len(tokens) > 1) or (
        _END.fullmatch(last) and not text.rstrip().endswith(last.strip())
    )
    return list(tokens[:-1]) if ends else list(tokens)


def stored_logprobs(tokens: Sequence[Token]) -> list[float | str]:
    """One number per token, as JSON can hold it: NaN and plus infinity become text, which a score reads as
    what they are and refuses."""
    return [_stored(token.logprob) for token in tokens]


def _stored(value: float) -> float | str:
    if value == -math.inf:
        return LOWEST
    return round(value, DECIMALS) if math.isfinite(value) else str(value)


_CLOSED = re.compile(r"</(?:think|thinking|thought|reasoning)>|\[/THINK\]", re.IGNORECASE)
_JSON = re.compile(r'\{\s*"label"\s*:\s*"')


def label_logprobs(tokens: Sequence[Token], value: str, spec: TaskSpec) -> dict[str, float]:
    """Label key -> natural logarithm of its probability, of the labels among the alternatives at the token
    with which the answer begins. `value` is the key of the answer.

    Empty where that would be a guess: the answer does not begin with the label, two labels begin alike, or a
    number is unusable. Labels that are not among the alternatives are less likely than all of those, and
    left out.
    """
    place = _begins(tokens)
    if place is None:
        return {}
    token = tokens[place]
    found: dict[str, list[float]] = {}
    for text, logprob in {token.text: token.logprob, **dict(token.top)}.items():
        keys = _meant(text, spec)
        if len(keys) > 1 or not logprob <= ROUNDING:
            return {}
        for key in keys:
            found.setdefault(key, []).append(max(logprob, LOWEST))
    if _meant(token.text, spec) != {value}:
        return {}
    return {key: round(_log_sum(values), DECIMALS) for key, values in found.items()}


def _begins(tokens: Sequence[Token]) -> int | None:
    """Index of the token with which the answer begins: after the thinking, or within {"label": "..."}."""
    text = "".join(token.text for token in tokens)
    closed = [match.end() for match in _CLOSED.finditer(text)]
    start = closed[-1] if closed else 0
    while start < len(text) and text[start].isspace():
        start += 1
    inside = _JSON.match(text, start)
    start = inside.end() if inside else start
    offset = 0
    for index, token in enumerate(tokens):
        begins = offset + len(token.text) - len(token.text.lstrip())
        if begins >= start and token.text.strip():
            return index if begins == start else None
        offset += len(token.text)
    return None


def _meant(token: str, spec: TaskSpec) -> set[str]:
    """Keys of the labels that an answer beginning with this token may turn out to be."""
    start = token.strip().casefold()
    return {
        key
        for key, name in spec.choices
        if start and any(_fits(start, spelling.strip().casefold()) for spelling in (key, name))
    }


def _fits(start: str, spelling: str) -> bool:
    # '",' or "." may follow the label within its token.
    return bool(spelling) and (spelling.startswith(start) or start.rstrip("\"'}.,\n ") == spelling)


def _log_sum(values: Sequence[float]) -> float:
    highest = max(values)
    return min(0.0, highest + math.log(math.fsum(math.exp(value - highest) for value in values)))
