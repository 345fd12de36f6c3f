"""One source for everything: people, or the model that looks best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routing.core.baselines.base import Labelled
from routing.core.cascade import Decision, Stage


@dataclass(frozen=True)
class PeopleOnly:
    """People label everything, and no model is paid."""

    name: str = "people_only"
    bound: str = ""
    holds_level: bool = True
    summary: str = "People label everything."

    def refusal(self, *, scored: tuple[bool, ...], binary: bool, constant_p: bool) -> str:
        return ""

    def decide(self, sample: Labelled, *, epsilon: float, alpha: float) -> Decision:
        return Decision((), ())


@dataclass(frozen=True)
class BestSingleModel:
    """The model with the least weighted mean loss on the asked items labels everything, whatever epsilon."""

    name: str = "best_single_model"
    bound: str = ""
    holds_level: bool = False
    summary: str = "The model with the fewest errors on the asked items labels everything."

    def refusal(self, *, scored: tuple[bool, ...], binary: bool, constant_p: bool) -> str:
        return "" if scored else "'best_single_model' needs a model"

    def decide(self, sample: Labelled, *, epsilon: float, alpha: float) -> Decision:
        weighted = np.where(sample.asked[:, None], sample.alone / sample.p[:, None], 0.0)
        model = int(np.argmin(weighted.sum(axis=0)))
        return Decision((model,), (Stage(model, None),))
