"""The pilot: a random sample of items, independent of the calibration draw, on which all models ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from routing.core.arrays import Floats, Ints


@dataclass(frozen=True)
class PilotData:
    """What the models said about the pilot; no person has labelled it.

    Attributes
    ----------
    u, v : (n,)
        Key of each item.
    answers : (n, S - 1), of objects
        Canonical answers, None where a model has no usable one.
    own_scores : (n, S - 1), optional
        Each model's own uncertainty about its answer, NaN where it has none.
    costs : (n, S - 1), optional
        What each model's answer cost, in the currency of the plan, NaN where that is not known; by default
        every answer costs what the plan says.
    """

    u: Floats
    v: Ints
    answers: NDArray[np.object_]
    own_scores: Floats | None = None
    costs: Floats | None = None

    @classmethod
    def of(
        cls,
        u: ArrayLike,
        v: ArrayLike,
        answers: Sequence[Sequence[str | None]],
        own_scores: ArrayLike | None = None,
        costs: ArrayLike | None = None,
    ) -> PilotData:
        """Pilot data from plain sequences: keys (n,), answers, own scores and costs (n, S - 1)."""
        table = np.empty((len(answers), len(answers[0]) if len(answers) else 0), dtype=object)
        for index, row in enumerate(answers):
            table[index, :] = list(row)
        scores = None if own_scores is None else np.asarray(own_scores, dtype=np.float64)
        prices = None if costs is None else np.asarray(costs, dtype=np.float64)
        return cls(np.asarray(u, dtype=np.float64), np.asarray(v, dtype=np.int64), table, scores, prices)

    def problem(self, sources: int) -> str:
        """What does not fit ``sources``, in a sentence; '' if all does."""
        n = len(self.u)
        if self.v.shape != (n,) or self.answers.shape != (n, sources - 1):
            return (
                f"the pilot has {n} uncertainties, {len(self.v)} tie-breaks and answers of shape "
                f"{self.answers.shape}; expected one of each per item and {sources - 1} answers"
            )
        if self.own_scores is not None and self.own_scores.shape != (n, sources - 1):
            return f"the models' own scores have shape {self.own_scores.shape}, expected {(n, sources - 1)}"
        if self.costs is not None:
            if self.costs.shape != (n, sources - 1):
                return f"the costs of the answers have shape {self.costs.shape}, expected {(n, sources - 1)}"
            if np.any(self.costs < 0) or np.any(np.isinf(self.costs)):
                return "a cost of the pilot is negative or infinite; store what the answer cost, or NaN"
        if not np.all((self.u >= 0) & (self.u <= 1)):
            return "an uncertainty of the pilot lies outside [0, 1]"
        return ""
