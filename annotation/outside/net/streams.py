"""Connections of `GuardedClient`: to checked addresses only, and never past the deadline of their request."""

import socket
import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any

import httpcore
from django.conf import settings
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.outside.net.urls import INSIDE, NetError, is_named, is_public

NOBODY_THERE = failures.register(
    "nobody_there", gettext_noop("Nobody accepts connections at %(host)s, port %(port)s.")
)
NAME_LATE = failures.register(
    "name_not_looked_up", gettext_noop("The name %(host)s could not be looked up in time.")
)
NAME_UNKNOWN = failures.register("name_unknown", gettext_noop("The name %(host)s is not known."))
NO_CERTIFICATE = failures.register(
    "certificate_not_valid", gettext_noop("The certificate of %(host)s is not valid: %(verify_message)s.")
)
NO_TLS = failures.register(
    "no_tls",
    gettext_noop("No TLS connection to %(host)s came about (%(reason)s). Does the server speak https?"),
)
NO_REASON = gettext_noop("no reason given")
ENDED_BEFORE_TLS = failures.register(
    "ended_before_tls", gettext_noop("%(host)s ended the connection before it was encrypted.")
)
TIME_OVER = failures.register("request_time_over", gettext_noop("The time for the whole request was over."))

# A request is made, sent and read on one thread.
_thread = threading.local()


def set_deadline(deadline: float) -> None:
    """What this thread does on its connections ends at `deadline` (of `time.monotonic`)."""
    _thread.deadline = deadline


def shorten_deadline(seconds: float) -> None:
    """Have it end after so many seconds, if it would not end sooner."""
    _thread.deadline = min(_thread.deadline, time.monotonic() + seconds)


def seconds_left(most: float | None) -> float:
    """What a step may take: `most` seconds or what is left. Raises NetError where nothing is left."""
    left: float = _thread.deadline - time.monotonic()
    if left <= 0:
        raise _late()
    return left if most is None else min(most, left)


class GuardedBackend(httpcore.NetworkBackend):
    """Resolves a name once, judges every address it has, and connects to one of those very addresses: a name
    that means another address a moment later changes nothing."""

    def __init__(self) -> None:
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        # The names are read at each connection, so that one kept open is the only thing that outlives them.
        addresses = resolve(host, port, seconds_left(timeout))
        if not is_named(host, port, settings.HYPAC_PRIVATE_HOSTS) and not all(map(is_public, addresses)):
            raise NetError("refused_address", INSIDE, permanent=True, host=host)
        for address in addresses:
            try:
                stream = self._plain.connect_tcp(address, port, seconds_left(timeout))
            except httpcore.ConnectTimeout:
                continue
            except httpcore.ConnectError:
                continue
            return GuardedStream(stream, host)
        raise NetError("connect", NOBODY_THERE, host=host, port=port)


def resolve(host: str, port: int, timeout: float) -> list[str]:
    """The numeric addresses of `host`, in the order in which they should be tried.

    On a thread of its own, because a look-up cannot be told how long it may take.
    """
    found: list[Any] = []

    def look_up() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.append(error)

    thread = threading.Thread(target=look_up, daemon=True, name="resolve")
    thread.start()
    thread.join(timeout)
    if not found:
        raise NetError("timeout", NAME_LATE, host=host)
    if isinstance(found[0], Exception):
        raise NetError("resolve", NAME_UNKNOWN, host=host)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found[0]))


class GuardedStream(httpcore.NetworkStream):
    """A connection whose every step counts towards the deadline of the request that uses it."""

    def __init__(self, stream: httpcore.NetworkStream, host: str) -> None:
        self._stream = stream
        self._host = host
        self._socket: socket.socket = stream.get_extra_info("socket")

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, seconds_left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # Not the plain stream's `write`, whose timeout begins anew with each part that the other side takes.
        rest = memoryview(buffer)
        while rest:
            self._socket.settimeout(seconds_left(timeout))
            try:
                rest = rest[self._socket.send(rest) :]
            except TimeoutError:
                raise httpcore.WriteTimeout from None
            except OSError:
                raise httpcore.WriteError from None

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        try:
            stream = self._stream.start_tls(ssl_context, server_hostname, seconds_left(timeout))
        except httpcore.ConnectError as error:
            raise self._tls_error(error.__cause__) from None
        return GuardedStream(stream, self._host)

    def _tls_error(self, cause: BaseException | None) -> NetError:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return NetError(
                "tls", NO_CERTIFICATE, permanent=True, host=self._host, verify_message=cause.verify_message
            )
        if isinstance(cause, ssl.SSLError):
            reason = cause.reason or failures.term(NO_REASON)
            return NetError("tls", NO_TLS, host=self._host, reason=reason)
        return NetError("reset", ENDED_BEFORE_TLS, host=self._host)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _late() -> NetError:
    return NetError("timeout", TIME_OVER)
