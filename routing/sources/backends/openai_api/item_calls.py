"""The calls for one item, and their answer."""

from collections.abc import Mapping
from threading import Event
from typing import Any

from routing.core.scores.verbalized import prompts
from routing.sources.backends.base import Answer, shortened
from routing.sources.backends.llm import Generated, Usage, answer_of
from routing.sources.backends.llm.answers import read_value
from routing.sources.backends.openai_api.body import Chat, answer_body, plain_body
from routing.sources.backends.openai_api.endpoint import Clock, Endpoint, ItemError, usage_of
from routing.sources.backends.openai_api.identity import Signature
from routing.sources.backends.openai_api.params import Params
from routing.sources.backends.openai_api.reading import generated_in
from routing.sources.context import SourceContext
from routing.sources.prompts import Messages


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
