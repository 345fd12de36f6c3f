"""The part of a server that takes batches: files up and down, and batches made, looked at and found again."""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.utils.translation import gettext_noop

from annotation import failures
from annotation.errors import HypacError
from annotation.outside.net import GuardedClient, NetError, NetResponse
from routing.sources.backends.base import BackendError
from routing.sources.backends.openai_api.verdicts import asked_wait, quoted, redacted
from routing.sources.backends.openai_batch.lines import ids_in, read_results

ATTEMPTS = 5
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
MOST_BYTES = 512 * 2**20
MOST_PAGES = 20
PURPOSE, KEY, CONTENT = "hypac", "hypac_source", "hypac_content"
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})

STATUS = failures.register(
    "batch_server_status", gettext_noop("The server of batches answers with status %(status)s.")
)
LATER = failures.register("asked_again_later", gettext_noop("%(why)s It is asked again later."))
NO_OBJECT = failures.register(
    "batch_no_object", gettext_noop("The server of batches gave an answer that is no JSON object.")
)
KEY_REFUSED = failures.register(
    "batch_key_refused",
    gettext_noop("The server refuses the API key (%(status)s). Enter one that it accepts."),
)
TAKES_NONE = failures.register(
    "takes_no_batch",
    gettext_noop(
        "The server takes no batch (status %(status)s%(said)s). One without /files and /batches is asked "
        "with the backend openai_api."
    ),
)


@dataclass(frozen=True)
class Batch:
    id: str
    status: str
    input_file: str
    output_file: str
    error_file: str
    metadata: Mapping[str, Any]
    problem: str = ""

    @property
    def ended(self) -> bool:
        return self.status in ENDED


class BatchServer:
    """`key` marks the batches of one source, so that a worker finds those of one that died."""

    def __init__(self, url: str, api_key: str, key: str) -> None:
        self._url, self._api_key, self._key = url, api_key, key
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._calls: dict[tuple[str, bool], set[str]] = {}
        self._client = GuardedClient(read_timeout=300, total_timeout=1800, max_bytes=MOST_BYTES)

    def close(self) -> None:
        self._client.close()

    def list_batches(self) -> list[Batch]:
        """The batches of the source, the newest first."""
        batches: list[Batch] = []
        after = ""
        for _ in range(MOST_PAGES):
            page = self._json("GET", f"/batches?limit=100{after}")
            entries = [entry for entry in page.get("data") or [] if isinstance(entry, Mapping)]
            batches += [_batch(entry, self._api_key) for entry in entries]
            if not page.get("has_more") or not entries:
                break
            after = f"&after={quote(str(entries[-1].get('id')), safe='')}"
        return [batch for batch in batches if batch.metadata.get(KEY) == self._key]

    def send(self, content: bytes, digest: str, window: str) -> Batch:
        """A batch of the calls in `content`, a JSONL file. `digest` is the content's: where a batch of just
        that was made, and the server's answer was lost, it is taken instead of a second one."""
        file = self._json(
            "POST",
            "/files",
            files={
                "purpose": (None, b"batch"),
                "file": (f"{PURPOSE}-{digest[:12]}.jsonl", content, "application/jsonl"),
            },
        )
        body = {
            "input_file_id": str(file.get("id")),
            "endpoint": "/v1/chat/completions",
            "completion_window": window,
            "metadata": {KEY: self._key, CONTENT: digest},
        }
        for attempt in range(ATTEMPTS):
            try:
                return _batch(self._answered(self._once("POST", "/batches", json=body)), self._api_key)
            except _TransientError as error:
                self._pause(attempt, error)
                made = [batch for batch in self.list_batches() if batch.metadata.get(CONTENT) == digest]
                if made and not made[0].ended:
                    return made[0]
        raise AssertionError("the last attempt raises")

    def retrieve(self, batch: Batch) -> Batch:
        """The batch as it is now."""
        return _batch(self._json("GET", f"/batches/{quote(batch.id, safe='')}"), self._api_key)

    def calls_of(self, batch: Batch) -> set[str]:
        """custom_ids of the calls that a batch holds; of one that has ended, those that it has answered."""
        known = self._calls.get((batch.id, batch.ended))
        if known is None:
            if batch.ended:
                files = (self.content(file) for file in (batch.output_file, batch.error_file))
                results = (result for content in files for result in read_results(content.splitlines()))
                known = {result.custom_id for result in results if not result.again}
            else:
                known = ids_in(self.content(batch.input_file))
            self._calls[batch.id, batch.ended] = known
        return known

    def content(self, file: str) -> bytes:
        """What is in a file of the server; nothing for no file, or for one that is gone."""
        if not file:
            return b""
        response = self._persistent("GET", f"/files/{quote(file, safe='')}/content")
        return b"" if response.status in (404, 410) else self._good(response).content

    def _json(self, method: str, path: str, **sent: Any) -> dict[str, Any]:
        return self._answered(self._persistent(method, path, **sent))

    def _persistent(self, method: str, path: str, **sent: Any) -> NetResponse:
        for attempt in range(ATTEMPTS):
            try:
                return self._once(method, path, **sent)
            except _TransientError as error:
                self._pause(attempt, error)
        raise AssertionError("the last attempt raises")

    def _once(self, method: str, path: str, **sent: Any) -> NetResponse:
        try:
            response = self._client.request(method, f"{self._url}{path}", headers=self._headers, **sent)
        except NetError as error:
            if error.permanent:
                raise BackendError.of(error) from None
            raise _TransientError(error, None) from None
        if response.status >= 500 or response.status in (408, 409, 425, 429):
            raise _TransientError(STATUS.error(status=response.status), asked_wait(response.headers))
        return response

    def _pause(self, attempt: int, error: "_TransientError") -> None:
        if attempt + 1 >= ATTEMPTS:
            why = failures.part_of_error(error.why)
            raise LATER.error(raised_as=BackendError, permanent=False, why=why)
        pause = random.uniform(0, FIRST_PAUSE * 2**attempt)  # noqa: S311 - no secret
        time.sleep(min(LONGEST_PAUSE, max(pause, error.wait or 0)))

    def _answered(self, response: NetResponse) -> dict[str, Any]:
        try:
            body = self._good(response).json()
        except NetError:
            body = None
        if not isinstance(body, dict):
            raise NO_OBJECT.error(raised_as=BackendError)
        return body

    def _good(self, response: NetResponse) -> NetResponse:
        if response.status in (401, 403):
            raise KEY_REFUSED.error(raised_as=BackendError, status=response.status)
        if response.status >= 300:
            try:
                said = quoted(response.json(), self._api_key)
            except NetError:
                said = ""
            said = f": {said}" if said else ""
            raise TAKES_NONE.error(raised_as=BackendError, status=response.status, said=said)
        return response


class _TransientError(Exception):
    def __init__(self, why: HypacError, wait: float | None) -> None:
        super().__init__(str(why))
        self.why, self.wait = why, wait


def _batch(entry: Mapping[str, Any], api_key: str) -> Batch:
    metadata, errors = entry.get("metadata"), entry.get("errors")
    listed = errors.get("data") if isinstance(errors, Mapping) else None
    said = [str(one.get("message")) for one in listed or [] if isinstance(one, Mapping)]
    return Batch(
        id=str(entry.get("id") or ""),
        status=str(entry.get("status") or ""),
        input_file=str(entry.get("input_file_id") or ""),
        output_file=str(entry.get("output_file_id") or ""),
        error_file=str(entry.get("error_file_id") or ""),
        metadata=metadata if isinstance(metadata, Mapping) else {},
        problem=redacted("; ".join(said), api_key),
    )
