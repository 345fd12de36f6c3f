"""Chats as tokens of a model, and what an engine generated in the form that every backend's answers have."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from routing.sources.backends.base import BackendError
from routing.sources.backends.llm import Generated, Token
from routing.sources.context import TaskSpec

# What vLLM takes at most.
MOST_LABEL_TOKENS = 128


def prompt_tokens(tokenizer: Any, chat: Sequence[Mapping[str, str]], options: Mapping[str, Any]) -> list[int]:
    """Ids of the tokens of a chat under the model's own template. Raises BackendError where it has none."""
    try:
        found = tokenizer.apply_chat_template(
            list(chat), tokenize=True, add_generation_prompt=True, return_dict=False, **options
        )
    except Exception as error:
        raise BackendError(
            f"The chat template of the model failed ({type(error).__name__}: {error}"[:300]
            + "). The backend needs a model that was trained to chat."
        ) from error
    return [int(token) for token in found]


def label_tokens(tokenizer: Any, spec: TaskSpec) -> list[int]:
    """Ids of the tokens with which an answer that is a label begins, a blank before it or not.

    Empty where they do not tell the labels apart: two labels begin alike, or there are too many.
    """
    if not spec.kind.one_choice:
        return []
    begin: dict[int, str] = {}
    for key, name in spec.choices:
        for text in {key, name, f" {key}", f" {name}"}:
            ids = tokenizer.encode(text, add_special_tokens=False)
            first = next((one for one in ids if tokenizer.decode([one]).strip()), None)
            if first is None or begin.setdefault(int(first), key) != key:
                return []
    return sorted(begin) if len(begin) <= MOST_LABEL_TOKENS else []


def generated(output: Any, end_tokens: Collection[int]) -> Generated:
    """An output of vLLM. Its tokens come without the one that ended it."""
    tokens = None
    if output.logprobs is not None:
        tokens = [
            _token(token, choices)
            for token, choices in zip(output.token_ids, output.logprobs, strict=False)
            if token not in end_tokens
        ]
    return Generated(text=output.text, finish_reason=str(output.finish_reason or ""), tokens=tokens)


def _token(token: int, choices: Mapping[int, Any]) -> Token:
    top = tuple(
        (str(choice.decoded_token or ""), float(choice.logprob))
        for choice in choices.values()
        if not math.isnan(choice.logprob)
    )
    own = choices[token]
    return Token(str(own.decoded_token or ""), float(own.logprob), top)
