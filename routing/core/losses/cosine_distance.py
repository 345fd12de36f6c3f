"""`cosine_distance`: how far apart two texts lie in the space of an embedding model (paper, App. G.1)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from routing.core.arrays import Floats
from routing.core.losses.base import Loss, LossError, LossUnavailableError, known_parameters, short
from routing.core.losses.imports import load
from routing.core.messages import declare, gettext_noop, say

BATCH = 256
"""Most texts that an embedder is given at once, and pairs that are compared at once."""
KEPT = 4096
"""Vectors that are kept for the next call."""

Embedder = Callable[[Sequence[str]], Any]


@dataclass
class CosineDistance:
    """1 - v . w / (|v| |w|) of the embeddings v and w of label and prediction; B = 2.

    Equal texts cost 0.  A vector of zeros has no direction: it is taken to be orthogonal to every other
    (loss 1).  Each text is embedded once.
    """

    embedder: Embedder
    path: str
    name: str = "cosine_distance"
    bound: float = 2.0
    binary: bool = False
    _kept: OrderedDict[str, Floats] = field(default_factory=OrderedDict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __call__(self, label: str, prediction: str) -> float:
        return float(self.many([label], [prediction])[0])

    def many(self, labels: Sequence[str], predictions: Sequence[str]) -> Floats:
        """Losses (n,) of n pairs.

        Raises
        ------
        LossError
            The embedder fails, or gives anything but one finite vector per text, all of one length.
        """
        losses = np.zeros(len(labels))
        pairs = list(zip(labels, predictions, strict=True))
        for start in range(0, len(pairs), BATCH):  # not all vectors at once: they may be long
            block = pairs[start : start + BATCH]
            with self._lock:
                vectors = self._unit_vectors([text for pair in block for text in pair])
            losses[start : start + BATCH] = [
                0.0 if a == b else 1.0 - float(vectors[a] @ vectors[b]) for a, b in block
            ]
        return np.clip(losses, 0.0, self.bound)

    def _unit_vectors(self, texts: Sequence[str]) -> dict[str, Floats]:
        wanted = list(dict.fromkeys(texts))
        found = {text: self._kept[text] for text in wanted if text in self._kept}
        missing = [text for text in wanted if text not in found]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            found.update(zip(batch, self._embed(batch), strict=True))
        if len({len(vector) for vector in found.values()}) > 1:
            raise LossError(say("cosine_distance.lengths", path=repr(self.path)))
        for text in wanted:
            self._kept[text] = found[text]
            self._kept.move_to_end(text)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found

    def _embed(self, texts: list[str]) -> Floats:
        """Vectors (n, d) of length 1, or of zeros."""
        try:
            vectors = np.asarray(self.embedder(texts), dtype=np.float64)
        except Exception as error:  # a model of somebody else's can fail in any way
            raise LossUnavailableError(
                say("cosine_distance.failed", path=repr(self.path), error=f"{type(error).__name__}: {error}")
            ) from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise LossError(
                say(
                    "cosine_distance.shape",
                    path=repr(self.path),
                    shape=str(vectors.shape),
                    texts=len(texts),
                )
            )
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            text = texts[int(np.flatnonzero(~finite)[0])]
            raise LossError(say("cosine_distance.infinite", path=repr(self.path), text=short(text)))
        # Divided by the largest entry first, so that no square is too large or too small for a float.
        largest = np.abs(vectors).max(axis=1, keepdims=True)
        scaled = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
        length = np.linalg.norm(scaled, axis=1, keepdims=True)
        return np.asarray(np.divide(scaled, length, out=scaled, where=length > 0), dtype=np.float64)


@dataclass(frozen=True)
class CosineDistanceKind:
    """`CosineDistance` with its embedder."""

    name: str = "cosine_distance"
    title: str = gettext_noop("Distance in meaning")
    summary: str = gettext_noop(
        "A text costs as much as its meaning, by an embedding model, is away from that of the label."
    )
    suits: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(
        default_factory=lambda: {
            "embedder": gettext_noop(
                "'package.module:function', from a list of texts to one vector per text (required)"
            ),
            "model": gettext_noop(
                "name of a model, which the function is then called with: f(texts, model=...)"
            ),
        }
    )

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        path = params.get("embedder")
        if not isinstance(path, str):
            raise LossError(say("cosine_distance.no_embedder"))
        embedder = load(path)
        if not callable(embedder):
            raise LossError(say("cosine_distance.not_callable", path=repr(path)))
        model = params.get("model")
        if model is not None and not isinstance(model, str):
            raise LossError(say("cosine_distance.model", model=repr(model)))
        return CosineDistance(embedder if model is None else partial(embedder, model=model), path)


SAYS = {
    "cosine_distance.lengths": gettext_noop("the embedder %(path)s gave vectors of different lengths"),
    "cosine_distance.failed": gettext_noop("the embedder %(path)s failed: %(error)s"),
    "cosine_distance.shape": gettext_noop(
        "the embedder %(path)s gave an array of shape %(shape)s for %(texts)s texts; it must give one "
        "vector per text, shape (%(texts)s, d)"
    ),
    "cosine_distance.infinite": gettext_noop(
        "the embedder %(path)s gave NaN or infinity for the text %(text)s"
    ),
    "cosine_distance.no_embedder": gettext_noop(
        "the loss 'cosine_distance' needs the parameter 'embedder': the name of a function from a list "
        "of texts to one vector per text, written as 'package.module:function'"
    ),
    "cosine_distance.not_callable": gettext_noop(
        "the embedder %(path)s cannot be called with a list of texts"
    ),
    "cosine_distance.model": gettext_noop("the parameter 'model' must be the name of a model, not %(model)s"),
}
declare(SAYS)
