"""What is sent to ask for completions."""

from collections.abc import Mapping, Sequence
from typing import Any

from routing.sources.backends.llm import schema_of
from routing.sources.backends.openai_api.params import TOKEN_LIMITS, Params
from routing.sources.context import TaskSpec

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
