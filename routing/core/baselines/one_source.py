"""One source for everything: people, or the model that looks best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from routing.core.baselines.base import Labelled
from routing.core.cascade import Decision, Stage
from routing.core.messages import Message, declare, gettext_noop, say


@dataclass(frozen=True)
class PeopleOnly:
    """People label everything, and no model is paid."""

    name: str = "people_only"
    bound: str = ""
    holds_level: bool = True
    own_sample: bool = False
    summary: ClassVar[Message] = say("baseline.people_only")

    def refusal(self, *, scored: tuple[bool, ...], binary: bool, constant_p: bool) -> Message | None:
        return None

    def decide(self, sample: Labelled, *, epsilon: float, alpha: float) -> Decision:
        return Decision((), ())


@dataclass(frozen=True)
class BestSingleModel:
    """The model with the least weighted mean loss on the asked items labels everything, whatever epsilon."""

    name: str = "best_single_model"
    bound: str = ""
    holds_level: bool = False
    own_sample: bool = False
    summary: ClassVar[Message] = say("baseline.best_single_model")

    def refusal(self, *, scored: tuple[bool, ...], binary: bool, constant_p: bool) -> Message | None:
        return None if scored else say("baseline.needs_a_model")

    def decide(self, sample: Labelled, *, epsilon: float, alpha: float) -> Decision:
        weighted = np.where(sample.asked[:, None], sample.alone / sample.p[:, None], 0.0)
        model = int(np.argmin(weighted.sum(axis=0)))
        return Decision((model,), (Stage(model, None),))


SAYS = {
    "baseline.people_only": gettext_noop("People label everything."),
    "baseline.best_single_model": gettext_noop(
        "The model with the fewest errors on the asked items labels everything."
    ),
    "baseline.needs_a_model": gettext_noop("'best_single_model' needs a model"),
}
declare(SAYS)
