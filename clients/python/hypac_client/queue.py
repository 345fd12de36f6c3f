"""Labelling by a program: items are claimed one at a time, kept while one works on them, and answered."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, cast
from uuid import uuid4

from hypac_client.errors import HypacError
from hypac_client.images import image_of
from hypac_client.models import ModelSuggestion, OwnLabel, TaskData, TaskItem
from hypac_client.transport import Transport

DEFAULT_LEASE = 600
MINE_AGAIN_SHARE = 3


class LeasedItem:
    """One item that is yours for now. Answer it with `submit`, or `skip` it."""

    def __init__(self, queue: "Queue", data: TaskData) -> None:
        self._queue = queue
        self.data = data
        self.answered = False

    def __repr__(self) -> str:
        return f"<LeasedItem {self.data['work_item']}{' answered' if self.answered else ''}>"

    @property
    def item(self) -> TaskItem:
        """What people see of it: `id`, `text`, `image`."""
        return self.data["item"].copy()

    @property
    def name(self) -> str:
        """Of the item, without folders, as people see it."""
        return str(self.data.get("name") or "")

    @property
    def external_id(self) -> str | None:
        """The item's whole name; None where the token's owner may not list the items."""
        return self.data.get("external_id")

    @property
    def text(self) -> str:
        return str(self.data["item"]["text"])

    def image(self) -> bytes:
        """The bytes of its image, as it was imported; their SHA-256 is checked."""
        return self._queue.image(self.item)

    @property
    def correcting(self) -> OwnLabel | None:
        """After `Queue.undo`: the label that `submit` puts another in place of."""
        return self.data.get("correcting")

    @property
    def suggestion(self) -> ModelSuggestion | None:
        """What a model answered, and its name: of a routed item, where the plan of the run shows that."""
        return self.data.get("suggestion")

    def submit(self, value: Any, *, comment: str = "", lead_time_ms: int | None = None) -> OwnLabel:
        """Store the label; what `value` is the project's task type says. Returns the label."""
        answer = {
            "value": value,
            "comment": comment,
            "lead_time_ms": lead_time_ms,
            "idempotency_key": str(uuid4()),
        }
        if self.correcting:
            reply = self._queue.post("correct/", {"label": self.correcting["id"], **answer})
            self._done()
        else:
            reply = self._queue.post("submit/", {**self.held, **answer})
            self._done(reply.get("task"))
        return cast(OwnLabel, reply["label"])

    def skip(self, reason: str = "other", *, comment: str = "") -> None:
        """Leave it to others. `reason`: `unclear`, `broken`, `no_label_fits` or `other`."""
        reply = self._queue.post("skip/", {**self.held, "reason": reason, "comment": comment})
        self._done(reply.get("task"))

    def release(self) -> None:
        """Give it back as if it had never been claimed."""
        self._queue.post("release/", self.held)
        self._done()

    def heartbeat(self) -> None:
        """Keep it for another lease; `Queue` does so by itself."""
        self.data["expires_at"] = self._queue.post("heartbeat/", self.held)["expires_at"]

    @property
    def held(self) -> dict[str, Any]:
        return {"work_item": self.data["work_item"], "token": self.data["token"]}

    def _done(self, following: TaskData | None = None) -> None:
        self.answered = True
        self._queue.following = following


Task = LeasedItem
"""Its other name, in programs that were written for it."""


class Queue:
    """`for task in project.queue(): task.submit(...)` - until nothing waits for you.

    What you hold is kept alive in the background, and given back where the loop ends early.
    """

    def __init__(self, transport: Transport, path: str, *, lease_seconds: int = DEFAULT_LEASE) -> None:
        self._transport = transport
        self._path = path
        self._beat = max(1.0, lease_seconds / MINE_AGAIN_SHARE)
        self.following: TaskData | None = None
        """The task that came with the answer to the last one; it is held already."""

    def post(self, below: str, json: dict[str, Any], *, keyed: bool = False) -> dict[str, Any]:
        """Without an Idempotency-Key, of which a day has too few for each item that a program labels. Sent
        again, an answer is known by the key in its body, a skip and a release are done already, and `claim/`
        gives what is held; only `undo/` would go back further.
        """
        answer = self._transport.request("POST", f"{self._path}{below}", json=json, keyed=keyed)
        return dict(answer or {})

    def image(self, item: TaskItem) -> bytes:
        return image_of(self._transport, self._path.removesuffix("queue/"), item)

    def claim(self) -> LeasedItem | None:
        """The next item; None where nothing waits for you now. Without the loop nobody keeps it alive."""
        data, self.following = self.following, None
        data = data or self.post("claim/", {}).get("task")
        return LeasedItem(self, data) if data else None

    def undo(self) -> LeasedItem | None:
        """Your last answer: a label to correct by `submit`, or the item you skipped. None: there is none."""
        data = self.post("undo/", {}, keyed=True).get("task")
        return LeasedItem(self, data) if data else None

    def __iter__(self) -> Iterator[LeasedItem]:
        while task := self.claim():
            try:
                with self._kept_alive(task):
                    yield task
            except GeneratorExit:
                # The loop was left. What was claimed and not answered goes to others at once.
                self._give_back(task)
                raise
            if not task.answered:
                self._give_back(task)
                raise RuntimeError(f"{task!r} was neither submitted, skipped nor released; it was given back")

    def _give_back(self, task: LeasedItem) -> None:
        held = [task] if not task.answered else [LeasedItem(self, self.following)] if self.following else []
        for mine in held:
            with contextlib.suppress(HypacError):  # else its lease runs out
                mine.release()

    @contextlib.contextmanager
    def _kept_alive(self, task: LeasedItem) -> Iterator[None]:
        over = threading.Event()

        def beat() -> None:
            while not over.wait(self._beat):
                if task.answered:
                    return
                with contextlib.suppress(HypacError):  # if it is lost, submit says so
                    task.heartbeat()

        thread = threading.Thread(target=beat, name="hypac-heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
