"""A model server on the loopback address whose every answer a test scripts.

    with ScriptedServer("cat") as server:                     # answers "cat" to every chat completion
        server.script(Reply(429, headers={"Retry-After": "0"}), "dog")      # but to the next two: this
        ... server.url ...                                    # http://127.0.0.1:PORT/v1
        assert len(server.calls) == 2

One thread per connection, so a script may block. `python -m testbed.scripted_server --delay 0.2` serves until
it is ended, for processes and benchmarks.
"""

import argparse
import contextlib
import json
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from testbed.scripted_replies import completion, model_list

COMPLETIONS = "/chat/completions"
WORDS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
# Headers and body of one request: far more than any test sends.
MOST = 64 * 2**20


@dataclass(frozen=True)
class Request:
    """`headers` have names in lower case; `body` is the JSON that was sent, or its bytes where it is none."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    at: float = field(compare=False)

    @property
    def prompt(self) -> str:
        """The last message of a chat."""
        return str(self.body["messages"][-1]["content"])


@dataclass(frozen=True)
class Reply:
    """What is sent back: text becomes a chat completion, another value JSON, bytes stay as they are.

    `delay` is waited before anything is sent, `dribble` before each byte of the body (seconds). `cut` ends
    the connection after so many bytes of the body, `reset` does it with a RST instead of a FIN, and before
    anything is sent where `cut` is None. `endless` sends the body again and again until the client leaves.
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    dribble: float = 0.0
    cut: int | None = None
    reset: bool = False
    endless: bool = False


Script = Reply | str | dict[str, Any] | Callable[[Request], Any]


class ScriptedServer:
    """`default` answers chat completions for which nothing is scripted: a text, a reply, or a function of the
    request that gives one. `models` are the ids that it lists; the first one signs its answers.
    """

    def __init__(
        self,
        default: Script = "ok",
        *,
        models: Iterable[str] = ("scripted",),
        delay: float = 0.0,
        port: int = 0,
    ) -> None:
        self.default, self.models, self.delay = default, list(models), delay
        self.requests: list[Request] = []
        self.most_at_once = 0
        self.routes: dict[tuple[str, str], Script] = {}
        self._scripted: deque[Script] = deque()
        self._lock = threading.Lock()
        self._now = 0
        self._stopped = threading.Event()
        self._connections: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=256)
        self.port = int(self._listener.getsockname()[1])

    def script(self, *replies: Script) -> None:
        """Answer the next chat completions with these, one each, before the default."""
        self._scripted.extend(replies)

    def route(self, method: str, path: str, reply: Script) -> None:
        """Answer another address; `path` is what follows the address of the server, "/v1/files" say."""
        self.routes[method, path] = reply

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def calls(self) -> list[Request]:
        """The chat completions that were asked for."""
        return [request for request in self.requests if request.path.endswith(COMPLETIONS)]

    @property
    def busy(self) -> int:
        """How many chat completions it is at now."""
        return self._now

    def __enter__(self) -> "ScriptedServer":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it at once, connections included, as a server that dies does."""
        self._stopped.set()
        # Wakes up `accept`, which on Linux a close alone does not.
        _quietly(self._listener.shutdown, socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._connections):
            _quietly(connection.shutdown, socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections.add(connection)
        try:
            buffer = bytearray()
            while (received := _receive(connection, buffer)) and self._answer(connection, *received):
                pass
        except OSError:
            pass  # the client has gone, or the server was ended
        finally:
            self._connections.discard(connection)
            connection.close()

    def _answer(
        self, connection: socket.socket, method: str, path: str, headers: dict[str, str], content: bytes
    ) -> bool:
        """Answer one request; whether the connection stays open."""
        is_call = path.endswith(COMPLETIONS)
        with self._lock:
            request = Request(len(self.requests), method, path, headers, _read(content), time.monotonic())
            self.requests.append(request)
            if is_call:
                self._now += 1
                self.most_at_once = max(self.most_at_once, self._now)
            script = self._choose(method, path, is_call)
        try:
            reply = self._reply(script, request)
            if self._stopped.wait(reply.delay or (self.delay if is_call else 0.0)):
                return False
        finally:
            if is_call:
                with self._lock:
                    self._now -= 1
        return self._send(connection, reply)

    def _choose(self, method: str, path: str, is_call: bool) -> Script:
        if is_call:
            return self._scripted.popleft() if self._scripted else self.default
        if script := self.routes.get((method, path)):
            return script
        if method == "GET" and path == "/v1/models":
            return model_list(self.models)
        return Reply(404, {"error": {"message": f"no {path} here", "type": "not_found", "code": 404}})

    def _reply(self, script: Any, request: Request) -> Reply:
        while callable(script):
            script = script(request)
        reply = script if isinstance(script, Reply) else Reply(body=script)
        if isinstance(reply.body, str) and request.path.endswith(COMPLETIONS):
            body = completion(reply.body, asked=request.body, model=self.models[0])
            return Reply(**{**vars(reply), "body": body})
        return reply

    def _send(self, connection: socket.socket, reply: Reply) -> bool:
        if reply.reset and reply.cut is None:
            return _reset(connection)
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        headers = {"Content-Type": "application/json"}
        if reply.endless:
            headers["Connection"] = "close"
        else:
            headers["Content-Length"] = str(len(body))
        lines = [f"{name}: {value}" for name, value in {**headers, **reply.headers}.items()]
        head = "\r\n".join([f"HTTP/1.1 {reply.status} {WORDS.get(reply.status, 'Status')}", *lines, "", ""])
        if not (reply.dribble or reply.endless):
            connection.sendall(head.encode() + body[: reply.cut])
        else:
            connection.sendall(head.encode())
            self._dribble(connection, body[: reply.cut], reply)
        if reply.reset:
            return _reset(connection)
        return reply.cut is None and not reply.endless

    def _dribble(self, connection: socket.socket, body: bytes, reply: Reply) -> None:
        while not self._stopped.is_set():
            step = 1 if reply.dribble else len(body)
            for start in range(0, len(body), step):
                if self._stopped.wait(reply.dribble):
                    return
                connection.sendall(body[start : start + step])
            if not reply.endless:
                return


def _receive(connection: socket.socket, buffer: bytearray) -> tuple[str, str, dict[str, str], bytes] | None:
    """The next request; None where the client has closed the connection."""
    while (end := buffer.find(b"\r\n\r\n")) < 0:
        if not _more(connection, buffer):
            return None
    first, *lines = buffer[:end].decode("latin-1").split("\r\n")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    method, path, _ = first.split(" ", 2)
    stop = end + 4 + int(headers.get("content-length") or 0)
    while len(buffer) < stop:
        if not _more(connection, buffer):
            return None
    content = bytes(buffer[end + 4 : stop])
    del buffer[:stop]
    return method, path, headers, content


def _more(connection: socket.socket, buffer: bytearray) -> bool:
    data = connection.recv(65536)
    buffer += data
    return bool(data) and len(buffer) < MOST


def _read(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content


def _reset(connection: socket.socket) -> bool:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def _quietly(function: Callable[..., Any], *arguments: Any) -> None:
    with contextlib.suppress(OSError):  # it is closed already
        function(*arguments)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed.scripted_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--answer", default="ok", help="text of every answer")
    parser.add_argument("--model", default="scripted", help="id of the model that it serves")
    options = parser.parse_args()
    server = ScriptedServer(options.answer, models=[options.model], delay=options.delay, port=options.port)
    with server:
        print(server.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(f"{len(server.calls)} calls, at most {server.most_at_once} at once", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
