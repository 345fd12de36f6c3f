"""The backend: an item becomes one call, or a few, and these its answer."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from threading import Event
from typing import Any, ClassVar

from django.utils.translation import gettext as _, gettext_lazy

from annotation.errors import InputError
from annotation.models import Item
from routing.core.costs import SECONDS, TOKENS_IN, TOKENS_OUT
from routing.core.scores.verbalized import prompts
from routing.sources.backends.base import Answer, Answered, Backend, BackendError, digest, shortened
from routing.sources.backends.concurrent import concurrently, in_flight
from routing.sources.backends.llm import most_read
from routing.sources.backends.openai_api.body import answer_body
from routing.sources.backends.openai_api.endpoint import Endpoint
from routing.sources.backends.openai_api.identity import Signature, served_model
from routing.sources.backends.openai_api.item_calls import ItemCalls
from routing.sources.backends.openai_api.params import PARAMS, Params, read_params
from routing.sources.backends.params import Param
from routing.sources.context import SourceContext
from routing.sources.prompts import Messages, prompt_digest, render


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
            raise InputError(error.message, where="url") from None

    def fingerprint(self) -> str:
        """Of the model as the server lists it now, the prompt, and the params that shape answers; not of the
        address, by which a model may be moved, nor of how fast and how often it is asked.

        Raises BackendError where the server cannot be asked or does not list the model.
        """
        try:
            served = served_model(self._params, self._context.api_key)
        except InputError as error:
            raise BackendError(f"{error.message} (parameter {error.where})") from None
        if self._context.served and not served:
            # What a proxy answers while the server behind it is down (404, a page of HTML) looks like that.
            raise BackendError(
                _("The server gives no list of models now, as it did when the source was saved."),
                permanent=False,
            )
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
