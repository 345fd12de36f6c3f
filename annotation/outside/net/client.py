"""The HTTP client for addresses that people enter."""

import json as json_format
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from ssl import SSLContext
from typing import Any

import httpcore
import httpx
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.outside.net.streams import GuardedBackend, seconds_left, set_deadline, shorten_deadline
from annotation.outside.net.urls import NetError, Target, parse

# Shorter than the 5 s after which common model servers close an idle connection, so that no request is sent
# on one that is just being closed.
KEEP_IDLE_SECONDS = 4.0

ALL_IN_USE = failures.register("connections_in_use", gettext_noop("All connections were in use."))
NO_JSON = failures.register("answer_no_json", gettext_noop("The answer (status %(status)s) is no JSON."))
NO_ADDRESS = failures.register("no_address", lambda params: str(params["error"]))
LATE = failures.register("answer_late", gettext_noop("%(host)s gave no answer in time."))
ENDED = failures.register(
    "connection_ended", gettext_noop("%(host)s ended the connection before its answer.")
)
SPOILT = failures.register("answer_spoilt", gettext_noop("%(host)s ended or spoilt its answer."))
HEADER_NOT_SENT = failures.register(
    "header_not_sent", gettext_noop("A header holds characters that cannot be sent.")
)
TOO_LARGE = failures.register(
    "answer_too_large", gettext_noop("The answer of %(host)s is larger than %(max_bytes)s bytes.")
)
BADLY_COMPRESSED = failures.register(
    "answer_badly_compressed",
    gettext_noop("The answer of %(host)s is compressed in a way that cannot be read."),
)
TOO_MANY_HEADERS = failures.register(
    "too_many_headers", gettext_noop("The answer of %(host)s has more than %(most)s headers.")
)

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
            raise NetError("timeout", ALL_IN_USE)
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


# Headers of an answer. The longest that anybody reads is the tag of an object: what is longer is left out,
# and costs none of its readers anything.
MOST_HEADERS = 200
MOST_HEADER_CHARACTERS = 4_096
# For a body that nobody asked for.
SKIP_SECONDS = 1.0


@dataclass(frozen=True)
class NetResponse:
    """An answer of any status. What it says is the other side's word: no page shows it as ours."""

    status: int
    headers: httpx.Headers = field(repr=False)
    content: bytes = field(repr=False)

    def json(self) -> Any:
        """The content read as JSON. Raises NetError ("protocol") where it is none."""
        try:
            return json_format.loads(self.content)
        except (ValueError, RecursionError):
            raise NetError("protocol", NO_JSON, status=self.status) from None


class GuardedClient:
    """Asks http(s) addresses outside the server's own network, and those named in HYPAC_PRIVATE_HOSTS.

    Follows no redirect, keeps no cookie, reads no proxy, password or other habit from the environment
    (SSL_CERT_FILE and SSL_CERT_DIR apart). Times are in seconds: to connect, between two pieces of the
    answer, and in all, from the call to the last byte. `max_bytes` counts the answer after decompression.
    May be used by several threads at once; not across a fork.
    """

    def __init__(
        self,
        *,
        connect_timeout: float = 5.0,
        read_timeout: float = 60.0,
        total_timeout: float = 120.0,
        max_bytes: int = 16 * 2**20,
        max_connections: int = 64,
    ) -> None:
        self._timeouts = {"connect": connect_timeout, "read": read_timeout, "write": read_timeout}
        self._total_timeout = total_timeout
        self._max_bytes = max_bytes
        self._pool = Pool(max_connections, _tls())

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        content: bytes | None = None,
        files: Any = None,
        total_timeout: float | None = None,
        read_content: bool = True,
    ) -> NetResponse:
        """The answer, whatever its status. `json`, `content` and `files` are as httpx takes them. Without
        `read_content` it is the status and the headers: nothing that comes after them is a failure.

        Raises NetError where there is no answer, or none that may be read to its end.
        """
        seconds = self._total_timeout if total_timeout is None else total_timeout
        set_deadline(time.monotonic() + seconds)
        try:
            target = parse(url)
        except ValueError as error:
            raise NetError("url", NO_ADDRESS, permanent=True, error=str(error)) from None
        request = _request(target, method, headers, json, content, files)
        request.extensions = {"timeout": self._timeouts}
        with self._pool.connection((target.scheme, target.host, target.port)) as connection:
            return self._answer(request, target, connection, read_content)

    def _answer(
        self,
        request: httpcore.Request,
        target: Target,
        connection: httpcore.HTTPConnection,
        read_content: bool,
    ) -> NetResponse:
        # Exceptions of the libraries may quote a header: none is passed on, not even as a cause.
        try:
            answer = connection.handle_request(request)
            try:
                headers = _headers(answer, target)
                if not read_content:
                    self._skip(answer)
                    return NetResponse(answer.status, headers, b"")
                # A range is one of what is stored, which says how it is compressed and ends anywhere.
                as_stored = any(name.lower() == b"range" for name, _value in request.headers)
                encoding = "identity" if as_stored else headers.get("content-encoding", "identity")
                return NetResponse(answer.status, headers, self._body(answer, encoding, target))
            finally:
                answer.close()
        except httpcore.TimeoutException:
            raise NetError("timeout", LATE, host=target.host) from None
        except httpcore.NetworkError:
            raise NetError("reset", ENDED, host=target.host) from None
        except httpcore.RemoteProtocolError:
            raise NetError("protocol", SPOILT, host=target.host) from None
        except httpcore.LocalProtocolError:
            raise NetError("request", HEADER_NOT_SENT, permanent=True) from None

    def _skip(self, answer: httpcore.Response) -> None:
        """Read past a short body, so that the connection can be used again: closing it is always right, too,
        and is what becomes of one whose body is long, slow or broken.
        """
        shorten_deadline(SKIP_SECONDS)
        size = 0
        try:
            for part in answer.iter_stream():
                size += len(part)
                if size > self._max_bytes:
                    return
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.RemoteProtocolError, NetError):
            return

    def _body(self, answer: httpcore.Response, encoding: str, target: Target) -> bytes:
        try:
            content = bytearray()  # and no list: an answer may come in pieces of a byte
            for part in _decoded(answer, encoding, self._max_bytes):
                content += part
                if len(content) > self._max_bytes:
                    most = f"{self._max_bytes:,}"
                    raise NetError("too_large", TOO_LARGE, permanent=True, host=target.host, max_bytes=most)
            return bytes(content)
        except (ValueError, zlib.error):
            raise NetError("protocol", BADLY_COMPRESSED, host=target.host) from None

    def close(self) -> None:
        """Close the connections that are kept open; those in use are closed by those who use them."""
        self._pool.close()


def _request(
    target: Target,
    method: str,
    headers: Mapping[str, str] | None,
    json: Any,
    content: bytes | None,
    files: Any,
) -> httpcore.Request:
    """httpx writes header and body; it is not used to send them, because its client keeps cookies and
    decompresses without a limit."""
    try:
        made = httpx.Request(
            method,
            target.url,
            headers={"Accept-Encoding": "gzip", "User-Agent": "HyPAC", **(headers or {})},
            json=json,
            content=content,
            files=files,
        )
    except UnicodeError:
        raise NetError("request", HEADER_NOT_SENT, permanent=True) from None
    return httpcore.Request(
        method,
        httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path),
        headers=made.headers.raw,
        content=made.stream,
    )


def _headers(answer: httpcore.Response, target: Target) -> httpx.Headers:
    """Raises NetError where there are too many."""
    if len(answer.headers) > MOST_HEADERS:
        raise NetError("too_large", TOO_MANY_HEADERS, permanent=True, host=target.host, most=MOST_HEADERS)
    return httpx.Headers(
        [(name, value) for name, value in answer.headers if len(value) <= MOST_HEADER_CHARACTERS]
    )


def _decoded(answer: httpcore.Response, encoding: str, most: int) -> Iterator[bytes]:
    """The content in parts, none much larger than `most` whatever it was compressed from. Raises
    ValueError or zlib.error where it cannot be decompressed."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        yield from answer.iter_stream()
        return
    if encoding not in ("gzip", "x-gzip"):
        raise ValueError("an encoding that was not asked for")
    gzip, empty = zlib.decompressobj(wbits=31), True
    for part in answer.iter_stream():
        empty = empty and not part
        yield gzip.decompress(part, most + 1)
        if gzip.unused_data:
            raise ValueError("more than was compressed")
    if not (gzip.eof or empty):
        raise ValueError("cut off")


@lru_cache(maxsize=1)
def _tls() -> SSLContext:
    return httpx.create_ssl_context()
