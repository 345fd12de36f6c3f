"""Methods to compare with, by name.  None yields a certificate.  A new one is one file and one line."""

from __future__ import annotations

from routing.core.baselines.bargain import Bargain
from routing.core.baselines.base import Baseline, Labelled
from routing.core.baselines.coannotating import CoAnnotating
from routing.core.baselines.cse import CascadedSelectiveEvaluation
from routing.core.baselines.lotus import LotusCascade
from routing.core.baselines.one_source import BestSingleModel, PeopleOnly
from routing.core.baselines.pac_labeling import PacLabeling
from routing.core.registry import Registry

BASELINES: Registry[Baseline] = Registry(
    "baseline",
    PacLabeling("pac_labeling_1", 0),
    PacLabeling("pac_labeling_2", 1),
    CascadedSelectiveEvaluation(),
    CoAnnotating(),
    Bargain("bargain_1", 0),
    Bargain("bargain_2", 1),
    LotusCascade("lotus_1", 0),
    LotusCascade("lotus_2", 1),
    BestSingleModel(),
    PeopleOnly(),
)

__all__ = ["BASELINES", "Baseline", "Labelled"]
