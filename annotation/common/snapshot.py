"""Reading a project as it stood at one moment, while people go on labelling it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TypeVar

from django.db import connection, transaction

T = TypeVar("T")


@contextmanager
def in_snapshot(produce: Callable[[], Iterator[T]]) -> Iterator[Iterator[T]]:
    """What `produce` yields, all of it read from one snapshot of the database.

    The snapshot is a read-only transaction on a connection of its own, in a thread of its own: the caller's
    connection stays free to write meanwhile. Nobody waits for it: on PostgreSQL it takes no lock that writers
    want and only keeps VACUUM from removing what was deleted since it began, on SQLite it only keeps the
    write-ahead log from being cut short. Inside a transaction of the caller's that one is used, and decides
    what is seen.
    """
    if connection.in_atomic_block:
        yield produce()
        return
    reader = _Reader(produce)
    try:
        yield reader.results()
    finally:
        reader.stop()


class _Reader:
    """The thread. It works on the next thing while the caller has the last one in hand.

    Not so on SQLite: reading there passes Python's global lock from hand to hand for every row, which beside
    a busy thread takes milliseconds each.
    """

    def __init__(self, produce: Callable[[], Iterator[T]]) -> None:
        self._produce = produce
        self._wanted = threading.Semaphore(0 if connection.vendor == "sqlite" else 1)
        self._found: SimpleQueue[tuple[bool, T | BaseException | None]] = SimpleQueue()
        self._stopped = False
        self._thread = threading.Thread(target=self._read, name="snapshot-reader", daemon=True)
        self._thread.start()

    def results(self) -> Iterator[T]:
        while True:
            self._wanted.release()
            there, thing = self._found.get()
            if isinstance(thing, BaseException):
                raise thing
            if not there:
                return
            yield thing  # type: ignore[misc]

    def stop(self) -> None:
        self._stopped = True
        self._wanted.release()
        self._thread.join()

    def _read(self) -> None:
        try:
            with _snapshot():
                things = self._produce()
                while self._wanted.acquire() and not self._stopped:
                    thing = next(things, None)
                    self._found.put((thing is not None, thing))
                    if thing is None:
                        return
        except BaseException as error:  # raised again where the caller waits
            self._found.put((False, error))
        finally:
            connection.close()


@contextmanager
def _snapshot() -> Iterator[None]:
    if connection.vendor == "sqlite":
        # transaction.atomic would begin with the lock of a writer (settings: transaction_mode).
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # Each statement reads one page. Before statistics are gathered, and for joins even then, the
            # planner would rather read a table of some hundred thousand rows whole, page after page, and
            # start other processes for that.
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL max_parallel_workers_per_gather = 0")
            # A download is no page: it may take as long as it is long (hypac_site.statement_limit).
            cursor.execute("SET LOCAL statement_timeout = 0")
        yield
