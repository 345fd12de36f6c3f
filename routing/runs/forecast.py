"""What the measured pilot foretells of a plan: savings, a better m, and models that do not pay."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import permutations
from typing import Any

import numpy as np
from django.core.cache import cache
from django.utils.translation import gettext as _

from annotation.common.value_reader import as_text
from routing.core.arrays import Floats
from routing.core.forecast import (
    Forecast,
    Needless,
    Proposal,
    forecast,
    propose,
    worth_leaving_out,
)
from routing.core.forecast_paths import paths_of, suspected
from routing.core.losses import LossUnavailableError, is_quick
from routing.core.losses.looked_up import want
from routing.core.pilot import PilotData
from routing.core.plan import Plan
from routing.core.scores import make_score
from routing.models import MeasuredSource, Measurement, Prediction, Source
from routing.runs.plan import PlanOutlook
from routing.runs.score import ChosenScore
from routing.sources.backend_for import backend_for
from routing.sources.backends import Answer
from routing.sources.backends.base import digest
from routing.sources.charging import Charge
from routing.sources.mends import reader_for
from routing.sources.score_fields import fields_of
from routing.sources.trials import charge_of

REMEMBERED_SECONDS = 3600
NOTICEABLE = 0.005
"""A difference in expected saving below which a plan stays as it is."""
SMALLEST = Decimal(1).scaleb(-10)


@dataclass(frozen=True)
class PlanForecast:
    """What a measured plan will probably come to; money is in the project's currency.

    Attributes
    ----------
    now : routing.core.forecast.Forecast
        As the plan is.
    proposal : routing.core.forecast.Proposal or None
        The m that is expected to save most; None where no m can certify anything.
    needless : routing.core.forecast.Needless or None
        A model without which more would be saved, with its name in `leave_out`.
    """

    now: Forecast
    proposal: Proposal | None
    needless: Needless | None
    leave_out: str = ""

    @property
    def rows(self) -> list[Forecast]:
        """Half of the m that is proposed, that m, and twice it, as far as they can certify anything."""
        if self.proposal is None:
            return []
        found = (self.proposal.half, self.proposal.best, self.proposal.twice)
        return [one for one in found if one is not None]

    @property
    def pays(self) -> bool:
        """Whether any m is expected to save money."""
        return self.proposal is not None and self.proposal.best.net_saving > 0

    @property
    def better_m(self) -> int | None:
        """The m that is proposed, where it is expected to save noticeably more than the plan's."""
        if self.proposal is None or self.proposal.best.net_saving < self.now.net_saving + NOTICEABLE:
            return None
        return self.proposal.best.m

    @property
    def needless_in_words(self) -> str:
        """That a model does not pay, in a sentence; "" where each of them does."""
        if self.needless is None:
            return ""
        return _(
            "%(model)s does not pay: without it the run is expected to save %(without)s %% of what people "
            "alone would cost, with it %(now)s %%."
        ) % {
            "model": self.leave_out,
            "without": f"{100 * self.needless.without:.0f}",
            "now": f"{100 * self.needless.now:.0f}",
        }


def forecast_of_plan(seen: PlanOutlook) -> PlanForecast | None:
    """What the measurement foretells of the plan; None where nothing was measured that still fits, the
    losses cannot be computed now, or an expert is the reference (`references`).

    It is remembered for a while: a form asks at each change of a field.
    """
    measurement = seen.measured.usable
    if measurement is None or seen.expert is not None:
        return None
    key = f"plan_forecast:{measurement.pk}:" + digest(
        plan=repr(seen.plan),
        sources=priced(seen.sources),
        score=seen.score.key,
    )
    if (found := cache.get(key)) is None:
        try:
            found = _forecast_of_plan(seen.plan, measurement, seen.sources, seen.score)
        except LossUnavailableError:
            return None
        cache.set(key, found, REMEMBERED_SECONDS)
    return found


def priced(sources: Sequence[Source]) -> list[Any]:
    """What a forecast depends on of a plan's models, beside the plan."""
    return [[source.pk, source.cost_function, source.prices] for source in sources]


def _forecast_of_plan(
    plan: Plan, measurement: Measurement, sources: Sequence[Source], score: ChosenScore
) -> PlanForecast:
    measured = measured_pilot(plan, measurement, sources, score)
    plan, pilot, errors = measured.plan, measured.pilot, measured.errors
    paths = paths_of(plan, pilot, errors)
    needless = worth_leaving_out(plan, pilot, errors)
    return PlanForecast(
        now=forecast(plan, paths),
        proposal=propose(plan, paths),
        needless=needless,
        leave_out=sources[needless.place].name if needless else "",
    )


@dataclass(frozen=True)
class MeasuredPilot:
    """What a plan's own models said about the measured pilot.

    Attributes
    ----------
    plan : routing.core.plan.Plan
        With what their answers cost on average.
    pilot : routing.core.pilot.PilotData
    errors : (g, K)
        Foretold loss of their answers, in the light of all models that were measured.
    """

    plan: Plan
    pilot: PilotData
    errors: Floats


def measured_pilot(
    plan: Plan, measurement: Measurement, sources: Sequence[Source], score: ChosenScore
) -> MeasuredPilot:
    """Raises LossUnavailableError where losses cannot be computed now."""
    asked = _in_order_of(sources, list(measurement.sources.select_related("source").order_by("position")))
    whole, scores, paid = _pilot(measurement, asked, {sources[0].pk: score})
    _want_losses(plan, whole)
    wrong = suspected(whole, plan.loss_function())
    places = [place for place, one in enumerate(asked) if one.source in sources]
    own, costs = scores[:, places], paid[:, places]
    unusable = np.isnan(own[:, 0])
    answers = whole.answers[:, places].copy()
    answers[unusable, 0] = None
    errors = wrong[:, places].copy()
    errors[unusable, 0] = 0.0
    pilot = PilotData(np.where(unusable, 1.0, own[:, 0]), whole.v, answers, own, costs)
    return MeasuredPilot(replace(plan, costs=_measured_costs(plan, costs)), pilot, errors)


def _in_order_of(sources: Sequence[Source], asked: Sequence[MeasuredSource]) -> list[MeasuredSource]:
    """What was measured, with the plan's models in the plan's order: prices may have changed since, and it
    follows them.
    """
    by_source = {one.source_id: one for one in asked}
    planned = iter([by_source[source.pk] for source in sources])
    return [next(planned) if one.source in sources else one for one in asked]


def _want_losses(plan: Plan, pilot: PilotData) -> None:
    """Ask for all losses between two models' answers together, where they are looked up: what reads them
    stops at the first one that is not computed yet.
    """
    loss = plan.loss_function()
    if not is_quick(loss):
        columns = permutations(pilot.answers.T, 2)
        pairs = (pair for two in columns for pair in zip(*two, strict=True) if None not in pair)
        want(loss, list(pairs))


def _measured_costs(plan: Plan, costs: Floats) -> tuple[Decimal, ...]:
    """What the models' answers cost on average, and people as in the plan."""
    means = [Decimal(repr(float(mean))).quantize(SMALLEST) for mean in np.nanmean(costs, axis=0)]
    return (*means, plan.costs[-1])


def _pilot(
    measurement: Measurement, asked: Sequence[MeasuredSource], scores: dict[int, ChosenScore]
) -> tuple[PilotData, Floats, Floats]:
    """What all sources answered, in the order of `asked`, their own scores and costs (g, K), NaN for none.

    `scores` are those of sources that are not routed by the score of their backend.
    """
    items = list(measurement.items.order_by("order").values_list("item", flat=True))
    rows = {item: row for row, item in enumerate(items)}
    answers: list[list[str | None]] = [[None] * len(asked) for _item in items]
    own, costs = np.full((len(items), len(asked)), np.nan), np.full((len(items), len(asked)), np.nan)
    for column, one in enumerate(asked):
        chosen = scores.get(one.source_id) or ChosenScore(backend_for(one.source).default_score)
        compute, reader = make_score(chosen.name, chosen.params), reader_for(one.source)
        found = Prediction.objects.filter(item__in=items, source=one.source_id, fingerprint=one.fingerprint)
        price = _price_now(one)
        for answer in found:
            row = rows[answer.item_id]
            costs[row, column] = price(answer)
            if answer.value is not None:
                answers[row][column] = as_text(answer.value)
                judged = compute(fields_of(answer, reader))
                if not judged.reason:
                    own[row, column] = judged.u
    u = np.nan_to_num(own[:, 0], nan=1.0)
    return PilotData.of(u=u, v=[0] * len(items), answers=answers, own_scores=own), own, costs


def _price_now(measured: MeasuredSource) -> Callable[[Prediction], Decimal]:
    """What an answer would cost at today's prices; what it did cost, where these do not tell."""
    then, now = Charge(measured), charge_of(measured.source)

    def price(stored: Prediction) -> Decimal:
        used = Answer(
            None, tokens_in=stored.tokens_in, tokens_out=stored.tokens_out, latency_ms=stored.latency_ms
        )
        return now.cost(used)[0] if then.cost(used)[0] == stored.cost else stored.cost

    return price
