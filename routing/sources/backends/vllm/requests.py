"""What is asked of the engine for one item, and how what it gave becomes the answer.

An item is up to three requests: the answer; the samples, apart from it where they have a temperature of their
own; and, once there is an answer, how sure the model is of it.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_noop

from annotation import failures
from routing.core.scores.verbalized import prompts
from routing.sources.backends.base import Answer, BackendError, named
from routing.sources.backends.llm import Generated, Sampling, Token, Usage, answer_of, schema_of
from routing.sources.backends.llm.answers import read_value
from routing.sources.source_context import TaskSpec

Chat = list[dict[str, str]]
ANSWER, SAMPLES, VERBALIZED = "answer", "samples", "verbalized"


@dataclass(frozen=True)
class Request:
    """One request of an item: its chat, and what its SamplingParams differ in from the model's defaults."""

    part: str
    chat: Chat
    params: Mapping[str, Any] = field(hash=False)


@dataclass
class ItemRequests:
    """What has been asked and answered for one item."""

    chat: Chat
    question: str
    spec: TaskSpec
    sampling: Sampling
    label_tokens: Sequence[int] = ()
    usage: Usage = field(default_factory=Usage)
    open: int = 0
    _got: dict[str, list[Generated]] = field(default_factory=dict)
    _refused: dict[str, str] = field(default_factory=dict)

    def first(self) -> list[Request]:
        """What can be asked at once."""
        sampling = self.sampling
        apart = sampling.samples > 1 and sampling.sample_temperature is not None
        requests = [
            Request(ANSWER, self.chat, self._params(1 if apart else sampling.samples, self.label_tokens))
        ]
        if apart:
            drawn = self._params(sampling.samples) | {
                "temperature": sampling.sample_temperature,
                "logprobs": None,
            }
            requests.append(Request(SAMPLES, self.chat, drawn))
        return requests

    def got(self, part: str, outputs: list[Generated], tokens_in: int, tokens_out: int) -> list[Request]:
        """Take in what one request gave; what is to be asked after it."""
        self._got[part] = outputs
        self.usage += Usage(tokens_in, tokens_out)
        answer = outputs[0]
        if part != ANSWER or not self.sampling.verbalized:
            return []
        if read_value(answer, self.spec, self.sampling)[0] is None:
            return []  # an answer that cannot be used
        system, user = prompts(self.question, answer.spoken)
        chat = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        params = self._params(self.sampling.verbalized)
        for name in ("structured_outputs", "logprobs"):
            params.pop(name, None)
        return [Request(VERBALIZED, chat, params)]

    def refused(self, part: str, why: str) -> None:
        """Take in that the engine did not take one request."""
        self._refused[part] = f"the engine refused the {part}: {why}"[:200]

    def answer(self, **served: Any) -> Answer:
        """The answer, once nothing is open any more."""
        if ANSWER in self._refused:
            return Answer(
                None, self._refused[ANSWER], tokens_in=self.usage.tokens_in, tokens_out=self.usage.tokens_out
            )
        drawn = self._got.get(SAMPLES) or (self._got[ANSWER] if self.sampling.samples > 1 else [])
        return answer_of(
            self._got[ANSWER][0],
            spec=self.spec,
            sampling=self.sampling,
            usage=self.usage,
            samples=drawn,
            verbalized=[one.spoken for one in self._got.get(VERBALIZED, [])],
            notes=list(self._refused.values()),
            **served,
        )

    def _params(self, n: int, label_tokens: Sequence[int] = ()) -> dict[str, Any]:
        sampling = self.sampling
        named = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "min_p": sampling.min_p,
            "presence_penalty": sampling.presence_penalty,
        }
        params: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        params |= {
            "n": n,
            "max_tokens": sampling.max_tokens,
            # Of the item's own, so that neither its neighbours in a batch nor their order changes its answer.
            # The same as through a server, which is sent it with the call.
            "seed": sampling.seed_for("\n".join(message["content"] for message in self.chat)),
        }
        if sampling.logprobs and label_tokens:
            params["logprob_token_ids"] = list(label_tokens)
        elif sampling.logprobs:
            params["logprobs"] = sampling.top_logprobs
        if structured := _structured(sampling, self.spec):
            params["structured_outputs"] = structured
        return params


def _structured(sampling: Sampling, spec: TaskSpec) -> dict[str, Any]:
    makers: dict[str, Callable[[], dict[str, Any]]] = {
        "none": dict,
        "choice": lambda: {"choice": [key for key, _ in spec.choices]},
        "json": lambda: {"json": dict(sampling.schema) if sampling.schema is not None else schema_of(spec)},
        "regex": lambda: {"regex": sampling.regex},
    }
    return makers[sampling.structured]()


# What vLLM takes at most.
MOST_LABEL_TOKENS = 128

NO_TEMPLATE = failures.register(
    "chat_template_failed",
    gettext_noop(
        "The chat template of the model failed (%(error)s). The backend needs a model that was trained to "
        "chat."
    ),
)


def prompt_tokens(tokenizer: Any, chat: Sequence[Mapping[str, str]], options: Mapping[str, Any]) -> list[int]:
    """Ids of the tokens of a chat under the model's own template. Raises BackendError where it has none."""
    try:
        found = tokenizer.apply_chat_template(
            list(chat), tokenize=True, add_generation_prompt=True, return_dict=False, **options
        )
    except Exception as error:
        raise NO_TEMPLATE.error(raised_as=BackendError, error=named(error, 260)) from error
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
