"""A server on the loopback address that is told what happens, and answers as a test says."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Received:
    """One request: `headers` have names in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Say:
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b"ok"


class Receiver:
    """Answers 200, or what `script` was given: a status, an answer, or a callable that is called before."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self._scripted: deque[Say | Callable[[], Any]] = deque()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.received.append(Received(self.path, headers, body))
                say = receiver._scripted.popleft() if receiver._scripted else Say()
                if callable(say):
                    say()
                    say = Say()
                self.send_response(say.status)
                for name, value in say.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(say.body)))
                self.end_headers()
                self.wfile.write(say.body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}/hook"

    def script(self, *answers: int | Say | Callable[[], Any]) -> None:
        self._scripted.extend(Say(answer) if isinstance(answer, int) else answer for answer in answers)

    def __enter__(self) -> Self:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
