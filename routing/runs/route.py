"""Every item to its source, later models on their bands, people for the rest: what a manager asks for, and
the job "route_run" that does it.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_noop
from numpy.typing import NDArray

from annotation.common import audit
from annotation.common.locks import locked_project
from annotation.errors import ConflictError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.labelling import queue
from annotation.models import Job, User, WorkItem
from annotation.words import Words
from routing.common.sql import analyse_tables, insert_select
from routing.common.states import BUSY, State, change_state, was_cancelled
from routing.core import sampling
from routing.core.every_score.chain import FIRST_SCORE
from routing.core.keys import Thresholds
from routing.models import PoolItem, Route, Run, RunSource
from routing.runs import certify
from routing.runs.chains import at_or_below, thresholds_from_json
from routing.runs.events import run_completed, run_routed
from routing.runs.every_score_runs import Routing, takes, uses_every_score
from routing.runs.expert.route import route_with_expert
from routing.runs.label_counts import tally_of
from routing.runs.own_record import has_own_record
from routing.runs.predict import PendingItems, predict_band
from routing.runs.roster import who_is_asked
from routing.runs.source_changes import CHANGED, STOPPED, changed_source
from routing.runs.suggestions import refuse_routing_beside_suggestions
from routing.runs.usable_answers import passed_on
from routing.sources.backends import BackendError

ROUTED_PRIORITY = 5


def route(*, run: Run, user: User | None) -> Job:
    """Send every item to its source, run the later models on their bands, and give people the rest (job
    "route_run").

    Also possible where nothing was certified: then everything goes to people. Raises ConflictError where the
    run is not analysed, where a source cannot be asked now, or where one answers differently than at the
    freeze; then the run is marked invalid.
    """
    run.refresh_from_db()
    if run.state in (State.ROUTING, State.LABELLING, State.COMPLETE):
        raise ConflictError(
            _("Run %(run)s has been routed already.") % {"run": run.number}, code="routed_already"
        )
    if run.state != State.ANALYSED:
        raise ConflictError(
            _("Run %(run)s cannot be routed before it is analysed.") % {"run": run.number},
            code="not_analysed_yet",
        )
    if other := run.project.runs.filter(state__in=BUSY).exclude(pk=run.pk).first():
        raise ConflictError(
            _(
                "Run %(other)s is under way (%(state)s) with the same models and people. Finish or "
                "cancel it first."
            )
            % {"other": other.number, "state": other.get_state_display().lower()},
            code="other_run_under_way",
        )
    try:
        changed = changed_source(run)
    except BackendError as error:
        raise ConflictError(
            _("%(message)s Nothing was routed; %(then)s.")
            % {"message": error.message, "then": remedy_in_words(error)},
            code="source_not_reached",
        ) from error
    if changed:
        certify.mark_invalid(run=run, why=CHANGED, params={"source": changed.name}, actor=user)
        raise ConflictError(
            _("%(changed)s Nothing was routed. Put it back as it was, or start a new run.")
            % {"changed": CHANGED.sentence({"source": changed.name})},
            code="source_not_as_planned",
        )
    with transaction.atomic():
        locked_project(run.project_id)  # two may be routed at once
        refuse_routing_beside_suggestions(run)
        change_state(
            run,
            before=State.ANALYSED,
            after=State.ROUTING,
            refusal=ConflictError(
                _("Run %(run)s is being routed already.") % {"run": run.number}, code="being_routed"
            ),
        )
        audit.record(
            project=run.project, actor=user, action="run.routing_started", target=f"run:{run.number}"
        )
        return jobs.enqueue(
            project=run.project,
            kind_name="route_run",
            params={"run": run.pk},
            unique_key=f"route_run:{run.pk}",
            user=user,
        )


def remedy_in_words(error: BackendError) -> str:
    """What to do about a source that cannot be asked now, as the end of a sentence."""
    return _("put that right first") if error.permanent else _("try again later")


def route_run(context: JobContext) -> dict[str, Any]:
    runs = Run.objects.select_related("project", "certificate")
    run = runs.get(pk=context.params["run"], project=context.job.project_id)
    if run.state != State.ROUTING:
        return {"state": run.state}
    run_sources = list(run.run_sources.select_related("source", "run__project").order_by("position"))
    if changed := changed_source(run):
        actor = context.job.created_by
        certify.mark_invalid(run=run, why=CHANGED, params={"source": changed.name}, actor=actor)
        raise STOPPED.error(source=changed.name)
    if run.by_expert:
        return {"people": route_with_expert(context, run, run_sources)}
    route_items(context, run, run_sources, range(run.pool_size))
    return {"people": _ask_people(context, run, run_sources)}


def route_items(context: JobContext, run: Run, run_sources: list[RunSource], positions: range) -> None:
    """Send the items at these positions, of the pool or of what was taken in, to the sources that the
    certified policy names, and have the later models answer.
    """
    thresholds = thresholds_from_json(run.certificate.thresholds)
    if run.certificate.shape == FIRST_SCORE:
        _store_routes(context, run, run_sources[0], thresholds, positions)
        _predict_bands(context, run, run_sources, positions)
    else:
        routing = Routing.of(run, run_sources, thresholds, positions=positions)
        routing.predict(context)
        routing.store(context)
        analyse_tables(Route)


def _store_routes(
    context: JobContext, run: Run, first: RunSource, thresholds: Thresholds, positions: range
) -> None:
    """One statement per source on the keys; what no threshold takes goes to people."""
    if _routes_of(run, positions).exists():
        return
    with context.chunk(stage=Words(gettext_noop("Routes")), done=0):
        for position, among in sent_by_first_score(run, first, thresholds):
            # In the order in which the index of the routes has them, so that it grows at its end.
            rows = _items_at(run, positions).filter(among).order_by("item_id")
            values = rows.values_list("run", "item", Value(position))
            insert_select(Route, ("run", "item", "position"), values)
    analyse_tables(Route)


def sent_by_first_score(run: Run, first: RunSource, thresholds: Thresholds) -> Iterator[tuple[int, Q]]:
    """Of each source its position, people's last, and which items of a pool go there."""
    below = partial(takes, first) if uses_every_score(run) else at_or_below
    earlier = Q(pk__in=[])
    for position, taken in enumerate((*map(below, thresholds), Q()), start=1):
        # A source has those that no cheaper one takes.
        yield position, taken & ~earlier
        earlier |= taken


def _items_at(run: Run, positions: range) -> QuerySet[PoolItem]:
    return PoolItem.objects.filter(run=run, position__gte=positions.start, position__lt=positions.stop)


def _routes_of(run: Run, positions: range) -> QuerySet[Route]:
    routes = Route.objects.filter(run=run)
    if positions == range(run.pool_size) and not run.later_size:
        return routes
    return routes.filter(Exists(_items_at(run, positions).filter(item=OuterRef("item"))))


def _predict_bands(context: JobContext, run: Run, run_sources: list[RunSource], positions: range) -> None:
    """Each further model on the items that come to it.

    In their order: what one cannot answer comes to the next.
    """
    done = 0
    for run_source in run_sources[1:]:
        items = PendingItems(pending_routes(run, run_sources, run_source.position, positions))
        done += predict_band(context, run_source, items, done)


def pending_routes(
    run: Run, run_sources: list[RunSource], position: int, positions: range
) -> list[QuerySet[Route]]:
    """Of the items at `positions` the routes that come to a source, without those of items that a person has
    labelled: that label is delivered anyway. A query for each source that they were sent to.
    """
    routes = _routes_of(run, positions).filter(~has_own_record(run, item="item"))
    return [routes.filter(passed_on(run_sources, start, position)) for start in range(1, position + 1)]


def item_ids_of(parts: Sequence[QuerySet[Route]]) -> NDArray[np.int64]:
    """Ids of the items of routes, ascending."""
    queries = [part.order_by().values_list("item", flat=True) for part in parts]
    ids = (item for query in queries for item in query.iterator(chunk_size=10_000))
    return np.sort(np.fromiter(ids, dtype=np.int64))


def _ask_people(context: JobContext, run: Run, run_sources: list[RunSource]) -> int:
    """The batch of what is left for people; returns its size. What nobody could label is not asked again."""
    given_up = WorkItem.objects.filter(
        batch=run.calibration_batch, state=WorkItem.State.UNLABELABLE, item=OuterRef("item")
    )
    context.progress(stage=Words(gettext_noop("Counting")))
    tally = tally_of(run, run_sources)
    with context.chunk(stage=Words(gettext_noop("Work for people"))):
        parts = pending_routes(run, run_sources, len(run_sources) + 1, range(run.pool_size))
        items = item_ids_of([part.filter(~Exists(given_up)) for part in parts])
        now = timezone.now()
        if not len(items):
            change_state(
                run,
                before=State.ROUTING,
                after=State.COMPLETE,
                routed_at=now,
                completed_at=now,
                tally=tally,
                refusal=was_cancelled(run),
            )
            run_routed(run, people=0)
            run_completed(run)
            return 0
        batch = queue.create_batch(
            project=run.project,
            item_ids=map(int, items),
            blind=run.reference == Run.Reference.SETTLED,
            priority=ROUTED_PRIORITY,
            entropy=sampling.new_entropy(),
            overlap=run.overlap,
            overlap_share=run.overlap_share,
            people=who_is_asked(run),
            third_decides=run.reference == Run.Reference.SETTLED,
            suggests=run.suggestions,
        )
        change_state(
            run,
            before=State.ROUTING,
            after=State.LABELLING,
            routed_at=now,
            routed_batch=batch,
            tally=tally,
            refusal=was_cancelled(run),
        )
        run_routed(run, people=len(items))
    return len(items)
