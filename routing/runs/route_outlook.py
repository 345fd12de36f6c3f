"""What "Route" would do: how many items each source gets, and what is still to be paid and to be labelled."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from django.db.models import Exists, OuterRef, Q

from annotation.models import WorkItem
from routing.common.states import State
from routing.core.every_score.chain import FIRST_SCORE
from routing.core.keys import Threshold
from routing.models import PoolItem, RosterEntry, Run, RunSource
from routing.models.runs import cost_of_people
from routing.runs.chains import at_or_below, thresholds_from_json
from routing.runs.every_score_runs import (
    keeps,
    kept_on_own_score,
    looked_at,
    takes,
    uses_every_score,
    was_called,
)
from routing.runs.expert.analyse import SLICES
from routing.runs.expert.route import Places, stretches
from routing.runs.labelling_pace import expert_time_of, labelling_time_of
from routing.runs.own_record import has_own_record
from routing.runs.spending import Savings

MODEL, PEOPLE, CHECKED, EXPERT = "model", "people", "checked", "expert"


@dataclass(frozen=True)
class Destination:
    """A source, and the `items` that are sent there, of which `open` ones have no label by people yet; where
    `about` is true both are foretold, else counted.

    `kind`: a model by its `name`, people, people with a second look by the expert where the dearest model
    differs, or the expert.
    """

    kind: str
    name: str
    items: int
    open: int
    about: bool = False


@dataclass(frozen=True)
class RouteOutlook:
    """Attributes
    ----------
    rows
        Where the items go, in the order of the sources.
    about
        Later models whose own scores decide have not been asked yet: what they will keep is foretold.
    calls, models_cost
        Of models that are still to be asked, at the prices of the run.
    people, people_cost, people_seconds
        Items that annotators still label, what their labels cost, and the time for these at the pace seen.
    expert, second_looks, expert_cost, expert_seconds
        Items that the expert labels, and how many at most she looks at besides; cost and time of the former.
    labelled
        Items that people labelled already, who keep that label wherever they are sent; 0 in a run with an
        expert, whose policy says whose label is delivered.
    """

    rows: list[Destination]
    about: bool
    calls: int
    models_cost: Decimal
    people: int
    people_cost: Decimal
    people_seconds: float
    expert: int = 0
    second_looks: int = 0
    expert_cost: Decimal = Decimal(0)
    expert_seconds: float = 0
    labelled: int = 0

    @property
    def cost(self) -> Decimal:
        return self.models_cost + self.people_cost + self.expert_cost

    def net_saving(self, savings: Savings) -> Decimal:
        """Once all of this is paid besides what has been."""
        return 1 - (savings.paid + self.cost) / savings.people_only


def route_outlook(run: Run) -> RouteOutlook | None:
    """None but for a run that is analysed and not routed yet."""
    if run.state != State.ANALYSED:
        return None
    sources = list(run.run_sources.select_related("source", "run__project").order_by("position"))
    counted = _counted(run, sources)
    rows, calls = (counted, None) if counted is not None else _by_own_scores(run, sources)
    by_kind = {kind: sum(row.open for row in rows if row.kind == kind) for kind in (PEOPLE, CHECKED, EXPERT)}
    if calls is None:
        calls = [row.open for row in rows[: len(sources)]]
        calls[-1] += by_kind[CHECKED] if len(sources) > 1 else 0
    people = by_kind[PEOPLE] + by_kind[CHECKED]
    each = cost_of_people(run.reference, Decimal(1), run.overlap, run.overlap_share)
    second = labelling_time_of(run.project).seconds
    return RouteOutlook(
        rows=rows,
        about=any(row.about for row in rows),
        calls=sum(calls[1:]),
        models_cost=sum(
            (n * source.cost_per_label for n, source in zip(calls[1:], sources[1:], strict=True)), Decimal(0)
        ),
        people=people,
        people_cost=people * run.cost_per_item,
        people_seconds=float(people * each) * second,
        expert=by_kind[EXPERT],
        second_looks=by_kind[CHECKED],
        expert_cost=by_kind[EXPERT] * (run.expert_cost or Decimal(0)),
        expert_seconds=float(by_kind[EXPERT] * _seconds_of_expert(run, second)),
        labelled=0 if run.by_expert else _count_labelled(run),
    )


def _seconds_of_expert(run: Run, people: int) -> int:
    experts = run.roster.filter(role=RosterEntry.Role.EXPERT).values_list("user__username", flat=True)
    return expert_time_of(run.project, experts=list(experts), people=people).seconds if experts else people


def _counted(run: Run, sources: list[RunSource]) -> list[Destination] | None:
    """From the scores of the first model; None where others decide, too."""
    if run.certificate.shape == SLICES:
        places = Places(len(sources))
        found = {place: [0, 0] for place in range(1, places.expert + 1)}
        for place, among in stretches(run.certificate.thresholds):
            for part, count in enumerate(_count(run, among)):
                found[place][part] += count
        names = _models(sources) | {
            places.person: (PEOPLE, ""),
            places.checked: (CHECKED, ""),
            places.expert: (EXPERT, ""),
        }
        return [_destination(names[place], counts) for place, counts in found.items()]
    if run.certificate.shape != FIRST_SCORE:
        return None
    below = partial(takes, sources[0]) if run.by_expert or uses_every_score(run) else at_or_below
    earlier, rows = Q(pk__in=[]), []
    rest = (EXPERT if run.by_expert else PEOPLE, "")
    taken = map(below, thresholds_from_json(run.certificate.thresholds))
    for name, among in zip([*_models(sources).values(), rest], [*taken, Q()], strict=True):
        rows.append(_destination(name, _count(run, among & ~earlier)))
        earlier |= among
    return rows


def _destination(source: tuple[str, str], counts: Sequence[int], *, about: bool = False) -> Destination:
    (kind, name), (items, still) = source, counts
    return Destination(kind, name, items, still, about)


def _models(sources: list[RunSource]) -> dict[int, tuple[str, str]]:
    return {source.position: (MODEL, source.source.name) for source in sources}


def _count(run: Run, among: Q) -> tuple[int, int]:
    """Items of the pool that are so, and those of them that still wait for a label."""
    items = PoolItem.objects.filter(among, run=run, position__lt=run.pool_size)
    given_up = WorkItem.objects.filter(
        batch=run.calibration_batch, state=WorkItem.State.UNLABELABLE, item=OuterRef("item")
    )
    still = items.filter(~has_own_record(run, item="item"), ~Exists(given_up))
    return items.count(), still.count()


def _count_labelled(run: Run) -> int:
    items = PoolItem.objects.filter(run=run, position__lt=run.pool_size)
    return items.filter(has_own_record(run, item="item")).count()


def _by_own_scores(run: Run, sources: list[RunSource]) -> tuple[list[Destination], list[int]]:
    """Where models' own scores decide: the destinations, and how often each model is still called. What rests
    on the first model's scores alone is counted, as it has answered all items.
    """
    certificate = run.certificate
    first, *later = (sources[position - 1] for position in certificate.model_positions)
    if first.position != 1:
        return _foretold(run, sources, asked_about_all=first)
    thresholds = thresholds_from_json(certificate.thresholds)
    kept = _count(run, keeps(first, thresholds[0]))
    found = {first.position: kept}
    calls = {}
    for last in later:
        found[last.position], calls[last.position] = _kept_by_last(run, last, thresholds[-1])
    in_all = (run.pool_size, _count(run, Q())[1])
    rest = [every - sum(part) for every, part in zip(in_all, zip(*found.values(), strict=True), strict=True)]
    about = any(calls.values())
    rows = [
        _destination(name, found.get(position, (0, 0)), about=about and position != first.position)
        for position, name in _models(sources).items()
    ]
    rows.append(_destination((EXPERT if run.by_expert else PEOPLE, ""), rest, about=about))
    return rows, [calls.get(source.position, 0) for source in sources]


def _kept_by_last(run: Run, last: RunSource, threshold: Threshold) -> tuple[tuple[int, int], int]:
    """What the last model of a cascade keeps of the items that it is called for, and how many of these calls
    are still to come: of them it keeps the share that it keeps of those that it has answered.
    """
    called, known = looked_at(run, last.position), Q(was_called(last))
    answered = _count(run, called & known)[0]
    kept, kept_open = _count(run, called & Q(kept_on_own_score(last, threshold)))
    to_come = PoolItem.objects.filter(called, ~known, run=run, position__lt=run.pool_size)
    calls = to_come.filter(~has_own_record(run, item="item")).count()
    share = kept / answered if answered else _share_foretold(run, last)
    more = min(round(calls * share), _count(run, called & ~known)[1])
    return (kept + more, kept_open + more), calls


def _share_foretold(run: Run, last: RunSource) -> float:
    """Of the items that the first model does not keep, the share that the analysis expects the last to."""
    counts = _policy(run)["counts"]
    return float(counts[last.position - 1] / max(sum(counts[1:]), 1))


def _foretold(
    run: Run, sources: list[RunSource], *, asked_about_all: RunSource
) -> tuple[list[Destination], list[int]]:
    """From the certificate's figures. The items that people were asked about are a random sample, so that of
    each source's items the same share is still open.
    """
    counts = _policy(run)["counts"]
    still = _count(run, Q())[1]
    names = [*_models(sources).values(), (EXPERT if run.by_expert else PEOPLE, "")]
    items = _rounded(counts)
    open_items = _rounded([count * still / run.pool_size for count in counts])
    each = zip(names, zip(items, open_items, strict=True), strict=True)
    rows = [_destination(name, found, about=True) for name, found in each]
    calls = [row.open for row in rows[: len(sources)]]
    calls[asked_about_all.position - 1] = _count(run, ~Q(was_called(asked_about_all)))[1]
    return rows, calls


def _policy(run: Run) -> dict[str, Any]:
    """Of the figures the row of the policy that was chosen."""
    chain = run.certificate.figures["chain"]
    found: dict[str, Any] = next(row for row in chain["policies"] if row["index"] == chain["chosen"])
    return found


def _rounded(counts: Sequence[float]) -> list[int]:
    """In whole items, which together are as many as before."""
    ends = [round(end) for end in accumulate(counts)]
    return [end - before for before, end in pairwise([0, *ends])]
