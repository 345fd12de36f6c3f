"""The files and batches of an API, beside a ScriptedServer's chat completions.

A batch stays at its status until a test ends it with `finish`; with `at_once` it ends as it is made.
"""

import json
from collections.abc import Callable
from typing import Any

from testbed.scripted_replies import completion
from testbed.scripted_server import Reply, Request, ScriptedServer


class Batches:
    def __init__(self, server: ScriptedServer, *, at_once: bool = True) -> None:
        self.server, self.at_once = server, at_once
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.answer: Callable[[dict[str, Any]], Any] = lambda call: completion("cat", asked=call["body"])
        server.route("POST", "/v1/files", self._upload)
        server.route("POST", "/v1/batches", self._create)
        server.route("GET", "/v1/batches?limit=100", lambda _: {"data": list(self.batches.values())[::-1]})

    def calls(self, batch_id: str) -> list[dict[str, Any]]:
        lines = self.files[self.batches[batch_id]["input_file_id"]].splitlines()
        return [json.loads(line) for line in lines]

    def finish(self, batch_id: str, status: str = "completed", answered: int | None = None) -> None:
        """End a batch, the first `answered` of its calls having been answered. An answer that is a number is
        the status of a failure."""
        output, errors = [], []
        for number, call in enumerate(self.calls(batch_id)):
            entry: dict[str, Any] = {"id": f"r{number}", "custom_id": call["custom_id"], "error": None}
            if answered is not None and number >= answered:
                gone = {"code": "batch_expired", "message": "too late"} if status == "expired" else None
                if gone:
                    errors.append({**entry, "response": None, "error": gone})
                continue
            body = self.answer(call)
            if isinstance(body, int):
                failure = {"error": {"message": f"failed with {body}"}}
                errors.append({**entry, "response": {"status_code": body, "body": failure}})
            else:
                output.append({**entry, "response": {"status_code": 200, "body": body}})
        # In an order of its own, as the real one.
        self.batches[batch_id] |= {
            "status": status,
            "output_file_id": self._store(output[::-1]) if output else None,
            "error_file_id": self._store(errors) if errors else None,
        }

    def _store(self, entries: list[dict[str, Any]]) -> str:
        return self._file(b"".join(json.dumps(entry).encode() + b"\n" for entry in entries))

    def _file(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        self.server.route("GET", f"/v1/files/{name}/content", Reply(body=content))
        return name

    def _upload(self, request: Request) -> dict[str, Any]:
        boundary = request.headers["content-type"].partition("boundary=")[2].encode()
        assert b'name="purpose"\r\n\r\nbatch\r\n' in request.body
        part = next(part for part in request.body.split(b"--" + boundary) if b'name="file"' in part)
        return {"id": self._file(part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")), "object": "file"}

    def _create(self, request: Request) -> dict[str, Any]:
        name = f"batch-{len(self.batches)}"
        self.batches[name] = {"id": name, "status": "in_progress", **request.body}
        self.server.route("GET", f"/v1/batches/{name}", lambda _: self.batches[name])
        if self.at_once:
            self.finish(name)
        return self.batches[name]
