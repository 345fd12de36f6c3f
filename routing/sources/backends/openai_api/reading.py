"""The texts in a server's answer, wherever it puts them."""

from collections.abc import Mapping
from typing import Any

from routing.sources.backends.llm import Generated, Token


def generated_in(body: Mapping[str, Any]) -> list[Generated]:
    """The choices of a chat completion, in their order."""
    choices = sorted(body["choices"], key=_index)
    return [_generated(choice) for choice in choices]


def _index(choice: Mapping[str, Any]) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _generated(choice: Mapping[str, Any]) -> Generated:
    message = choice["message"]
    finish = choice.get("finish_reason")
    return Generated(
        text=_text(message.get("content")),
        # vLLM's name, the older one that llama.cpp and others keep, and the parts of a list.
        reasoning=_text(message.get("reasoning"))
        or _text(message.get("reasoning_content"))
        or _text(message.get("content"), "thinking"),
        finish_reason=finish if isinstance(finish, str) else "",
        refusal=_text(message.get("refusal")),
        tokens=_tokens(choice.get("logprobs")),
    )


def _text(content: Any, kind: str = "text") -> str:
    """Text that is given as such, or in parts of a kind."""
    if isinstance(content, str):
        return content if kind == "text" else ""
    if not isinstance(content, list):
        return ""
    parts = [part.get(kind) for part in content if isinstance(part, Mapping) and part.get("type") == kind]
    return "".join(part if isinstance(part, str) else _text(part) for part in parts)


def _tokens(logprobs: Any) -> list[Token] | None:
    """None where the server gives none, or not in a form that can be read."""
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if not isinstance(content, list) or not content:
        return None
    tokens = []
    for entry in content:
        pair = _pair(entry)
        if pair is None:
            return None
        top = entry.get("top_logprobs")
        alternatives = [_pair(other) for other in top] if isinstance(top, list) else []
        tokens.append(Token(*pair, tuple(other for other in alternatives if other is not None)))
    return tokens


def _pair(entry: Any) -> tuple[str, float] | None:
    if not isinstance(entry, Mapping):
        return None
    token, logprob = entry.get("token"), entry.get("logprob")
    if logprob is None:
        # Some servers write null for what is no number.
        logprob = float("nan")
    if not isinstance(token, str) or isinstance(logprob, bool) or not isinstance(logprob, int | float):
        return None
    return token, float(logprob)
