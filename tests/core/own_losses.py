"""Losses and embedders as somebody outside would write them, for the tests that name them by path."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Distance:
    """How far two numbers on a scale are apart, cut off at ``largest``."""

    binary = False

    def __init__(self, largest: float = 4) -> None:
        self.bound = largest

    def __call__(self, label: str, prediction: str) -> float:
        return min(abs(float(label) - float(prediction)), self.bound)


class BatchDistance(Distance):
    """The same for many pairs at once; counts its calls."""

    def __init__(self, largest: float = 4, off_by: float = 0, short_by: int = 0) -> None:
        super().__init__(largest)
        self.off_by, self.short_by, self.calls = off_by, short_by, 0

    def many(self, labels: Sequence[str], predictions: Sequence[str]) -> NDArray[np.float64]:
        self.calls += 1
        apart = np.abs(np.array(labels, dtype=float) - np.array(predictions, dtype=float))
        return np.minimum(apart, self.bound)[self.short_by :] + self.off_by


class Declares:
    """Gives ``value`` for every pair and declares what it is told to."""

    def __init__(self, value: object = 0, bound: object = 1, binary: object = False) -> None:
        self.value, self.bound, self.binary = value, bound, binary

    def __call__(self, label: str, prediction: str) -> object:
        return self.value


class NoCall:
    """Declares everything and cannot be called."""

    bound = 1
    binary = False


apart = Distance(2)
EMBEDDED: list[list[str]] = []
"""The texts of every call of `embed`."""


def embed(texts: Sequence[str]) -> NDArray[np.float64]:
    """Counts of the letters a, b and c: texts without any of them have no direction."""
    EMBEDDED.append(list(texts))
    return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=float)


def embed_minus(texts: Sequence[str]) -> NDArray[np.float64]:
    """Opposite directions for texts of odd and even length, of any size a float can have."""
    return np.array([[(-1.0) ** len(text) * 10.0 ** (100 * len(text))] for text in texts])


def embed_flat(texts: Sequence[str]) -> NDArray[np.float64]:
    return np.zeros(len(texts))


def embed_nan(texts: Sequence[str]) -> NDArray[np.float64]:
    return np.full((len(texts), 2), np.nan)


def embed_by_length(texts: Sequence[str]) -> NDArray[np.float64]:
    """Vectors as long as the first text: of different lengths in different calls."""
    return np.ones((len(texts), len(texts[0])))


def embed_fails(texts: Sequence[str]) -> NDArray[np.float64]:
    raise RuntimeError("no memory left")


not_callable = 3
