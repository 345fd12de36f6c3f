"""Log-probabilities of generated tokens, from servers that do not agree on what belongs to them."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
