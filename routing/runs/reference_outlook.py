"""What each answer to "whose label is right" would cost in a plan, for people who err more or less often."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from django.core.cache import cache
from django.utils.translation import gettext as _, gettext_lazy

from annotation.models import Project
from annotation.templatetags.hypac import money, percent
from routing.core.choices import default_rule
from routing.core.losses import LossUnavailableError
from routing.core.plan import PlanError
from routing.core.reference.forecast import PeopleForecast
from routing.core.reference.plan import HALF, ExpertPlan, validate_expert_plan
from routing.core.reference.ways import (
    ALONE,
    ASSUMED,
    EVERYTHING,
    PEOPLES_WORD,
    SETTLED,
    WITH_PEOPLE,
    Way,
    recommended,
    ways,
)
from routing.core_language import refusal_in_words
from routing.models import Measurement
from routing.runs.expert.freeze import estimate_before
from routing.runs.forecast import REMEMBERED_SECONDS, measured_pilot, priced
from routing.runs.labelling_pace import LabellingTime
from routing.runs.plan import PlanOutlook
from routing.runs.plan_options import later_scores
from routing.runs.reference import PRICE_OF_EXPERTS
from routing.sources.backends.base import digest

TITLES = {
    PEOPLES_WORD: gettext_lazy("One person's word"),
    SETTLED: gettext_lazy("Two people, and a third"),
    WITH_PEOPLE: gettext_lazy("An expert with people"),
    ALONE: gettext_lazy("An expert alone with the models"),
    EVERYTHING: gettext_lazy("An expert for everything"),
}
IN_DOUBT = PeopleForecast(0.05, 0.6)
"""What is recommended for where nobody has measured people: the dearer of the middle cases."""


@dataclass(frozen=True)
class Assumption:
    """What all references would cost if people err so often.

    Attributes
    ----------
    people : routing.core.reference.forecast.PeopleForecast
    ways : tuple of routing.core.reference.ways.Way
    estimated : bool
        Whether an earlier run found it.
    """

    people: PeopleForecast
    ways: tuple[Way, ...]
    estimated: bool = False

    @property
    def cheapest(self) -> Way:
        """The cheapest of those that count people's mistakes."""
        return recommended(self.ways)

    @property
    def in_words(self) -> str:
        """How often people err, and how they do."""
        share = percent(self.people.error, 1)
        if self.estimated:
            return _("%(share)s: as an earlier run found people") % {"share": share}
        if self.people.shared:
            return _("%(share)s, mostly mistakes of the dearest model") % {"share": share}
        return _("%(share)s, mistakes of their own") % {"share": share}


@dataclass(frozen=True)
class Row:
    """A reference with what it takes of each role: labels stand in `way`, their time here, in seconds."""

    way: Way
    people_time: float
    expert_time: float
    cheapest: bool
    """Of those that count people's mistakes."""

    @property
    def title(self) -> str:
        return str(TITLES[self.way.name])


@dataclass(frozen=True)
class ReferenceOutlook:
    """`assumptions` holds what an earlier run found first, if one did, and `chosen` that, or what a
    recommendation is made for in doubt. Money is in `currency`; the times are those of one label.

    `by_expert`: whether an expert is the reference of the plan itself.
    """

    assumptions: tuple[Assumption, ...]
    chosen: Assumption
    expert_cost: Decimal
    currency: str
    people_time: LabellingTime
    expert_time: LabellingTime
    by_expert: bool

    def rows(self, assumption: Assumption) -> list[Row]:
        """Of the table for this assumption."""
        return [
            Row(
                way,
                way.people * self.people_time.seconds,
                way.expert * self.expert_time.seconds,
                way == assumption.cheapest,
            )
            for way in assumption.ways
        ]

    @property
    def tables(self) -> list[tuple[Assumption, list[Row]]]:
        """That of the recommendation first."""
        others = [one for one in self.assumptions if one is not self.chosen]
        return [(one, self.rows(one)) for one in (self.chosen, *others)]

    @property
    def times_in_words(self) -> str:
        """What a label is taken to need of each role, and whether that was timed here."""
        people, expert = {"s": self.people_time.seconds}, {"s": self.expert_time.seconds}
        return " ".join(
            (
                _("Time at %(s)s s for a label.") % people
                if self.people_time.labels
                else _("Time at %(s)s s for a label, which is assumed: too few have been timed here.")
                % people,
                _("A label by the expert at %(s)s s, as hers were timed here.") % expert
                if self.expert_time.labels
                else _(
                    "A label by the expert at %(s)s s, as one by an annotator, which is assumed: too few of "
                    "hers have been timed here."
                )
                % expert,
            )
        )

    @property
    def recommendation(self) -> str:
        """Which reference to choose, in a sentence."""
        values = {
            "share": percent(self.chosen.people.error, 1),
            "way": str(TITLES[self.chosen.cheapest.name]),
            "cost": self._least,
        }
        if self.chosen.cheapest.name == EVERYTHING:
            return (
                _(
                    "People erred on %(share)s when an expert last looked: cheapest of what counts their "
                    "mistakes is “%(way)s”, for about %(cost)s, so ask her and start no run."
                )
                if self.chosen.estimated
                else _(
                    "If people err on %(share)s, most of it as the dearest model does, which nobody has "
                    "measured yet, cheapest of what counts their mistakes is “%(way)s”, for about %(cost)s, "
                    "so ask her and start no run."
                )
            ) % values
        return (
            _(
                "People erred on %(share)s when an expert last looked: cheapest of what counts their "
                "mistakes is “%(way)s”, for about %(cost)s."
            )
            if self.chosen.estimated
            else _(
                "If people err on %(share)s, most of it as the dearest model does, which nobody has "
                "measured yet, cheapest of what counts their mistakes is “%(way)s”, for about %(cost)s."
            )
        ) % values

    @property
    def warning(self) -> str:
        """That the plan's run is expected to cost more than its expert alone, in a sentence; "" where it is
        not, or its reference is no expert.
        """
        if not self.by_expert or self.chosen.cheapest.name != EVERYTHING:
            return ""
        return _(
            "No certified choice is expected to be cheaper than an expert for everything, about %(cost)s: "
            "ask her and start no run."
        ) % {"cost": self._least}

    @property
    def _least(self) -> str:
        return money(round(Decimal(self.chosen.cheapest.cost), 2), self.currency)


def references_of_plan(project: Project, seen: PlanOutlook) -> ReferenceOutlook | None:
    """None where no expert can be the reference of such a plan, or nothing was measured that fits it
    (`missing_for_references`).

    It is remembered for a while, as a forecast.
    """
    measurement = seen.measured.usable
    if measurement is None:
        return None
    try:
        run = _expert_plan(project, seen)
    except PlanError:
        return None
    found = estimate_before(project.pk)
    people = (*([found] if found else []), *ASSUMED)
    key = f"references:{measurement.pk}:" + digest(
        plan=repr((run, people)), sources=priced(seen.sources), score=seen.score.key
    )
    if (seen_before := cache.get(key)) is None:
        try:
            seen_before = _ways(run, measurement, seen, people)
        except LossUnavailableError:
            return None
        cache.set(key, seen_before, REMEMBERED_SECONDS)
    rows = tuple(
        Assumption(one, each, estimated=one is found) for one, each in zip(people, seen_before, strict=True)
    )
    return ReferenceOutlook(
        assumptions=rows,
        chosen=rows[0] if found else next(row for row in rows if row.people == IN_DOUBT),
        expert_cost=run.expert_cost,
        currency=project.currency,
        people_time=seen.people_time,
        expert_time=seen.expert_time,
        by_expert=seen.expert is not None,
    )


def warning_of_references(project: Project, seen: PlanOutlook) -> str:
    """`ReferenceOutlook.warning`; "" where nothing can be told."""
    if seen.expert is None:
        return ""
    found = references_of_plan(project, seen)
    return "" if found is None else found.warning


def missing_for_references(project: Project, seen: PlanOutlook) -> str:
    """What is missing for `references_of_plan` to tell something, in a sentence; "" where nothing is."""
    try:
        _expert_plan(project, seen)
    except PlanError as error:
        why = refusal_in_words(error)
        return _("What each reference would cost cannot be told, as none of them is an expert: %s") % why
    if seen.measured.usable is None:
        return _(
            "What each answer to “whose label is right” would cost can be told once the models are measured."
        )
    if references_of_plan(project, seen) is None:
        return _("What each answer to “whose label is right” would cost cannot be told now.")
    return ""


def _expert_plan(project: Project, seen: PlanOutlook) -> ExpertPlan:
    """The plan with an expert as its reference, with what the form says of her or else the defaults.

    Raises PlanError where no expert can be.
    """
    plan = replace(
        seen.plan,
        costs=(*seen.plan.costs[:-1], project.human_cost),
        rule=default_rule(later_scores=later_scores(seen.sources)),
        data_set_size=None,
    )
    run = (
        replace(seen.expert, plan=plan)
        if seen.expert
        else ExpertPlan(plan, PRICE_OF_EXPERTS * project.human_cost, HALF)
    )
    validate_expert_plan(run)
    return run


def _ways(
    run: ExpertPlan, measurement: Measurement, seen: PlanOutlook, people: Sequence[PeopleForecast]
) -> tuple[tuple[Way, ...], ...]:
    measured = measured_pilot(run.plan, measurement, seen.sources, seen.score)
    run = replace(run, plan=measured.plan)
    return tuple(ways(run, measured.pilot, measured.errors, one) for one in people)
