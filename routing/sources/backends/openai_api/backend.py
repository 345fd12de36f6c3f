"""The backend: an item becomes one call, or a few, and these its answer."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from threading import Event
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy, gettext_noop

from annotation import failures
from annotation.errors import InputError
from annotation.models import Item
from routing.core.costs import SECONDS, TOKENS_IN, TOKENS_OUT
from routing.core.scores.verbalized import prompts
from routing.sources.backends.base import Answer, Answered, Backend, BackendError, digest, shortened
from routing.sources.backends.concurrent import concurrently, in_flight
from routing.sources.backends.llm import Generated, Usage, answer_of, most_read
from routing.sources.backends.llm.answers import read_value
from routing.sources.backends.openai_api.completions import Chat, answer_body, generated_in, plain_body
from routing.sources.backends.openai_api.endpoint import Clock, Endpoint, ItemError, usage_of
from routing.sources.backends.openai_api.identity import Signature, served_model
from routing.sources.backends.openai_api.params import PARAMS, Params, read_params
from routing.sources.backends.params import Param
from routing.sources.prompts import Messages, prompt_digest, render
from routing.sources.source_context import SourceContext

IN_PARAMETER = failures.register("in_parameter", gettext_noop("%(why)s (parameter %(param)s)"))
NO_LIST = failures.register(
    "no_list_of_models",
    gettext_noop("The server gives no list of models now, as it did when the source was saved."),
)


class OpenAIApi(Backend):
    """Asks `url`/chat/completions for `model`; params.py names the rest."""

    title = gettext_lazy("A language model on a server (OpenAI-compatible)")
    params: ClassVar[tuple[Param, ...]] = PARAMS
    told_by = ("model", "url")
    prompted = True
    lists_models = True

    def __init__(self, params: dict[str, Any], context: SourceContext) -> None:
        self._params: Params = read_params(params, context.task)
        self._context = context

    @classmethod
    def for_a_try(cls, params: dict[str, Any], context: SourceContext) -> Backend:
        """With one repeat of a call at most: who waits before the page shall hear soon of a server that is
        away, which a run would wait for.
        """
        retries = min(read_params(params, context.task).retries, 1)
        return cls(params | {"retries": retries}, context)

    @property
    def default_score(self) -> str:
        return self._params.sampling.default_score

    @property
    def fields(self) -> frozenset[str]:
        return self._params.sampling.fields(self._context.task)

    @property
    def usage(self) -> frozenset[str]:
        return frozenset({TOKENS_IN, TOKENS_OUT, SECONDS})

    @property
    def in_flight(self) -> int:
        return in_flight(self._params.concurrency)

    def check(self) -> dict[str, Any]:
        """What the server's list of models says of the model. Raises InputError."""
        try:
            return served_model(self._params, self._context.api_key)
        except BackendError as error:
            raise InputError.of(error, where="url") from None

    def fingerprint(self) -> str:
        """Of the model as the server lists it now, the prompt, and the params that shape answers; not of the
        address, by which a model may be moved, nor of how fast and how often it is asked.

        Raises BackendError where the server cannot be asked or does not list the model.
        """
        try:
            served = served_model(self._params, self._context.api_key)
        except InputError as error:
            why = failures.part_of_error(error)
            raise IN_PARAMETER.error(raised_as=BackendError, why=why, param=error.where) from None
        if self._context.served and not served:
            # What a proxy answers while the server behind it is down (404, a page of HTML) looks like that.
            raise NO_LIST.error(raised_as=BackendError, permanent=False)
        return digest(
            backend="openai_api",
            model=self._params.model,
            served=served,
            prompt=prompt_digest(self._context.prompt, self._context.task),
            sampling=self._params.sampling.shaping(),
            extra=dict(self._params.extra),
        )

    def most_usage(self, item: Item) -> Mapping[str, Decimal]:
        """Bounds: no token is shorter than a byte, no server reads a prompt more often than it is sent one
        call for each text, and none generates more than it is allowed to. Of attempts that failed nobody
        knows what they used."""
        sampling, longest = self._params.sampling, self._params.max_tokens
        try:
            read = most_read(self.messages(item).as_chat(), self._beside)
        except InputError:
            return {TOKENS_IN: Decimal(0), TOKENS_OUT: Decimal(0), SECONDS: Decimal(0)}  # it is not sent
        answers = sampling.generations - sampling.verbalized
        # The question about an answer holds the question and the answer. That is read from as many tokens as
        # it was written in, or a few more where a server would have written it otherwise.
        asked = most_read([{"content": part} for part in prompts("", "")]) + read + 2 * longest
        return {
            TOKENS_IN: Decimal(answers * read + sampling.verbalized * asked),
            TOKENS_OUT: Decimal(sampling.generations * longest),
            SECONDS: Decimal(str(self._params.total_timeout)),
        }

    def predict(self, items: Iterable[Item]) -> Iterator[list[Answered]]:
        endpoint = Endpoint(self._params, self._context.api_key, self._context.task)
        signature = Signature(self._params.model, self._context.served, self._params.answers_as)

        def ask(item: Item, stopped: Event) -> Answer:
            try:
                messages = self.messages(item)
            except InputError as error:
                return unsent(error)
            return ItemCalls(self._params, self._context, endpoint, signature, stopped).answer(messages)

        try:
            yield from concurrently(items, ask, self._params.concurrency)
        finally:
            endpoint.close()

    @cached_property
    def _beside(self) -> dict[str, Any]:
        """What is sent with every question."""
        return answer_body(self._params, self._context.task, ())

    def messages(self, item: Item) -> Messages:
        """What is asked about an item. Raises InputError where it cannot be asked about."""
        return render(self._context.prompt, self._context.task, item)


def unsent(error: InputError) -> Answer:
    """The answer for an item that cannot be asked about, which costs nothing."""
    return Answer(None, shortened(error.message), tokens_in=0, tokens_out=0, latency_ms=0.0)


class ItemCalls:
    """One call for the answer, with its samples; and where they are wanted, one for samples at a temperature
    of their own and one that asks how sure the model is. More only where a server gives fewer texts than it
    was asked for.
    """

    def __init__(
        self, params: Params, context: SourceContext, endpoint: Endpoint, signature: Signature, stopped: Event
    ) -> None:
        self._params, self._spec = params, context.task
        self._endpoint, self._signature, self._stopped = endpoint, signature, stopped
        self._clock = Clock(params.total_timeout)
        self._usage = Usage()
        self._notes: list[str] = []
        self._served_model = self._served_revision = ""

    def answer(self, messages: Messages) -> Answer:
        """Raises BackendError where no item can be answered, StoppedError where nobody waits any more."""
        sampling, chat = self._params.sampling, messages.as_chat()
        apart = sampling.samples > 1 and sampling.sample_temperature is not None
        texts = self._drawn(chat, 1 if apart else sampling.samples, "samples")
        if isinstance(texts, str):
            usage = self._usage
            # Everything that was tried: none of it is known to have been for nothing.
            spent = self._params.total_timeout - max(0.0, self._clock.left)
            return Answer(
                None,
                shortened(texts),
                tokens_in=usage.tokens_in,
                tokens_out=usage.tokens_out,
                latency_ms=spent * 1000,
            )
        samples = texts if sampling.samples > 1 else []
        if apart:
            samples = self._apart(chat)
        return answer_of(
            texts[0],
            spec=self._spec,
            sampling=sampling,
            verbalized=self._replies(messages, texts[0]) if sampling.verbalized else [],
            samples=samples,
            usage=self._usage,
            notes=self._notes,
            latency_ms=self._clock.seconds * 1000,
            served_model=self._served_model,
            served_revision=self._served_revision,
        )

    def _apart(self, chat: Chat) -> list[Generated]:
        sampling = self._params.sampling
        drawn = self._drawn(
            chat,
            sampling.samples,
            "samples",
            logprobs=False,
            temperature=sampling.sample_temperature,
            shift=1,
        )
        if isinstance(drawn, str):
            self._notes.append(f"no samples: {drawn}")
            return []
        return drawn

    def _replies(self, messages: Messages, said: Generated) -> list[str]:
        """What the model says when it is asked how sure it is: not of an answer that cannot be used."""
        if read_value(said, self._spec, self._params.sampling)[0] is None:
            return []
        system, user = prompts(messages.user, said.spoken)
        chat = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        drawn = self._drawn(chat, self._params.sampling.verbalized, "stated confidences", plain=True)
        if isinstance(drawn, str):
            self._notes.append(f"no stated confidences: {drawn}")
            return []
        return [reply.text for reply in drawn]

    def _drawn(
        self,
        chat: Chat,
        count: int,
        what: str,
        *,
        plain: bool = False,
        logprobs: bool = True,
        temperature: float | None = None,
        shift: int = 0,
    ) -> list[Generated] | str:
        """`count` texts, or why there is none. Fewer, with a note, where a further call has failed."""
        texts: list[Generated] = []
        for call in range(count):
            wanted, own = count - len(texts), shift + call * count
            body = (
                plain_body(self._params, chat, count=wanted, temperature=temperature, shift=own)
                if plain
                else answer_body(
                    self._params,
                    self._spec,
                    chat,
                    count=wanted,
                    logprobs=logprobs and not call,
                    temperature=temperature,
                    shift=own,
                )
            )
            try:
                found = self._call(body)
            except ItemError as error:
                self._usage += error.usage
                if not texts:
                    return error.reason
                self._notes.append(f"{len(texts)} of {count} {what}: {error.reason}")
                break
            texts += found[:wanted]
            if len(texts) >= count:
                break
        return texts

    def _call(self, body: Mapping[str, Any]) -> list[Generated]:
        found = self._endpoint.call(body, self._clock, self._stopped)
        self._served_model = self._signature.check(found.get("model")) or self._served_model
        revision = found.get("system_fingerprint")
        self._served_revision = revision if isinstance(revision, str) else self._served_revision
        self._usage += usage_of(found)
        return generated_in(found)
