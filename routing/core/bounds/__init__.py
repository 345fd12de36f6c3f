"""Upper confidence bounds under one contract.  A new one is one file and one line."""

from __future__ import annotations

from routing.core.bounds.base import Bound, Evidence, recommended
from routing.core.bounds.betting import BettingUpper, PaperBetting
from routing.core.bounds.binomial import Binomial
from routing.core.bounds.clt import CentralLimit
from routing.core.bounds.empirical_bernstein import EmpiricalBernstein
from routing.core.bounds.hoeffding import Hoeffding
from routing.core.bounds.hoeffding_bentkus import HoeffdingBentkus
from routing.core.bounds.hypergeometric import Hypergeometric
from routing.core.registry import Registry

BOUNDS: Registry[Bound] = Registry(
    "bound",
    Hypergeometric(),
    Binomial(),
    BettingUpper(),
    HoeffdingBentkus(),
    EmpiricalBernstein(),
    Hoeffding(),
    PaperBetting(),
    CentralLimit(),
)

__all__ = ["BOUNDS", "Bound", "Evidence", "recommended"]
