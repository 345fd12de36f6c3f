"""Bodies of OpenAI-compatible answers as real servers shape them."""

from collections.abc import Mapping, Sequence
from typing import Any

END = "<|im_end|>"


def model_list(models: Sequence[str]) -> dict[str, Any]:
    """What GET /models says, as vLLM does."""
    entries = [
        {"id": name, "object": "model", "owned_by": "vllm", "root": f"org/{name}", "max_model_len": 4096}
        for name in models
    ]
    return {"object": "list", "data": entries}


def completion(
    text: str | None = "ok",
    *,
    asked: Mapping[str, Any] | None = None,
    model: str = "scripted",
    flavour: str = "vllm",
    reasoning: str | None = None,
    reasoning_field: str = "reasoning",
    finish_reason: str = "stop",
    tokens: Sequence[tuple[str, float]] | None = None,
    top: Sequence[Mapping[str, float]] | None = None,
    usage: Mapping[str, int] | bool | None = True,
    texts: Sequence[str] | None = None,
    **message: Any,
) -> dict[str, Any]:
    """A chat completion for the request `asked`.

    `tokens` are (token, log-probability) of the answer, by default its words at -0.1 each; `top` the
    alternatives at each place, token -> log-probability. `texts` are the answers of several choices; `usage`
    False leaves it out. What the flavour does: vLLM's log-probabilities end with the end token; llama.cpp's
    do not, and are null unless alternatives were asked for; transformers has none.
    """
    asked = asked or {}
    answers = texts if texts is not None else [text] * int(asked.get("n") or 1)
    choices = []
    for index, answer in enumerate(answers):
        words = list(tokens) if tokens is not None else [(word, -0.1) for word in _words(answer)]
        said = {"role": "assistant", "content": answer, **message}
        if reasoning is not None:
            said[reasoning_field] = reasoning
        choices.append(
            {
                "index": index,
                "message": said,
                "finish_reason": finish_reason,
                "logprobs": _logprobs(words, top, asked, flavour),
            }
        )
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": model,
        "choices": choices,
    }
    if usage is True:
        thought = len(_words(reasoning)) * len(answers)
        out = sum(len(_words(answer)) for answer in answers) + len(answers) + thought
        usage = {"prompt_tokens": 10, "completion_tokens": out, "total_tokens": 10 + out}
    if usage:
        body["usage"] = dict(usage)
    return body


def _words(text: str | None) -> list[str]:
    return [word if not index else f" {word}" for index, word in enumerate((text or "").split())]


def _logprobs(
    words: list[tuple[str, float]],
    top: Sequence[Mapping[str, float]] | None,
    asked: Mapping[str, Any],
    flavour: str,
) -> dict[str, Any] | None:
    wanted = asked.get("logprobs") is True
    if flavour == "llama.cpp":
        wanted = wanted and bool(asked.get("top_logprobs"))
    if flavour == "transformers" or not wanted:
        return None
    if flavour == "vllm":
        words = [*words, (END, -0.01)]
    alternatives = [*(top or ())] + [{}] * len(words)
    return {
        "content": [
            {
                "token": token,
                "logprob": logprob,
                "bytes": list(token.encode()),
                "top_logprobs": [
                    {"token": name, "logprob": value}
                    for name, value in {token: logprob, **alternatives[place]}.items()
                ],
            }
            for place, (token, logprob) in enumerate(words)
        ]
    }


def failure(message: str, *, kind: str = "invalid_request_error", code: str | None = None) -> dict[str, Any]:
    """The body of a refusal."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
