"""Log-probabilities of the labels, read from the alternatives at the first token of an answer."""

import math
import re
from collections.abc import Sequence

from routing.core.scores.base import ROUNDING
from routing.sources.backends.llm.tokens import DECIMALS, LOWEST, Token
from routing.sources.context import TaskSpec

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
