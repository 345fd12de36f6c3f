"""What is sent to ask for chat completions, and the texts in what a server answers, wherever it puts them."""

from collections.abc import Mapping, Sequence
from typing import Any

from routing.sources.backends.llm import Generated, Token, schema_of
from routing.sources.backends.openai_api.params import TOKEN_LIMITS, Params
from routing.sources.source_context import TaskSpec

Chat = Sequence[Mapping[str, str]]
FORMS = frozenset({"response_format", "structured_outputs", "grammar"})
"""Under what servers are told of a form that answers have to keep to."""
OPTIONAL = ("temperature", "top_p", "top_k", "min_p", "presence_penalty")


def answer_body(
    params: Params,
    spec: TaskSpec,
    chat: Chat,
    *,
    count: int = 1,
    logprobs: bool = True,
    temperature: float | None = None,
    shift: int = 0,
) -> dict[str, Any]:
    """Asks for `count` answers to the last message. `shift` gives a further call of the item its own seed."""
    sampling = params.sampling
    body = plain_body(params, chat, count=count, temperature=temperature, shift=shift)
    if sampling.logprobs and logprobs:
        body |= {"logprobs": True, "top_logprobs": sampling.top_logprobs}
    if sampling.structured == "choice":
        body["structured_outputs"] = {"choice": [key for key, _ in spec.choices]}
    elif sampling.structured == "regex":
        body["structured_outputs"] = {"regex": sampling.regex}
    elif sampling.structured == "json":
        schema = dict(sampling.schema) if sampling.schema is not None else schema_of(spec)
        named = {"name": "answer", "strict": True, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    # Servers differ in how they want a form to be told: what `extra` says of it goes in place of ours.
    return {**body, **params.extra}


def plain_body(
    params: Params, chat: Chat, *, count: int = 1, temperature: float | None = None, shift: int = 0
) -> dict[str, Any]:
    """The same without log-probabilities and without a form that answers are held to."""
    sampling = params.sampling
    body: dict[str, Any] = {"model": params.model, "messages": list(chat)}
    if not any(name in params.extra for name in TOKEN_LIMITS):
        body["max_tokens"] = sampling.max_tokens
    body |= {name: value for name in OPTIONAL if (value := getattr(sampling, name)) is not None}
    if temperature is not None:
        body["temperature"] = temperature
    seed = sampling.seed_for("\n".join(message["content"] for message in chat))
    if seed is not None:
        body["seed"] = (seed + shift) % 2**31
    if count > 1:
        body["n"] = count
    return {**body, **{name: value for name, value in params.extra.items() if name not in FORMS}}


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
    try:
        return token, float(logprob)
    except OverflowError:  # a whole number of hundreds of digits
        return None
