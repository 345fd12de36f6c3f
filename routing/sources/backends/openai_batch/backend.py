"""The backend `openai_batch` (docs/backends.md): what `openai_api` asks, in files."""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy, gettext_noop

from annotation import failures
from annotation.errors import InputError
from annotation.models import Item
from routing.core.costs import TOKENS_IN, TOKENS_OUT
from routing.sources.backends.base import (
    Answer,
    Answered,
    Backend,
    BackendError,
    digest,
    in_chunks,
    shortened,
)
from routing.sources.backends.llm import answer_of
from routing.sources.backends.openai_api.backend import OpenAIApi, unsent
from routing.sources.backends.openai_api.completions import answer_body, generated_in
from routing.sources.backends.openai_api.endpoint import usage_of
from routing.sources.backends.openai_api.identity import Signature
from routing.sources.backends.openai_api.params import ANSWERS_AS, ASKED, CALLS, EXTRA, TIMES
from routing.sources.backends.openai_batch.lines import Result, read_results, request_line
from routing.sources.backends.openai_batch.server import Batch, BatchServer
from routing.sources.backends.openai_batch.store import ResultStore
from routing.sources.backends.params import BATCH_SIZE, SPEED, URL, Choice, Param, Whole, read_values
from routing.sources.prompts import prompt_digest
from routing.sources.source_context import SourceContext

OWN: tuple[Param, ...] = (
    replace(BATCH_SIZE, high=50_000, default=5_000),
    Whole(
        "poll_seconds",
        gettext_lazy("Seconds between looks whether it is done"),
        gettext_lazy("Empty: 30."),
        low=1,
        high=3600,
        default=30,
        part=SPEED,
    ),
    Choice("window", choices=(("24h", "24 h"),), in_form=False),
)
LARGEST_FILE = 100 * 2**20
ROUNDS = 3
GROUP = 500
# While it waits, how often the caller is asked whether to go on: a pause should not take as long as a look.
LOOK_SECONDS = 2
# Never asked: what the params of a source without a server are read with.
NOWHERE = "https://server.invalid/v1"

NOT_IN_FILES = failures.register(
    "not_in_batch_files",
    gettext_noop(
        "%(count)s items have no answer in the files that were read. Write their calls "
        "with `manage.py write_batch`, have them answered, and read the file with "
        "`manage.py read_batch`."
    ),
)
BATCH_REFUSED = failures.register(
    "batch_refused", gettext_noop("The server refused the batch %(id)s: %(problem)s.")
)
UNSAID = gettext_noop("it does not say why")
BATCH_CANCELLED = failures.register(
    "batch_cancelled",
    gettext_noop(
        "The batch %(id)s was cancelled at the server. What it had answered is stored; "
        "start the job again to have the rest asked for."
    ),
)


class OpenAIBatch(OpenAIApi):
    """Params of `openai_api`, and those in OWN. Without `url` nothing is sent: answers then come from files
    that were read by hand."""

    title = gettext_lazy("The same in batch files, hours later and often cheaper")
    params = (
        *(replace(param, required=False) if param is URL else param for param in ASKED),
        *OWN,
        EXTRA,
        ANSWERS_AS,
        *(replace(param, in_form=False) for param in (*CALLS, *TIMES)),
    )
    # A batch at a server is found again by whoever asks next.
    never_lost = True

    usage = frozenset({TOKENS_IN, TOKENS_OUT})

    def __init__(self, params: dict[str, Any], context: SourceContext) -> None:
        values = read_values(self.params, params)
        self.offline = not values["url"]
        super().__init__({**_as_live(params), **({"url": NOWHERE} if self.offline else {})}, context)
        self.size: int = values["batch_size"]
        self.poll_seconds: int = values["poll_seconds"]
        self.window: str = values["window"]
        sampling = self._params.sampling
        if sampling.verbalized:
            raise InputError(
                _("A batch holds one call for each item: an answer cannot be asked about in it."),
                where="verbalized",
            )
        if sampling.sample_temperature is not None:
            raise InputError(
                _("A batch holds one call for each item, at one temperature."), where="sample_temperature"
            )

    @classmethod
    def for_a_try(cls, params: dict[str, Any], context: SourceContext) -> Backend:
        """Its server, live: a batch may take a day."""
        if not params.get("url"):
            raise InputError(
                _("Its answers come from files that are carried by hand: there is no server to ask.")
            )
        return OpenAIApi.for_a_try(_as_live(params), context)

    @property
    def in_flight(self) -> int:
        return self.size

    @property
    def key(self) -> str:
        """What the batches of this source are found by: everything that is asked but the items."""
        return digest(
            model=self._params.model,
            prompt=prompt_digest(self._context.prompt, self._context.task),
            sampling=self._params.sampling.shaping(),
            extra=dict(self._params.extra),
        )[:40]

    def check(self) -> dict[str, Any]:
        return {} if self.offline else super().check()

    def fingerprint(self) -> str:
        return digest(backend="openai_batch", asked=self.key) if self.offline else super().fingerprint()

    def most_usage(self, item: Item) -> Mapping[str, Decimal]:
        most = super().most_usage(item)
        return {name: most[name] for name in self.usage}

    def request(self, item: Item) -> tuple[str, dict[str, Any]]:
        """custom_id and body of the call for an item. The id names both, so that no answer to another
        question is ever taken for it. Raises InputError where the item cannot be asked about."""
        sampling = self._params.sampling
        body = answer_body(
            self._params, self._context.task, self.messages(item).as_chat(), count=sampling.samples
        )
        return f"{item.pk}-{digest(body=body)[:24]}", body

    def predict(self, items: Iterable[Item]) -> Iterator[list[Answered]]:
        signature = Signature(self._params.model, self._context.served, self._params.answers_as)
        store = ResultStore(self.key)
        server = None if self.offline else BatchServer(self._params.url, self._context.api_key, self.key)
        try:
            for chunk in in_chunks(items, self.size):
                yield from _Chunk(self, chunk, signature, store).groups(server)
        finally:
            if server is not None:
                server.close()

    def answer(self, result: Result, signature: Signature) -> Answer:
        """The answer in a result. Raises BackendError where another model gave it."""
        if result.body is None:
            return Answer(None, shortened(result.reason), tokens_in=0, tokens_out=0)
        texts = generated_in(result.body)
        sampling, revision = self._params.sampling, result.body.get("system_fingerprint")
        return answer_of(
            texts[0],
            spec=self._context.task,
            sampling=sampling,
            usage=usage_of(result.body),
            samples=texts[: sampling.samples] if sampling.samples > 1 else (),
            served_model=signature.check(result.body.get("model")),
            served_revision=revision if isinstance(revision, str) else "",
        )


class _Chunk:
    """Items whose calls go together, and what is known of their answers."""

    def __init__(
        self, backend: OpenAIBatch, items: list[Item], signature: Signature, store: ResultStore
    ) -> None:
        self.backend, self.signature = backend, signature
        self._open: dict[str, tuple[Item, dict[str, Any]]] = {}
        self._unsent: list[Answered] = []
        for item in items:
            try:
                custom_id, body = backend.request(item)
            except InputError as error:
                self._unsent.append((item, unsent(error)))
            else:
                self._open[custom_id] = (item, body)
        self._store = store
        self._read: set[str] = set()
        self._last: dict[str, str] = {}

    def groups(self, server: BatchServer | None) -> Iterator[list[Answered]]:
        if self._unsent:
            yield self._unsent
        yield from self._given(
            result for key in list(self._open) if (result := self._store.get(key)) is not None
        )
        if self._open and server is None:
            raise NOT_IN_FILES.error(raised_as=BackendError, count=f"{len(self._open):,}")
        for _round in range(ROUNDS):
            if not self._open or server is None:
                return
            waiting = self._under_way(server)
            waiting += self._sent(
                server, {key for key in self._open if all(key not in ids for _, ids in waiting)}
            )
            for batch, _keys in waiting:
                yield from self._waited_for(server, batch)
        reasons = [
            (item, self._last.get(key, "no result came back")) for key, (item, _) in self._open.items()
        ]
        yield [(item, Answer(None, f"{reason}, in {ROUNDS} batches"[:200])) for item, reason in reasons]

    def _under_way(self, server: BatchServer) -> list[tuple[Batch, set[str]]]:
        """Batches that hold calls of open items: of a worker that died, or of an earlier attempt."""
        found = []
        missing = set(self._open)
        for batch in server.list_batches():
            if missing and batch.id not in self._read and (ids := missing & server.calls_of(batch)):
                found.append((batch, ids))
                missing -= ids
        return found

    def _sent(self, server: BatchServer, keys: set[str]) -> list[tuple[Batch, set[str]]]:
        batches: list[tuple[Batch, set[str]]] = []
        lines: list[bytes] = []
        ids: set[str] = set()
        size = 0
        for key in [key for key in self._open if key in keys]:
            line = request_line(key, self._open[key][1])
            if lines and size + len(line) > LARGEST_FILE:
                batches.append((_send(server, lines, self.backend.window), ids))
                lines, ids, size = [], set(), 0
            lines.append(line)
            ids.add(key)
            size += len(line)
        if lines:
            batches.append((_send(server, lines, self.backend.window), ids))
        return batches

    def _waited_for(self, server: BatchServer, batch: Batch) -> Iterator[list[Answered]]:
        had_ended = batch.ended
        while not batch.ended:
            for waited in range(0, self.backend.poll_seconds, LOOK_SECONDS):
                yield []  # the caller may want to stop
                time.sleep(min(LOOK_SECONDS, self.backend.poll_seconds - waited))
            batch = server.retrieve(batch)
        self._read.add(batch.id)
        for file in (batch.output_file, batch.error_file):
            yield from self._given(read_results(server.content(file).splitlines()))
        if had_ended:
            return
        if batch.status == "failed":
            problem = batch.problem or failures.term(UNSAID)
            raise BATCH_REFUSED.error(raised_as=BackendError, id=batch.id, problem=problem)
        if batch.status == "cancelled":
            raise BATCH_CANCELLED.error(raised_as=BackendError, id=batch.id)

    def _given(self, results: Iterable[Result]) -> Iterator[list[Answered]]:
        group: list[Answered] = []
        for result in results:
            if result.custom_id not in self._open:
                continue
            if result.body is None and result.again:
                self._last[result.custom_id] = result.reason
                continue
            try:
                answer = self.backend.answer(result, self.signature)
            except BackendError:
                if group:
                    yield group  # what the right model answered
                raise
            item, _ = self._open.pop(result.custom_id)
            group.append((item, answer))
            if len(group) == GROUP:
                yield group
                group = []
        if group:
            yield group


def _as_live(params: Mapping[str, Any]) -> dict[str, Any]:
    """The params that `openai_api` takes as well."""
    own = {param.name for param in OWN}
    return {name: value for name, value in params.items() if name not in own}


def _send(server: BatchServer, lines: list[bytes], window: str) -> Batch:
    content = b"".join(lines)
    return server.send(content, hashlib.sha256(content).hexdigest(), window)
