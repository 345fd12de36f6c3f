"""The backend: batches of items become requests, several at a time."""

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from decimal import Decimal
from threading import Event
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _, gettext_noop

from annotation import failures
from annotation.errors import InputError
from annotation.models import Item
from routing.core.costs import SECONDS
from routing.sources.backends.base import Answer, Answered, Backend, BackendError, digest
from routing.sources.backends.concurrent import StoppedError
from routing.sources.backends.label_studio_ml.calls import Calls
from routing.sources.backends.label_studio_ml.params import PARAMS, Params, read_params
from routing.sources.backends.label_studio_ml.server import AwayError, Server, UnansweredError
from routing.sources.source_context import SourceContext

NOT_SET_UP = failures.register("ml_not_set_up", gettext_noop("The server cannot be set up: %(why)s."))


class LabelStudioMl(Backend):
    """Asks the Label Studio ML backend at `url`; params.py names the rest."""

    title = _("A Label Studio ML backend")
    params = PARAMS
    told_by = ("url",)
    default_score: ClassVar[str] = "recorded"
    fields: ClassVar[frozenset[str]] = frozenset({"confidence"})
    usage: ClassVar[frozenset[str]] = frozenset({SECONDS})

    def __init__(self, params: dict[str, Any], context: SourceContext) -> None:
        self._params: Params = read_params(params, context.task)
        self._context = context

    @property
    def in_flight(self) -> int:
        # A batch more than there are threads: one waits, or is being stored, while the others are asked for.
        return (self._params.concurrency + 1) * self._params.batch_size

    def check(self) -> dict[str, Any]:
        """Ask whether the server is up and takes the label configuration. Raises InputError."""
        server = self._server()
        try:
            server.health()
            return {"model": server.setup()}
        except BackendError as error:
            raise InputError.of(error, where="url") from None
        except (AwayError, UnansweredError) as error:
            why = error.why.message.rstrip(".")
            raise InputError(f"{why[0].upper()}{why[1:]}.", where="url") from None
        finally:
            server.close()

    def fingerprint(self) -> str:
        """Of the address, the label configuration, and the model version that the server names now.

        Raises BackendError where the server cannot be asked.
        """
        server = self._server()
        try:
            version = self._set_up(server)
        finally:
            server.close()
        return digest(
            backend="label_studio_ml",
            url=self._params.url,
            label_config=self._params.config.xml,
            version=version,
        )

    def most_usage(self, item: Item) -> Mapping[str, Decimal]:
        """What is charged is the share in the one request that was answered."""
        return {SECONDS: Decimal(str(self._params.total_timeout))}

    def predict(self, items: Iterable[Item]) -> Iterator[list[Answered]]:
        stopped, server = Event(), self._server()
        batches = _Batches(items, self._params.batch_size)
        threads = ThreadPoolExecutor(self._params.concurrency, thread_name_prefix="label-studio-ml")
        running: dict[Future[list[Answer]], list[Item]] = {}
        failure: Exception | None = None
        try:
            # A server that was started anew knows the configuration no more.
            version = self._set_up(server)
            calls = Calls(self._params, self._context.task.kind, server, version, stopped)
            last = time.monotonic()
            while True:
                while (
                    failure is None and len(running) <= self._params.concurrency and (batch := batches.next())
                ):
                    running[threads.submit(calls.answers, batch)] = batch
                if not running:
                    break
                done = wait(running, return_when=FIRST_COMPLETED).done
                for future in [one for one in running if one in done]:  # in the order of the items
                    batch = running.pop(future)
                    try:
                        answers = future.result()
                    except StoppedError:
                        continue  # because of what another batch raised
                    except Exception as error:
                        failure = failure or error
                        stopped.set()
                        continue
                    now = time.monotonic()
                    # Never more than was set aside for it.
                    share = min((now - last) / len(batch), self._params.total_timeout) * 1_000
                    last = now
                    yield [
                        (item, replace(answer, busy_ms=min(share, answer.busy_ms or share)))
                        for item, answer in zip(batch, answers, strict=True)
                    ]
            if failure := failure or batches.failure:
                raise failure
        finally:
            stopped.set()
            threads.shutdown(wait=False, cancel_futures=True)
            server.close()

    def _server(self) -> Server:
        return Server(self._params, self._context.api_key)

    def _set_up(self, server: Server) -> str:
        try:
            return server.setup()
        except (AwayError, UnansweredError) as error:
            raise NOT_SET_UP.error(raised_as=BackendError, permanent=False, why=error.reason_part) from None


class _Batches:
    """Items in lists, taken as they are needed. What taking one raises ends them, and is kept as `failure`:
    the items taken before are still asked for."""

    def __init__(self, items: Iterable[Item], size: int) -> None:
        self._rest: Iterator[Item] | None = iter(items)
        self._size = size
        self.failure: Exception | None = None

    def next(self) -> list[Item]:
        """The next batch; empty where there is none."""
        batch: list[Item] = []
        while self._rest is not None and len(batch) < self._size:
            try:
                batch.append(next(self._rest))
            except StopIteration:
                self._rest = None
            except Exception as error:
                self._rest, self.failure = None, error
        return batch
