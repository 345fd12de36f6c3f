"""scikit-learn classifiers from joblib files that whoever runs the server put into a folder
(docs/backends.md).

Loading such a file runs code, so a file is chosen by name from that folder alone and never uploaded.
"""

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from django.conf import settings
from django.utils.translation import gettext_lazy, gettext_noop
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from annotation import failures
from annotation.common.files import open_file
from annotation.errors import InputError
from annotation.models import Item
from routing.core.costs import SECONDS
from routing.sources.backends.base import Answer, Answered, Backend, BackendError, digest, in_chunks, named
from routing.sources.backends.params import Text, read_values
from routing.sources.source_context import SourceContext

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")
SUFFIX = ".joblib"
# Matrix products of another shape may differ in their last bits; a score must not depend on the batch.
DECIMALS = 9

NO_SUCH_MODEL = failures.register(
    "no_such_model",
    gettext_noop("There is no model %(name)r in the folder of the server; there is: %(known)s."),
)
NONE_YET = gettext_noop("none yet")
UNREADABLE = failures.register(
    "model_file_unreadable", gettext_noop("The model file of %(name)r cannot be read: %(strerror)s.")
)
FAILED = failures.register("model_failed", gettext_noop("The model %(name)r failed: %(error)s"))
OTHER_CLASSES = failures.register(
    "model_other_classes",
    gettext_noop("The model %(name)r does not give one probability for each of its classes."),
)
JUST_CHANGED = failures.register(
    "model_file_changed", gettext_noop("The model file %(path)s was changed just now; try again.")
)
NOT_LOADED = failures.register(
    "model_file_not_loaded",
    gettext_noop(
        "The model file %(path)s cannot be loaded (%(error)s). Was it written by joblib.dump, with the "
        "versions of this server?"
    ),
)
HOLDS_NO_MODEL = failures.register(
    "model_file_holds_none",
    gettext_noop("The model file %(path)s %(problem)s; docs/backends.md says what it must hold."),
)


def available_models() -> list[str]:
    """Names of the model files that can be chosen."""
    folder = Path(settings.HYPAC_SKLEARN_MODELS)
    return sorted(file.stem for file in folder.glob(f"*{SUFFIX}") if NAME.match(file.stem))


class Sklearn(Backend):
    """`model` is the name of a file in HYPAC_SKLEARN_MODELS, without its ending."""

    title = gettext_lazy("A scikit-learn model on this server")
    params = (
        Text(
            "model",
            gettext_lazy("Model file"),
            gettext_lazy("Files that whoever runs this server put into its folder of models."),
            required=True,
            offers=lambda task: ((name, name) for name in available_models()),
            nothing=gettext_lazy("Choose a model"),
            none_yet=gettext_lazy("There is no model file on this server yet."),
        ),
    )
    default_score: ClassVar[str] = "max_softmax"
    fields: ClassVar[frozenset[str]] = frozenset({"classes", "probabilities"})
    usage: ClassVar[frozenset[str]] = frozenset({SECONDS})

    def __init__(self, params: dict[str, Any], context: SourceContext | None = None) -> None:
        self.name: str = read_values(self.params, params)["model"]
        # The name may only ever mean a file of that folder: no separators, no leading dot.
        if not NAME.match(self.name) or self.name not in available_models():
            known = ", ".join(available_models()) or failures.term(NONE_YET)
            raise NO_SUCH_MODEL.error(raised_as=InputError, where="model", name=self.name[:100], known=known)

    @property
    def _path(self) -> Path:
        return Path(settings.HYPAC_SKLEARN_MODELS) / f"{self.name}{SUFFIX}"

    in_flight = 500

    def check(self) -> dict[str, Any]:
        """Open the file and have it answer for one blank item."""
        try:
            # Read anew and not kept: this may be a process that never labels anything.
            model = _read(self._path, self._sha256)
            self._probabilities(model, [_blank(model)])
        except BackendError as error:
            raise InputError.of(error, where="model") from error
        return {}

    def fingerprint(self) -> str:
        return digest(backend="sklearn", file=self._sha256)

    @cached_property
    def _sha256(self) -> str:
        try:
            with self._path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise UNREADABLE.error(raised_as=BackendError, name=self.name, strerror=error.strerror) from error

    def predict(self, items: Iterable[Item]) -> Iterator[list[Answered]]:
        for chunk in in_chunks(items, self.in_flight):
            yield list(zip(chunk, self._answers(chunk), strict=True))

    def _answers(self, items: Sequence[Item]) -> list[Answer]:
        model = _load(self._path, self._sha256)
        started = time.perf_counter()
        answers: list[Answer | None] = [None] * len(items)
        usable: list[int] = []
        inputs: list[Any] = []
        for index, item in enumerate(items):
            try:
                inputs.append(_features(item, model))
                usable.append(index)
            except ValueError as error:
                answers[index] = Answer(None, str(error)[:200])
        if usable:
            for index, row in zip(usable, self._probabilities(model, inputs), strict=True):
                answers[index] = _answer(row, model["classes"])
        # The items of a batch are worked on together: each took its share of the time.
        milliseconds = (time.perf_counter() - started) * 1_000 / max(1, len(items))
        return [
            replace(answer, latency_ms=milliseconds, busy_ms=milliseconds)
            for answer in answers
            if answer is not None
        ]

    def _probabilities(self, model: dict[str, Any], inputs: list[Any]) -> NDArray[np.float64]:
        """Shape (inputs, classes)."""
        batch = np.stack(inputs) if model["kind"] == "image" else inputs
        try:
            table = np.asarray(model["estimator"].predict_proba(batch), dtype=np.float64)
        except Exception as error:
            raise FAILED.error(raised_as=BackendError, name=self.name, error=named(error, 400)) from error
        if table.shape != (len(inputs), len(model["classes"])):
            raise OTHER_CLASSES.error(raised_as=BackendError, name=self.name)
        return table


def _answer(row: NDArray[np.float64], classes: list[str]) -> Answer:
    if not np.isfinite(row).all():
        return Answer(None, "the model gave a probability that is no number")
    probabilities = [round(float(value), DECIMALS) for value in row]
    best = max(range(len(classes)), key=probabilities.__getitem__)
    return Answer(classes[best], raw={"classes": classes, "probabilities": probabilities})


def _features(item: Item, model: dict[str, Any]) -> Any:
    """What the estimator takes for one item. Raises ValueError with the reason where it gives nothing."""
    if model["kind"] == "text":
        if item.image_id:
            raise ValueError("the model reads text, and the item is an image")
        return item.text
    if item.image is None:
        raise ValueError("the model reads images, and the item is text")
    width, height = model["size"]
    try:
        with open_file(item.image) as content, Image.open(content) as image:
            grey = image.convert("L")
            if grey.size != (width, height):
                grey = grey.resize((width, height), Image.Resampling.BILINEAR)
            return np.asarray(grey, dtype=np.float64).reshape(-1) * model["scale"]
    except (UnidentifiedImageError, Image.DecompressionBombError, SyntaxError) as error:
        raise ValueError(f"the image cannot be read: {error}") from error


def _blank(model: dict[str, Any]) -> Any:
    """An input as `_features` gives it, of a black image or of one word."""
    if model["kind"] == "text":
        return "text"
    width, height = model["size"]
    return np.zeros(width * height, dtype=np.float64)


@lru_cache(maxsize=4)
def _load(path: Path, sha256: str) -> dict[str, Any]:
    """The content of a model file, kept in memory by its hash."""
    return _read(path, sha256)


def _read(path: Path, sha256: str) -> dict[str, Any]:
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            raise JUST_CHANGED.error(raised_as=BackendError, permanent=False, path=path.name)
        file.seek(0)
        try:
            import joblib  # where a model is read; a web server that has none need not load it

            # Only files of whoever runs the server come here; see the head of this module.
            content = joblib.load(file)
        except Exception as error:
            raise NOT_LOADED.error(raised_as=BackendError, path=path.name, error=named(error, 300)) from error
    if problem := _problem(content):
        raise HOLDS_NO_MODEL.error(raised_as=BackendError, path=path.name, problem=failures.term(problem))
    result: dict[str, Any] = content
    return result


def _problem(content: Any) -> str:
    if not isinstance(content, dict) or not hasattr(content.get("estimator"), "predict_proba"):
        return gettext_noop("holds no dictionary with an estimator that gives probabilities")
    if content.get("kind") not in ("image", "text"):
        return gettext_noop("does not say whether its kind is 'image' or 'text'")
    classes = content.get("classes")
    if not isinstance(classes, list) or not all(isinstance(key, str) for key in classes) or not classes:
        return gettext_noop("names no classes")
    if content["kind"] == "image":
        size = content.get("size")
        if (
            not isinstance(size, list | tuple)
            or len(size) != 2
            or not all(isinstance(k, int) and k > 0 for k in size)
        ):
            return gettext_noop("does not give the size of its images as [width, height]")
        if not isinstance(content.get("scale"), int | float):
            return gettext_noop("does not give the scale of its grey levels")
    return ""
