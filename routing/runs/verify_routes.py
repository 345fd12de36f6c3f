"""The routes of a stored run against its certificate, which was verified (`verify_certificate`)."""

from collections.abc import Iterator

from django.db.models import Exists, OuterRef, Q

from routing.core.every_score.chain import FIRST_SCORE
from routing.models import PoolItem, Route, Run, RunSource
from routing.runs.chains import thresholds_from_json
from routing.runs.covered_items import covered_items
from routing.runs.every_score_runs import Routing
from routing.runs.expert.analyse import SLICES
from routing.runs.expert.route import Places, sent_by_thresholds, stretches
from routing.runs.own_record import has_own_record
from routing.runs.route import sent_by_first_score
from routing.runs.verification import recomputing, refuse


def verify_routes(run: Run) -> None:
    """Raises DiffersError where an item was sent elsewhere than the thresholds of the run's certificate send
    it.
    """
    if run.by_people or run.routed_at is None:
        return
    with recomputing():
        refuse(_faults(run))


def _faults(run: Run) -> Iterator[str]:
    run_sources = list(run.run_sources.select_related("source", "run__project").order_by("position"))
    for item in _elsewhere(run, run_sources):
        yield f"item {item!r} is sent to another source than its certificate sends it to"
    pool = PoolItem.objects.filter(run=run, item=OuterRef("item"))
    if Route.objects.filter(~Exists(pool), run=run).exists():
        yield "an item is sent to a source that is not in its pool"


def _elsewhere(run: Run, run_sources: list[RunSource]) -> Iterator[str]:
    """External ids of items that are."""
    if run.certificate.shape in (FIRST_SCORE, SLICES):
        for position, among in _conditions(run, run_sources):
            there = Route.objects.filter(run=run, item=OuterRef("item"), position=position)
            wrong = covered_items(run).filter(among, ~Exists(there))
            yield from wrong.values_list("item__external_id", flat=True)[:1]
        return
    for sent in _sent_by_scores(run, run_sources):
        routes = Route.objects.filter(run=run, item__in=list(sent))
        for item, name, position in routes.values_list("item", "item__external_id", "position"):
            if sent.pop(item) != position:
                yield name
        if sent:
            yield str(covered_items(run).get(item=next(iter(sent))).item.external_id)


def _conditions(run: Run, run_sources: list[RunSource]) -> Iterator[tuple[int, Q]]:
    if run.certificate.shape == SLICES:
        yield from stretches(run.certificate.thresholds)
    elif run.by_expert:
        yield from sent_by_thresholds(run, run_sources[0], Places(len(run_sources)))
    else:
        thresholds = thresholds_from_json(run.certificate.thresholds)
        yield from sent_by_first_score(run, run_sources[0], thresholds)


def _sent_by_scores(run: Run, run_sources: list[RunSource]) -> Iterator[dict[int, int]]:
    """Of items without a label that counts: of others models need not have been asked then."""
    last = covered_items(run).order_by("-position").values_list("position", flat=True).first() or 0
    routing = Routing.of(
        run,
        run_sources,
        thresholds_from_json(run.certificate.thresholds),
        people=Places(len(run_sources)).expert if run.by_expert else None,
        positions=range(last + 1),
    )
    covered = covered_items(run).filter(item=OuterRef("item"))
    yield from routing.sent(~has_own_record(run, item="item"), Exists(covered))
