"""Items that came later are routed by the thresholds of a run whose target is everything from the same
source: what a manager asks for, and the job "take_in" that does it.

The run's pool, its draw, its certificate and that one's hash stay as they are. Each intake can be taken up
again where it stopped; it counts, is delivered and reaches people all at once, when it is finished.
"""

import secrets
from typing import Any

from django.db import transaction
from django.db.models import F, Max, Min, Value, Window
from django.db.models.functions import RowNumber
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.common.locks import locked_against_jobs, locked_project
from annotation.errors import ConflictError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext, JobPausedError
from annotation.labelling import queue
from annotation.labelling.settlement import lock_settling
from annotation.models import Job, User, WorkBatch
from annotation.words import Words
from routing.common.sql import TieBreak, analyse_tables, insert_select
from routing.common.states import ROUTED, State, was_cancelled
from routing.core import sampling
from routing.models import Intake, PoolItem, Run, RunSource, Spend
from routing.runs.complete import complete_if_done
from routing.runs.label_counts import tally_of
from routing.runs.later.audit import check_for_drift, choose_marked, mark_later_items, policy_answers
from routing.runs.later.intakes import KIND, unfinished_intake
from routing.runs.later.items import new_items_of, objection_now
from routing.runs.missing_answers import missing_for, refuse_missing
from routing.runs.pool import last_place
from routing.runs.predict import PendingItems, predict_missing
from routing.runs.roster import who_is_asked
from routing.runs.route import ROUTED_PRIORITY, item_ids_of, pending_routes, remedy_in_words, route_items
from routing.runs.score import copy_scores_to_pool, score_missing, score_of
from routing.runs.source_changes import STOPPED, changed_source
from routing.sources.backends import BackendError
from routing.sources.sent_answers import refuse_while_sending

VOID = failures.register(
    "take_in_void",
    gettext_noop(
        "Run %(run)s is no longer valid, so nothing more is taken in by its thresholds, and what was begun "
        "is not covered by it. Start a new run."
    ),
)
ABANDONED = failures.register(
    "take_in_abandoned",
    gettext_noop("Another run was started before this was finished: it is not gone on with."),
)


def take_in(*, run: Run, user: User | None, accept_missing: bool = True) -> Job:
    """Have items that came after the pool was frozen (`new_items_of`) routed by the run's thresholds (job
    "take_in"). Where an earlier intake was not finished, that one is gone on with.

    Raises InputError where a source whose answers are sent in lacks some for them, unless `accept_missing`;
    ConflictError, in words, for a run that takes in nothing, now or at all, where nothing is new, and
    where a source cannot be asked or would answer otherwise than when the plan was frozen.
    """
    run.refresh_from_db()
    if words := objection_now(run):
        raise ConflictError(words, code=words.code)
    refuse_while_sending(run.project)
    _refuse_changed(run)
    with transaction.atomic():
        locked_against_jobs(run.project_id)
        if words := objection_now(run):
            raise ConflictError(words, code=words.code)
        intake = unfinished_intake(run)
        if intake is None:
            if not new_items_of(run).order_by().exists():
                raise ConflictError(_nothing_new(run), code="nothing_new")
            if not accept_missing:
                frozen = run.run_sources.select_related("source").order_by("position")
                refuse_missing(missing_for(new_items_of(run), [one.source for one in frozen]))
            intake = Intake.objects.create(
                run=run,
                number=(run.intakes.aggregate(last=Max("number"))["last"] or 0) + 1,
                last=last_place(run.project),
                created_by=user,
            )
        job = jobs.enqueue(
            project=run.project,
            kind_name=KIND,
            params={"run": run.pk, "intake": intake.pk},
            unique_key=f"{KIND}:{run.pk}",
            user=user,
        )
        audit.record(
            project=run.project,
            actor=user,
            action="run.take_in_started",
            target=f"run:{run.number}",
            data={"intake": intake.number},
        )
    return job


def _nothing_new(run: Run) -> str:
    return _(
        "There is nothing to take in: every item that came after the start of run %(run)s is in a run, has a "
        "label, was measured, or came with an import that brought labels."
    ) % {"run": run.number}


def _refuse_changed(run: Run) -> None:
    """Unlike before the first routing this breaks no certificate: nothing that it speaks of is asked anew."""
    try:
        changed = changed_source(run)
    except BackendError as error:
        raise ConflictError(
            _("%(message)s Nothing was taken in; %(then)s.")
            % {"message": error.message, "then": remedy_in_words(error)},
            code="source_not_reached",
        ) from error
    if changed:
        raise ConflictError(
            _(
                "%(source)s was changed after the run was planned (its fingerprint differs), and what is "
                "certified speaks of it as it was. Nothing was taken in. Put it back as it was, or start a "
                "new run."
            )
            % {"source": changed.name},
            code="source_not_as_planned",
        )


def take_in_items(context: JobContext) -> dict[str, Any]:
    """The job "take_in"."""
    runs = Run.objects.select_related("project", "certificate")
    run = runs.get(pk=context.params["run"], project=context.job.project_id)
    intake = run.intakes.get(pk=context.params["intake"])
    if intake.finished_at is not None:  # by a worker that died before it could say so
        return _result(intake)
    _refuse_void(run, intake)
    run_sources = list(run.run_sources.select_related("source", "run__project").order_by("position"))
    if changed := changed_source(run):
        raise STOPPED.error(source=changed.name)
    context.stop_once(lambda: bool(_now(run).invalid_reasons))
    try:
        positions = _freeze(context, run, intake)
        if len(positions):
            _refuse_void(_now(run), intake)
            _score(context, run, run_sources[0], intake, positions)
            _refuse_void(_now(run), intake)
            route_items(context, run, run_sources, positions)
    except JobPausedError:
        _refuse_void(_now(run), intake)
        raise
    _finish(context, run, run_sources, intake, positions)
    return _result(intake)


def _now(run: Run) -> Run:
    """How it is by now: models cost money, and are asked no more once an alarm has marked the run."""
    return Run.objects.only("number", "state", "invalid_reasons").get(pk=run.pk)


def _result(intake: Intake) -> dict[str, Any]:
    return {"taken_in": intake.items, "people": intake.people}


def _refuse_void(run: Run, intake: Intake) -> None:
    if run.state not in ROUTED:
        raise was_cancelled(run)
    if run.invalid_reasons:
        raise VOID.error(run=run.number)
    if intake.abandoned_at is not None:
        raise ABANDONED.error()


def _freeze(context: JobContext, run: Run, intake: Intake) -> range:
    """Which items are taken in, with their tie-breaks: fixed before a model is asked about any. Returns their
    positions.
    """
    if not intake.pool_items.exists():
        with context.chunk(stage=Words(gettext_noop("New items"))):
            # Not two at once: what is in a pool of one is in none of another.
            locked_project(run.project_id)
            behind = run.pool_items.aggregate(last=Max("position"))["last"] + 1
            items = new_items_of(run).filter(position__lte=intake.last)
            items = items.annotate(
                place=Window(RowNumber(), order_by=F("position").asc()) - 1 + behind,
                tie=TieBreak(run.salt, "external_id"),
            )
            rows = items.order_by().values_list(Value(run.pk), "pk", Value(intake.pk), "place", "tie")
            insert_select(PoolItem, ("run", "item", "intake", "position", "v"), rows)
        analyse_tables(PoolItem)
    ends = intake.pool_items.aggregate(first=Min("position"), last=Max("position"))
    return range(0) if ends["first"] is None else range(ends["first"], ends["last"] + 1)


def _score(context: JobContext, run: Run, first: RunSource, intake: Intake, positions: range) -> None:
    items = PendingItems([intake.pool_items.all()])
    with context.chunk(total=items.count):
        pass
    predict_missing(
        context,
        frozen_source=first,
        items=items,
        stage=Spend.Stage.POOL.value,
        says=Words.name(first.source.name),
        done=0,
    )
    score_missing(context, run_source=first, score=score_of(run, first))
    copy_scores_to_pool(context, run, first, positions)


def _finish(
    context: JobContext, run: Run, run_sources: list[RunSource], intake: Intake, positions: range
) -> None:
    """From here on the run covers them, and people are asked: about theirs, and about what is audited."""
    context.progress(stage=Words(gettext_noop("Counting")))
    tally = tally_of(run, run_sources, finishing=intake)
    marked = choose_marked(run, intake)
    by_models = policy_answers(run, marked)
    audited = [item for item in marked if item in by_models]
    with context.chunk(stage=Words(gettext_noop("Work for people"))):
        if run.later_audit_batch is not None:
            lock_settling(run.later_audit_batch)  # before the run, as an answer does: there may be an alarm
        current = Run.objects.select_for_update(no_key=True, of=("self",)).select_related("project")
        run = current.get(pk=run.pk)
        intake.refresh_from_db()
        _refuse_void(run, intake)
        people = list(
            map(int, item_ids_of(pending_routes(run, run_sources, len(run_sources) + 1, positions)))
        )
        mark_later_items(run, marked)
        _ask(run, people, audited)
        now = timezone.now()
        intake.items, intake.people, intake.finished_at = len(positions), len(people), now
        intake.save(update_fields=["items", "people", "finished_at"])
        # Complete again below where nobody has anything to do, be it after an alarm.
        run.state, run.completed_at = State.LABELLING, None
        run.later_size += len(positions)
        run.tally = tally
        run.save(
            update_fields=[
                *("state", "completed_at", "later_size", "tally"),
                *("routed_batch", "later_audit_batch"),
            ]
        )
        audit.record(
            project=run.project,
            actor=intake.created_by,
            action="run.took_in",
            target=f"run:{run.number}",
            data={"intake": intake.number, "items": intake.items, "people": intake.people},
        )
        if marked:
            check_for_drift(run)  # what went to people counts at once
        complete_if_done(run)


def _ask(run: Run, people: list[int], audited: list[int]) -> None:
    """Work for people in the batch of the routing, and for the audit in another one: whoever has seen what
    models said labels blind nowhere. Both look the same to whoever labels.
    """
    if people and run.routed_batch is None:
        run.routed_batch = _batch(run, blind=False)
    if audited and run.later_audit_batch is None:
        run.later_audit_batch = _batch(run, blind=True)
    secrets.SystemRandom().shuffle(people)
    both = ((run.routed_batch, people), (run.later_audit_batch, audited))
    queue.add_items(
        batches=[(batch, items) for batch, items in both if batch is not None and items],
        overlap_share=run.overlap_share,
        people=who_is_asked(run),
    )


def _batch(run: Run, *, blind: bool) -> WorkBatch:
    return queue.create_batch(
        project=run.project,
        item_ids=(),
        blind=blind,
        priority=ROUTED_PRIORITY,
        entropy=sampling.new_entropy(),
        overlap=run.overlap,
        overlap_share=run.overlap_share,
        people=who_is_asked(run),
        suggests=run.suggestions and not blind,
    )
