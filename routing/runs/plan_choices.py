"""What one gets for each promise: the least labels, and by the measured pilot the size of the draw that costs
least in all; and three promises to begin with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil

from django.core.cache import cache
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.models import Project
from routing.core import outlook as core_outlook
from routing.core.chain import number_of_chains
from routing.core.forecast import Forecast, Proposal, most_drawn, propose
from routing.core.forecast_paths import paths_of
from routing.core.losses import LossUnavailableError
from routing.core.plan import Plan
from routing.runs.forecast import REMEMBERED_SECONDS, MeasuredPilot, measured_pilot
from routing.runs.plan import NEARLY_ALL, PlanOutlook
from routing.sources.backends.base import digest

EPSILONS = tuple(map(Decimal, ("0.01", "0.02", "0.03", "0.05", "0.1")))
FEW_ITEMS, MANY_ITEMS = 100, 1_000


@dataclass(frozen=True)
class Preset:
    """A promise to begin with."""

    name: str
    epsilon: Decimal
    alpha: Decimal
    title: str | Promise
    means: str | Promise


PRESETS = (
    Preset(
        "cheaper",
        Decimal("0.1"),
        Decimal("0.1"),
        _("Cheaper"),
        _("Models keep most items. For a first look, or where mistakes are found and mended later."),
    ),
    Preset(
        "balanced",
        Decimal("0.05"),
        Decimal("0.05"),
        _("Balanced"),
        _("What most data sets for training take: few mistakes, and people on the unsure items."),
    ),
    Preset(
        "stricter",
        Decimal("0.02"),
        Decimal("0.01"),
        _("Stricter"),
        _("More labels by people. For test sets, and results that others rely on."),
    ),
)


@dataclass(frozen=True)
class PromiseOutlook:
    """What a promise takes.

    Attributes
    ----------
    least : int
        Labels by people with which anything could be certified.
    m : int or None
        How many items to draw: what is expected to cost least in all, else enough to certify something; None
        where there are too few items.
    labels : int
        By people for the calibration, with that m; with the least where there is none.
    proposal : routing.core.forecast.Proposal or None
        By the measured pilot; None where nothing was measured, or no m can certify anything.
    measured : bool
    pool_size : int
    """

    epsilon: Decimal
    alpha: Decimal
    least: int
    m: int | None
    labels: int
    proposal: Proposal | None
    measured: bool
    pool_size: int

    @property
    def best(self) -> Forecast | None:
        return None if self.proposal is None else self.proposal.best

    @property
    def others(self) -> list[Forecast]:
        """Half of the m that is proposed and twice it, as far as they can certify anything."""
        if self.proposal is None:
            return []
        return [one for one in (self.proposal.half, self.proposal.twice) if one is not None]

    @property
    def nearly_all(self) -> bool:
        """Whether nearly everything will probably go to people."""
        if self.best is not None:
            return sends_nearly_all(self.best, self.pool_size)
        return self.measured or self.m is None or max(self.m, self.least) >= NEARLY_ALL * self.pool_size


def sends_nearly_all(foretold: Forecast, pool_size: int) -> bool:
    """Whether people will probably label nearly everything."""
    return foretold.people >= NEARLY_ALL * pool_size


def suggested_m(count: int) -> int:
    """A draw that is worth its labels: a fifth of the items, 100 to 1,000, and no more than there are."""
    return max(1, min(max(FEW_ITEMS, min(MANY_ITEMS, count // 5)), count))


def promises_of_plan(
    project: Project, seen: PlanOutlook, promises: Sequence[tuple[Decimal, Decimal]]
) -> list[PromiseOutlook]:
    """The plan with each of these (epsilon, alpha) in place of its own; none where an expert is its
    reference, as its table of references says what that takes.

    It is remembered for a while: a form asks at each change of a field.
    """
    if seen.expert is not None:
        return []
    measurement = seen.measured.usable
    plan = replace(seen.plan, epsilon=EPSILONS[-1], alpha=EPSILONS[-1], m=suggested_m(seen.plan.pool_size))
    key = f"plan_promises:{project.pk}:" + digest(
        plan=repr(plan),
        promises=[list(map(str, one)) for one in promises],
        sources=[source.pk for source in seen.sources],
        score=seen.score.key,
        measurement=measurement and measurement.pk,
    )
    if (found := cache.get(key)) is None:
        try:
            pilot = None
            if measurement is not None:
                pilot = measured_pilot(plan, measurement, seen.sources, seen.score)
            found = [_promise(plan, pilot, *one) for one in promises]
        except LossUnavailableError:
            return [_promise(plan, None, *one) for one in promises]  # it may be otherwise a little later
        cache.set(key, found, REMEMBERED_SECONDS)
    return found


def _promise(plan: Plan, pilot: MeasuredPilot | None, epsilon: Decimal, alpha: Decimal) -> PromiseOutlook:
    plan = replace(pilot.plan if pilot else plan, epsilon=epsilon, alpha=alpha)
    least = core_outlook.smallest_n(plan, chains=number_of_chains(plan))
    proposal = None
    if pilot is not None:
        proposal = propose(plan, paths_of(plan, pilot.pilot, pilot.errors))
    drawn = ceil(Fraction(least) / Fraction(plan.p))
    most = most_drawn(plan)
    m: int | None = min(max(2 * drawn, suggested_m(plan.pool_size)), most)
    if proposal is not None:
        m = proposal.best.m
    elif drawn > most:
        m = None
    labels = least if m is None else int(m * plan.p)
    return PromiseOutlook(epsilon, alpha, least, m, labels, proposal, pilot is not None, plan.pool_size)
