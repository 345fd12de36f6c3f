"""A weighted mean of other scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any, ClassVar

from routing.core.messages import declare, gettext_noop, say
from routing.core.scores.base import Examples, ItemScore, Part, Score, ScoreError, refuse_unknown, unusable
from routing.core.scores.composite import read_parts


@dataclass(frozen=True)
class Hybrid:
    """U = sum_k w_k U_k / sum_k w_k over the entries of ``scores``; unusable where one of them is.

    Each entry is a name, or an object with ``score``, and perhaps ``params`` and ``weight`` (above 0; 1 if
    not given). ``make_part`` and ``fit_part`` make and fit another score of the registry.
    """

    make_part: Callable[[str, Mapping[str, Any]], Score]
    fit_part: Callable[[str, Mapping[str, Any], Examples], dict[str, Any]]
    name: str = "hybrid"
    title: str = gettext_noop("Weighted mean of scores")
    summary: str = gettext_noop("A weighted mean of other scores, steadier than each of them.")
    reads: tuple[str, ...] = ()
    parameters: ClassVar[Mapping[str, str]] = {
        "scores": gettext_noop(
            "The scores and their weights: [{'score': name, 'params': {...}, 'weight': 1}, ...]."
        )
    }

    def parts(self, params: Mapping[str, Any]) -> list[Part]:
        """Names and parameters of the scores; raises `ScoreError`."""
        return read_parts(self.name, params, never=(self.name,))

    def make(self, params: Mapping[str, Any]) -> Score:
        refuse_unknown(self.name, params, self.parameters)
        parts = [(name, self.make_part(name, own)) for name, own in self.parts(params)]
        weights = [_weight(entry, place) for place, entry in enumerate(params["scores"], start=1)]
        total = fsum(weights)

        def score(prediction: Mapping[str, object]) -> ItemScore:
            values = []
            for (name, part), weight in zip(parts, weights, strict=True):
                result = part(prediction)
                if not result.usable:
                    return unusable(f"{name}: {result.reason}")
                values.append(weight * result.u)
            return ItemScore(min(1.0, fsum(values) / total))

        return score

    def fit(self, params: Mapping[str, Any], examples: Examples) -> dict[str, Any]:
        """The parameters, with those parts fitted that have to be."""
        fitted: list[dict[str, Any]] = []
        for (name, own), entry in zip(self.parts(params), params["scores"], strict=True):
            weight = _weight(entry, len(fitted) + 1)
            fitted.append({"score": name, "params": self.fit_part(name, own, examples), "weight": weight})
        return {**params, "scores": fitted}


def _weight(entry: Any, place: int) -> float:
    weight = entry.get("weight", 1) if isinstance(entry, Mapping) else 1
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= 1e6:
        raise ScoreError(say("hybrid.weight", place=place, value=repr(weight)))
    return float(weight)


SAYS = {
    "hybrid.weight": gettext_noop(
        "the weight of entry %(place)s of scores must be a number above 0, not %(value)s"
    ),
}
declare(SAYS)
