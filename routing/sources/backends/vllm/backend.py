"""The `vllm` backend: a model in the worker's own process (docs/backends.md)."""

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

from django.utils.translation import gettext as _, gettext_lazy

from annotation.errors import InputError
from annotation.models import Item
from routing.core.costs import SECONDS, TOKENS_IN, TOKENS_OUT
from routing.core.scores.verbalized import prompts
from routing.sources.backends.base import Answer, Answered, Backend, BackendError, digest
from routing.sources.backends.llm import SAMPLING, most_read, sampling_of
from routing.sources.backends.llm.params import MODEL, PRESET
from routing.sources.backends.params import (
    CONCURRENCY,
    Choice,
    Json,
    Number,
    Param,
    Part,
    Text,
    Whole,
    read_values,
)
from routing.sources.backends.vllm.engine import Engine, EngineSettings, Finished, engine_for
from routing.sources.backends.vllm.models import model_files
from routing.sources.backends.vllm.requests import (
    ItemRequests,
    Request,
    generated,
    label_tokens,
    prompt_tokens,
)
from routing.sources.prompts import prompt_digest, render
from routing.sources.source_context import SourceContext

ENGINE = Part(gettext_lazy("The engine"), gettext_lazy("revision, memory, length"))
ENGINE_PARAMS: tuple[Param, ...] = (
    Text(
        "revision",
        gettext_lazy("Revision"),
        gettext_lazy("Of a model of the Hugging Face Hub."),
        part=ENGINE,
        row="engine",
    ),
    Choice(
        "dtype",
        gettext_lazy("Numbers it reckons with"),
        choices=(
            ("auto", gettext_lazy("As the model is stored")),
            *((name, name) for name in ("bfloat16", "float16", "float32")),
        ),
        part=ENGINE,
        row="engine",
    ),
    Whole(
        "max_model_len",
        gettext_lazy("Most tokens of prompt and answer"),
        gettext_lazy("Empty: what the model can."),
        low=16,
        high=10_000_000,
        part=ENGINE,
        row="engine",
    ),
    Number(
        "gpu_memory_utilization",
        gettext_lazy("Share of the GPU's memory"),
        gettext_lazy("Empty: 0.9."),
        low=0.05,
        high=1,
        default=0.9,
        part=ENGINE,
        row="engine",
    ),
    Json(
        "template_options",
        gettext_lazy("Options of the chat template"),
        gettext_lazy('Such as {"enable_thinking": false}.'),
        part=ENGINE,
        row="engine",
    ),
)
# Finished items are gathered for so long, so that they share a commit; others are being worked on meanwhile.
GATHER_SECONDS = 0.25

_numbers = itertools.count(1)


@dataclass
class _Open:
    item: Item
    requests: ItemRequests
    began: float


class Vllm(Backend):
    """Params as for `openai_api` where they are about how a model generates, and those of `ENGINE_PARAMS`."""

    title = gettext_lazy("A language model in the worker (vLLM)")
    params = (MODEL, PRESET, *SAMPLING, *ENGINE_PARAMS, replace(CONCURRENCY, high=4096, default=256))
    told_by = ("model",)
    prompted = True
    in_process = True
    usage: ClassVar[frozenset[str]] = frozenset({TOKENS_IN, TOKENS_OUT, SECONDS})

    def __init__(self, params: dict[str, Any], context: SourceContext | None = None) -> None:
        values = read_values(self.params, params)
        self.context = context or SourceContext()
        self.files = model_files(values["model"], values["revision"])
        self.dtype: str = values["dtype"]
        self.max_model_len: int | None = values["max_model_len"]
        self.memory: float = values["gpu_memory_utilization"]
        self.concurrency: int = values["concurrency"]
        self.template_options: dict[str, Any] = values["template_options"] or {}
        if refused := sorted(set(self.template_options) & {"tokenize", "return_dict", "chat_template"}):
            raise InputError(
                _("%(refused)s cannot be set here.") % {"refused": refused[0]}, where="template_options"
            )
        sampling = sampling_of(values, self.context.task)
        # Always seeded: the same item has to get the same answer in whatever batch it comes.
        self.sampling = replace(sampling, seed=sampling.seed or 0)

    @property
    def fields(self) -> frozenset[str]:
        return self.sampling.fields(self.context.task)

    @property
    def default_score(self) -> str:
        return self.sampling.default_score

    @property
    def in_flight(self) -> int:
        """More than the engine works on at a time, so that it need not wait for what is being stored."""
        return self.concurrency + max(1, self.concurrency // 4)

    def check(self) -> dict[str, Any]:
        """The files are there. The engine is not started: this may be a web server, which has none."""
        return {"model": self.files.name, "revision": self._identity}

    def fingerprint(self) -> str:
        return digest(
            backend="vllm",
            model=self._identity,
            dtype=self.dtype,
            max_model_len=self.max_model_len,
            template_options=self.template_options,
            sampling=self.sampling.shaping(),
            prompt=prompt_digest(self.context.prompt, self.context.task),
        )

    def most_usage(self, item: Item) -> Mapping[str, Decimal]:
        """No token is less than a byte of UTF-8; the frame takes a few more. What a GPU's time for one item
        comes to is not known."""
        try:
            chat = render(self.context.prompt, self.context.task, item).as_chat()
        except InputError:
            return {TOKENS_IN: Decimal(0), TOKENS_OUT: Decimal(0)}  # it is not sent
        sent = most_read(chat, self.template_options)
        longest = self.sampling.max_tokens
        # Read again where samples are drawn apart, and in the question about the answer, together with that.
        read = sent * (2 if self.sampling.sample_temperature is not None else 1)
        if self.sampling.verbalized:
            read += sent + most_read([{"content": part} for part in prompts("", "")]) + 2 * longest
        return {TOKENS_IN: Decimal(read), TOKENS_OUT: Decimal(longest * self.sampling.generations)}

    def predict(self, items: Iterable[Item]) -> Iterator[list[Answered]]:
        with engine_for(self._engine_settings()) as engine:
            run = _Run(self, engine)
            try:
                yield from run.groups(iter(items))
            finally:
                run.abort()

    @cached_property
    def _identity(self) -> str:
        return self.files.identity()

    def _engine_settings(self) -> EngineSettings:
        return EngineSettings(
            path=self.files.path,
            revision=self.files.revision,
            identity=self._identity,
            dtype=self.dtype,
            max_model_len=self.max_model_len,
            gpu_memory_utilization=self.memory,
            max_num_seqs=self.concurrency,
        )


class _Run:
    """One pass over items. The engine keeps working on the others while a group is being stored."""

    def __init__(self, backend: Vllm, engine: Engine) -> None:
        self.backend, self.engine = backend, engine
        self._prefix = f"{next(_numbers)}-"
        self._ids = itertools.count()
        self._asked: dict[str, tuple[_Open, Request, int]] = {}
        labels = label_tokens(engine.tokenizer, backend.context.task) if backend.sampling.logprobs else []
        self._labels = labels if "label_logprobs" in backend.fields else []

    def groups(self, items: Iterator[Item]) -> Iterator[list[Answered]]:
        out, last = 0, time.monotonic()
        more = True
        failure: BackendError | None = None
        while True:
            fresh: list[Item] = []
            while more and out + len(fresh) < self.backend.in_flight:
                item = next(items, None)
                if item is None:
                    more = False
                else:
                    fresh.append(item)
            out += len(fresh)
            group = self._start(fresh)
            began = time.monotonic()
            while self._asked and (not group or time.monotonic() < began + GATHER_SECONDS):
                try:
                    left = began + GATHER_SECONDS - time.monotonic() if group else None
                    done = self.engine.take(left)
                except BackendError as error:
                    failure = error
                    break
                finished = self._took(done) if done is not None else []
                if finished and not group:
                    began = time.monotonic()
                group += finished
            if not group:
                break
            out -= len(group)
            now = time.monotonic()
            share, last = (now - last) * 1000 / len(group), now
            yield [(item, replace(answer, busy_ms=share)) for item, answer in group]
            if failure is not None:
                break
        if failure is not None:
            raise failure

    def abort(self) -> None:
        if self._asked:
            self.engine.abort(list(self._asked))

    def _start(self, items: list[Item]) -> list[Answered]:
        """Ask for `items`, the longest prompts first, so that those of like length share their steps. Returns
        what can be answered without the model."""
        answered, begun = [], []
        for item in items:
            try:
                messages = render(self.backend.context.prompt, self.backend.context.task, item)
            except InputError as error:
                answered.append((item, Answer(None, error.message[:200])))
                continue
            chat = messages.as_chat()
            requests = ItemRequests(
                chat, messages.user, self.backend.context.task, self.backend.sampling, self._labels
            )
            begun.append((_Open(item, requests, time.monotonic()), self._tokens(chat)))
        begun.sort(key=lambda pair: len(pair[1]), reverse=True)
        limit = self.engine.max_model_len
        for one, tokens in begun:
            if len(tokens) >= limit:
                problem = (
                    f"the prompt has {len(tokens):,} tokens, and the model reads {limit:,} with its answer"
                )
                answered.append((one.item, Answer(None, problem)))
                continue
            for request in one.requests.first():
                self._ask(one, request, tokens)
        return answered

    def _tokens(self, chat: list[dict[str, str]]) -> list[int]:
        return prompt_tokens(self.engine.tokenizer, chat, self.backend.template_options)

    def _ask(self, one: _Open, request: Request, tokens: list[int]) -> None:
        key = f"{self._prefix}{next(self._ids)}"
        self.engine.add(key, tokens, request.params)
        self._asked[key] = (one, request, len(tokens))
        one.requests.open += 1

    def _took(self, done: Finished) -> list[Answered]:
        """Take in what the engine has done; the item, where it is done with that."""
        if (known := self._asked.pop(done.key, None)) is None:
            return []  # of a pass that was given up
        one, request, tokens_in = known
        one.requests.open -= 1
        if done.refused:
            one.requests.refused(request.part, done.refused)
        else:
            texts = [generated(output, self.engine.end_tokens) for output in done.outputs]
            tokens_out = sum(len(output.token_ids) for output in done.outputs)
            for after in one.requests.got(request.part, texts, tokens_in, tokens_out):
                self._ask(one, after, self._tokens(after.chat))
        return [] if one.requests.open else [(one.item, self._answer(one))]

    def _answer(self, one: _Open) -> Answer:
        return one.requests.answer(
            latency_ms=(time.monotonic() - one.began) * 1000,
            served_model=self.backend.files.name,
            served_revision=self.backend.check()["revision"],
        )
