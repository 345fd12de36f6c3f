"""Answers for a batch: asked for together, one by one where that fails, and again where it may help."""

import base64
import json
import math
import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Event
from typing import Any

from django.utils.translation import gettext_noop

from annotation import failures
from annotation.common.files import open_file
from annotation.models import Item
from annotation.task_types import Shapes, TaskType
from annotation.task_types.shapes import NOTHING
from routing.sources.backends.base import Answer, BackendError, shortened
from routing.sources.backends.concurrent import StoppedError
from routing.sources.backends.label_studio_ml.label_config import IMAGE, VALUES, LabelConfig
from routing.sources.backends.label_studio_ml.params import Params
from routing.sources.backends.label_studio_ml.server import AwayError, Server, UnansweredError, version_of

PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds before the second and further attempts to reach a server that is away."""
AGAIN_AFTER = 1.0
MOST_FAILURES = 10
"""So many items in a row without an answer, each asked alone: it is no longer the items."""

NOT_REACHED = failures.register("ml_not_reached", gettext_noop("The server cannot be reached: %(why)s."))
NONE_ANSWERED = failures.register(
    "ml_none_answered",
    gettext_noop(
        "The server gave no answer to %(count)s items in a row, each asked alone. The last: %(why)s. Look "
        "into its log."
    ),
)


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
            self._failed(error)
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
                    raise NOT_REACHED.error(
                        raised_as=BackendError, permanent=False, why=error.reason_part
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

    def _failed(self, error: UnansweredError) -> None:
        with self._lock:
            self._failures += 1
            too_many = self._failures >= MOST_FAILURES
        if too_many:
            raise NONE_ANSWERED.error(
                raised_as=BackendError, permanent=False, count=MOST_FAILURES, why=error.reason_part
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


def answer_of(prediction: Any, config: LabelConfig, kind: TaskType, version: str) -> Answer:
    """The answer in one prediction. Where several came for an item, the first counts; `version` is the model
    version of one that names none itself.
    """
    if isinstance(prediction, list):
        prediction = prediction[0] if prediction else None
    if not isinstance(prediction, Mapping):
        return Answer(None, "no prediction", served_model=version)
    regions = _regions(prediction, config)
    value, reason = (
        _shapes(prediction, regions, kind) if isinstance(kind, Shapes) else _value(regions, config, kind)
    )
    score = _score(prediction, regions)
    return Answer(
        value,
        reason,
        raw={} if score is None else {"confidence": score},
        served_model=version_of(prediction) or version,
    )


def _regions(prediction: Mapping[str, Any], config: LabelConfig) -> list[Mapping[str, Any]]:
    """Parts of the prediction that answer the project's question: those under the name of its tag, or those
    of its kind where the backend has a name of its own."""
    result = prediction.get("result")
    found = [entry for entry in result if isinstance(entry, Mapping)] if isinstance(result, list) else []
    own = [entry for entry in found if entry.get("from_name") == config.control]
    return own or [entry for entry in found if str(entry.get("type")).lower() == config.control_tag.lower()]


def _shapes(
    prediction: Mapping[str, Any], regions: Sequence[Mapping[str, Any]], kind: Shapes[Any]
) -> tuple[str | None, str]:
    """The shapes in JSON and "", or None and why there are none. A result with nothing in it says that
    there is none to draw.
    """
    if not regions:
        return (NOTHING, "") if prediction.get("result") == [] else (None, "no prediction")
    if not all(isinstance(region.get("value"), Mapping) for region in regions):
        return None, "the prediction has a region without a value"
    return json.dumps(kind.in_short(list(map(kind.of_region, regions)))), ""


def _value(
    regions: Sequence[Mapping[str, Any]], config: LabelConfig, kind: TaskType
) -> tuple[str | list[str] | None, str]:
    """The answer and "", or None and why there is none."""
    if not regions:
        return None, "no prediction"
    field = VALUES[config.control_tag]
    values = []
    for region in regions:
        value = region.get("value")
        if not isinstance(value, Mapping) or value.get(field) is None:
            return None, f"the prediction has no value {field!r}"
        one = value[field]
        values += one if isinstance(one, list) else [one]
    texts = [_text(value) for value in values]
    if None in texts:
        return None, f"the prediction has something that is no {field!r}"
    known = [text for text in texts if text is not None]
    if kind.several:
        return list(dict.fromkeys(known)), ""
    if len(set(known)) != 1:
        return None, "several answers in place of one" if known else "no prediction"
    return known[0], ""


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _score(prediction: Mapping[str, Any], regions: Sequence[Mapping[str, Any]]) -> float | None:
    """The prediction's score; that of its part where it has none and only one part answers."""
    scores = [prediction.get("score")]
    if len(regions) == 1:
        scores.append(regions[0].get("score"))
    return next((found for score in scores if (found := _finite(score)) is not None), None)


def _finite(score: Any) -> float | None:
    if not isinstance(score, int | float) or isinstance(score, bool):
        return None
    try:
        found = float(score)
    except OverflowError:  # a whole number of hundreds of digits
        return None
    return found if math.isfinite(found) else None
