"""Connections kept open between requests.

Not httpcore's own pool, which looks at every connection for every request: with 64 at a time that took 2.5 ms
of processor time each.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from ssl import SSLContext

import httpcore
from django.utils.translation import gettext as _

from annotation.outside.net.errors import NetError
from annotation.outside.net.streams import GuardedBackend, seconds_left

# Shorter than the 5 s after which common model servers close an idle connection, so that no request is sent
# on one that is just being closed.
KEEP_IDLE_SECONDS = 4.0

Origin = tuple[str, str, int]
"""Scheme, host and port."""


class Pool:
    """At most `most` connections in use at a time, and as many idle ones."""

    def __init__(self, most: int, tls: SSLContext) -> None:
        self._most, self._tls = most, tls
        self._backend = GuardedBackend()
        self._free = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        # The connection that was used last is at the end, and used next: the others can grow old and go.
        self._idle: deque[tuple[Origin, httpcore.HTTPConnection]] = deque()
        self._closed = False

    @contextmanager
    def connection(self, origin: Origin) -> Iterator[httpcore.HTTPConnection]:
        """A connection for one request. Raises NetError where none becomes free before the deadline."""
        if not self._free.acquire(timeout=seconds_left(None)):
            raise NetError("timeout", _("All connections were in use."))
        try:
            connection = self._kept(origin) or self._new(origin)
            try:
                yield connection
            finally:
                self._put_back(origin, connection)
        finally:
            self._free.release()

    def _kept(self, origin: Origin) -> httpcore.HTTPConnection | None:
        while True:
            with self._lock:
                position = next(
                    (index for index in range(len(self._idle) - 1, -1, -1) if self._idle[index][0] == origin),
                    None,
                )
                if position is None:
                    return None
                connection = self._idle[position][1]
                del self._idle[position]
            if not connection.has_expired():  # by our clock, or because the server has closed it
                return connection
            connection.close()

    def _new(self, origin: Origin) -> httpcore.HTTPConnection:
        scheme, host, port = origin
        return httpcore.HTTPConnection(
            httpcore.Origin(scheme.encode(), host.encode(), port),
            ssl_context=self._tls,
            keepalive_expiry=KEEP_IDLE_SECONDS,
            network_backend=self._backend,
        )

    def _put_back(self, origin: Origin, connection: httpcore.HTTPConnection) -> None:
        closing: list[httpcore.HTTPConnection] = []
        with self._lock:
            if connection.is_idle() and not connection.is_closed() and not self._closed:
                self._idle.append((origin, connection))
            else:
                closing.append(connection)
            # The oldest go where there are too many, or where nobody has asked for them in time.
            while self._idle and (len(self._idle) > self._most or self._idle[0][1].has_expired()):
                closing.append(self._idle.popleft()[1])
        for old in closing:
            old.close()

    def close(self) -> None:
        """Close the connections that nobody uses, and the others as soon as they are put back."""
        with self._lock:
            self._closed = True
            closing = [connection for _, connection in self._idle]
            self._idle.clear()
        for connection in closing:
            connection.close()
