"""A server on the loopback address that does with each connection what a test says, byte by byte."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

Handle = Callable[[socket.socket], None]


class RawServer:
    """`handle` has each connection on a thread of its own, and may block: the server ends the connection.
    `connections` counts them."""

    def __init__(self, handle: Handle, *, host: str = "127.0.0.1") -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=64)
        self._handle = handle
        self._open: list[socket.socket] = []
        self.connections = 0
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for opened in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):  # the client has gone, or the test is over
            self._handle(connection)


def request_of(connection: socket.socket) -> bytes:
    """The head of a request without a body, or the first part of another."""
    received = b""
    while b"\r\n\r\n" not in received:
        if not (part := connection.recv(65536)):
            raise ValueError("the client has gone")
        received += part
    return received


def says(answer: bytes, *, close: bool = False) -> Handle:
    """A handler that reads requests and gives this answer to each; `close` ends the connection after it."""

    def handle(connection: socket.socket) -> None:
        while True:
            request_of(connection)
            connection.sendall(answer)
            if close:
                connection.close()
                return

    return handle


def silent(connection: socket.socket) -> None:
    """A handler that says nothing."""
    time.sleep(30)


def ok(body: bytes = b"ok", *headers: str) -> bytes:
    """An answer with status 200."""
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body
