"""The routing of a run with an expert: each item to a model, its annotator, both together, or the expert."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.utils import timezone
from django.utils.translation import gettext_noop

from annotation.common.bulk import copy_rows
from annotation.jobs.context import JobContext
from annotation.labelling import queue
from annotation.models import WorkBatch, WorkItem
from annotation.words import Words
from routing.common.sql import analyse_tables, insert_select
from routing.common.states import State, change_state, was_cancelled
from routing.core import sampling
from routing.core.every_score.chain import FIRST_SCORE
from routing.core.keys import Key
from routing.core.reference.audit import audited
from routing.core.reference.sources import CHECKED, EXPERT, PERSON
from routing.models import AuditedItem, ExpertRequest, PoolItem, Route, Run, RunSource
from routing.runs.chains import at_or_below, thresholds_from_json
from routing.runs.events import run_completed, run_routed
from routing.runs.every_score_runs import Routing, takes
from routing.runs.expert.analyse import SLICES
from routing.runs.expert.counts import tally_with_expert
from routing.runs.expert.requests import hand_over_absent
from routing.runs.own_record import has_own_record
from routing.runs.predict import PendingItems, predict_band
from routing.runs.roster import who_is_asked, who_is_the_expert
from routing.runs.usable_answers import passed_on

Why = ExpertRequest.Why
ROUTED_PRIORITY = 5
PART = 10_000


@dataclass(frozen=True)
class Places:
    """Positions of the sources after the K models, as routes name them."""

    models: int

    @property
    def person(self) -> int:
        return self.models + PERSON + 1

    @property
    def checked(self) -> int:
        return self.models + CHECKED + 1

    @property
    def expert(self) -> int:
        return self.models + EXPERT + 1


def route_with_expert(context: JobContext, run: Run, run_sources: list[RunSource]) -> int:
    """Store the routes, have the models answer theirs, and ask people and the expert; returns how many items
    people and the expert are asked about.
    """
    places = Places(len(run_sources))
    if run.certificate.shape == SLICES:
        _store_slices(context, run)
    elif run.certificate.shape == FIRST_SCORE:
        _store_thresholds(context, run, run_sources[0], places)
    else:
        thresholds = thresholds_from_json(run.certificate.thresholds)
        routing = Routing.of(run, run_sources, thresholds, people=places.expert)
        routing.predict(context)
        routing.store(context)
    analyse_tables(Route)
    _predict(context, run, run_sources, places)
    return _ask_people(context, run, run_sources, places)


def _store_slices(context: JobContext, run: Run) -> None:
    """One statement for each stretch of slices that go to one source; what lies above all ends goes with the
    last.
    """
    if Route.objects.filter(run=run).exists():
        return
    with context.chunk(stage=Words(gettext_noop("Routes")), done=0):
        for source, among in stretches(run.certificate.thresholds):
            _insert(run, among, source)


def stretches(slices: Sequence[dict[str, Any]]) -> Iterator[tuple[int, Q]]:
    below = Q()
    stretches = [(source, list(group)) for source, group in groupby(slices, key=lambda one: one["source"])]
    for number, (source, group) in enumerate(stretches):
        if number == len(stretches) - 1:
            yield source, below
            return
        end = at_or_below(Key(float(group[-1]["u"]), int(group[-1]["v"])))
        yield source, below & end
        below = ~end


def _store_thresholds(context: JobContext, run: Run, first: RunSource, places: Places) -> None:
    if Route.objects.filter(run=run).exists():
        return
    with context.chunk(stage=Words(gettext_noop("Routes")), done=0):
        for position, among in sent_by_thresholds(run, first, places):
            _insert(run, among, position)


def sent_by_thresholds(run: Run, first: RunSource, places: Places) -> Iterator[tuple[int, Q]]:
    """Of each source its position, the expert's last, and which items of a pool go there."""
    earlier = Q(pk__in=[])
    below = map(partial(takes, first), thresholds_from_json(run.certificate.thresholds))
    for position, taken in enumerate(below, start=1):
        yield position, taken & ~earlier
        earlier |= taken
    yield places.expert, ~earlier


def _insert(run: Run, among: Q, position: int) -> None:
    rows = PoolItem.objects.filter(among, run=run).order_by("item_id")
    insert_select(Route, ("run", "item", "position"), rows.values_list("run", "item", Value(position)))


def _predict(context: JobContext, run: Run, run_sources: list[RunSource], places: Places) -> None:
    """Each later model on the items that come to it, and the dearest on those of which an annotator's label
    is compared with its answer.
    """
    done = 0
    for run_source in run_sources[1:]:
        items = PendingItems(_coming(run, run_sources, run_source.position))
        done += predict_band(context, run_source, items, done)
    if len(run_sources) > 1:
        routes = Route.objects.filter(~has_own_record(run, item="item"), run=run)
        items = PendingItems([routes.filter(position=places.checked)])
        predict_band(context, run_sources[-1], items, done)


def _coming(run: Run, run_sources: list[RunSource], position: int) -> list[QuerySet[Route]]:
    """Routes that come to a model, or to nobody after the last; without items that have a label."""
    routes = Route.objects.filter(~has_own_record(run, item="item"), run=run)
    most = min(position, len(run_sources))
    return [routes.filter(passed_on(run_sources, start, position)) for start in range(1, most + 1)]


def _ask_people(context: JobContext, run: Run, run_sources: list[RunSource], places: Places) -> int:
    """Two batches: what annotators label, and what the expert does, to which second looks are added."""
    context.progress(stage=Words(gettext_noop("Counting")))
    tally = tally_with_expert(run, run_sources)
    with context.chunk(stage=Words(gettext_noop("Work for people"))):
        people, expert = _for_people(run, places), _for_expert(run, run_sources, places)
        now = timezone.now()
        batch, experts = (
            queue.create_batch(
                project=run.project,
                item_ids=items,
                blind=True,
                priority=ROUTED_PRIORITY,
                entropy=sampling.new_entropy(),
                people=who,
            )
            for items, who in ((people, who_is_asked(run)), (expert, who_is_the_expert(run)))
        )
        ExpertRequest.objects.bulk_create(
            (ExpertRequest(run=run, item_id=item, why=Why.ROUTED) for item in expert), batch_size=PART
        )
        _mark_audited(run, batch)
        change_state(
            run,
            before=State.ROUTING,
            after=State.LABELLING if people or expert else State.COMPLETE,
            routed_at=now,
            completed_at=None if people or expert else now,
            routed_batch=batch,
            expert_routed_batch=experts,
            tally=tally,
            refusal=was_cancelled(run),
        )
        hand_over_absent(run)
        run_routed(run, people=len(people) + len(expert))
        if not people and not expert:
            run_completed(run)
    return len(people) + len(expert)


def _for_people(run: Run, places: Places) -> list[int]:
    """Ids of the items that go to their annotators; of those of the calibration set nobody is asked again."""
    routes = Route.objects.filter(
        ~has_own_record(run, item="item"),
        ~_given_up(run),
        run=run,
        position__in=(places.person, places.checked),
    )
    return _sorted(routes)


def _for_expert(run: Run, run_sources: list[RunSource], places: Places) -> list[int]:
    """Ids of the items that go to the expert at once: by the policy, or as no model has a usable answer; in
    random order, in which their work items are numbered, so that one which comes later does not stand out.

    An asked item on which everybody agrees goes to her where the policy says so; what she has seen does not.
    """
    seen = Exists(ExpertRequest.objects.filter(run=run, item=OuterRef("item")))
    parts = [
        Route.objects.filter(run=run, position=places.expert),
        *_coming(run, run_sources, len(run_sources) + 1),
    ]
    found = list({item for part in parts for item in _sorted(part.filter(~seen))})
    secrets.SystemRandom().shuffle(found)
    return found


def _given_up(run: Run) -> Exists:
    return Exists(
        WorkItem.objects.filter(
            batch__in=[run.calibration_batch_id, run.expert_batch_id],
            state=WorkItem.State.UNLABELABLE,
            item=OuterRef("item"),
        )
    )


def _sorted(routes: QuerySet[Route]) -> list[int]:
    rows = routes.order_by().values_list("item", flat=True).iterator(chunk_size=PART)
    return list(map(int, np.sort(np.fromiter(rows, dtype=np.int64))))


def _mark_audited(run: Run, batch: WorkBatch) -> None:
    """The items of annotators that the expert labels too, by a hash, before anybody labels them.

    Its salt is kept nowhere: that of the run stands in the certificate, and whoever labels may not work out
    which of their items are audited.
    """
    if not run.audit_share:
        return
    salt = sampling.make_salt(sampling.new_entropy())
    rows = list(batch.work_items.order_by("order", "item").values_list("item", "item__external_id", "order"))
    marks = []
    for start in range(0, len(rows), PART):
        part = rows[start : start + PART]
        marked = audited(salt, [name for _, name, _ in part], run.audit_share).tolist()
        marks += [(run.pk, item, order) for (item, _, order), mark in zip(part, marked, strict=True) if mark]
    copy_rows(AuditedItem, ("run", "item", "place"), marks)
