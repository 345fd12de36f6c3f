"""Answers for a batch: asked for together, one by one where that fails, and again where it may help."""

import base64
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from threading import Event
from typing import Any

from annotation.common.files import open_file
from annotation.models import Item
from annotation.task_types import TaskType
from routing.sources.backends.base import Answer, BackendError, shortened
from routing.sources.backends.concurrent import StoppedError
from routing.sources.backends.label_studio_ml.label_config import IMAGE, LabelConfig
from routing.sources.backends.label_studio_ml.params import Params
from routing.sources.backends.label_studio_ml.reading import answer_of
from routing.sources.backends.label_studio_ml.server import AwayError, Server, UnansweredError

PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds before the second and further attempts to reach a server that is away."""
AGAIN_AFTER = 1.0
MOST_FAILURES = 10
"""So many items in a row without an answer, each asked alone: it is no longer the items."""


class Calls:
    """For all threads of one source. `version` is that of answers which name none; `stopped` is set where
    nobody waits for answers any more."""

    def __init__(self, params: Params, kind: TaskType, server: Server, version: str, stopped: Event) -> None:
        self._params, self._kind, self._server = params, kind, server
        self._version, self._stopped = version, stopped
        self._failures = 0
        self._lock = threading.Lock()

    def answers(self, batch: Sequence[Item]) -> list[Answer]:
        """One answer for each of `batch`, in their order. Raises BackendError where the server answers
        nobody, StoppedError where nobody waits."""
        tasks: list[dict[str, Any]] = []
        answers: dict[int, Answer] = {}
        for index, item in enumerate(batch):
            try:
                tasks.append({"id": index + 1, "data": task_of(item, self._params.config)})
            except ItemError as error:
                answers[index] = Answer(None, str(error))
        try:
            answers.update(self._asked(tasks))
        except BackendError:
            self._stopped.set()  # before this thread takes the next batch
            raise
        return [answers[index] for index in range(len(batch))]

    def _asked(self, tasks: list[dict[str, Any]]) -> list[tuple[int, Answer]]:
        if not tasks:
            return []
        if len(tasks) == 1:
            return [(tasks[0]["id"] - 1, self._alone(tasks[0]))]
        try:
            return self._together(tasks)
        except UnansweredError:
            # One of them may be to blame.
            return [(task["id"] - 1, self._alone(task)) for task in tasks]

    def _alone(self, task: dict[str, Any]) -> Answer:
        try:
            try:
                answered = self._together([task])
            except UnansweredError as error:
                if not error.again:
                    raise
                self._pause(AGAIN_AFTER)
                answered = self._together([task])
        except UnansweredError as error:
            self._failed(error.reason)
            return Answer(None, shortened(error.reason))
        return answered[0][1]

    def _together(self, tasks: list[dict[str, Any]]) -> list[tuple[int, Answer]]:
        attempt = 0
        while True:
            if self._stopped.is_set():
                raise StoppedError
            began = time.monotonic()
            try:
                predictions, version = self._server.predict(tasks)
                break
            except AwayError as error:
                if attempt == len(PAUSES):
                    raise BackendError(
                        f"The server cannot be reached: {error.reason}.", permanent=False
                    ) from None
                self._pause(PAUSES[attempt] if error.wait is None else error.wait)
                attempt += 1
        with self._lock:
            self._failures = 0
        milliseconds = (time.monotonic() - began) * 1_000
        answers = []
        for task, prediction in zip(tasks, predictions, strict=True):
            answer = answer_of(prediction, self._params.config, self._kind, version or self._version)
            # The items of a batch are worked on together: each took its share of the time.
            share = milliseconds / len(tasks)
            answers.append((task["id"] - 1, replace(answer, latency_ms=milliseconds, busy_ms=share)))
        return answers

    def _failed(self, reason: str) -> None:
        with self._lock:
            self._failures += 1
            too_many = self._failures >= MOST_FAILURES
        if too_many:
            raise BackendError(
                f"The server gave no answer to {MOST_FAILURES} items in a row, each asked alone. The "
                f"last: {reason}. Look into its log.",
                permanent=False,
            )

    def _pause(self, seconds: float) -> None:
        if self._stopped.wait(seconds * random.uniform(1.0, 1.25)):  # noqa: S311 - no secret
            raise StoppedError


class ItemError(Exception):
    """The item cannot be shown as the label configuration says."""


def task_of(item: Item, config: LabelConfig) -> dict[str, Any]:
    """The data of a Label Studio task. An image goes as a data URI: nobody gets a key to fetch it with.

    A field is the column of its name; a tag for text whose field no column has shows the item's text. Raises
    ItemError.
    """
    data: dict[str, Any] = {}
    for field, tag in config.fields.items():
        if tag == IMAGE:
            data[field] = _image(item)
        elif field in item.data:
            data[field] = item.data[field]
        elif item.image_id:
            raise ItemError(f"the label configuration shows {field!r}, and the item is an image without it")
        else:
            data[field] = item.text
    return data


def _image(item: Item) -> str:
    if item.image is None:
        raise ItemError("the label configuration shows an image, and the item is text")
    with open_file(item.image) as content:
        encoded = base64.b64encode(content.read()).decode()
    return f"data:{item.image.media_type};base64,{encoded}"
