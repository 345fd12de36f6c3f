"""The job "prepare_run": models at work, scores, chains, then the calibration batch. Every step can be taken
up again.
"""

from typing import Any

import numpy as np
from django.db.models import Exists, OuterRef, Subquery
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation import queue
from annotation.errors import JobFailedError
from annotation.jobs import JobContext
from routing.core import sampling
from routing.core.certificate import slices_document
from routing.core.chain import PilotData, build_chains, cut_slices
from routing.core.losses import LossUnavailableError
from routing.core.rules import split_fixed_sequence
from routing.models import Draw, DrawItem, ItemScore, PilotItem, PoolItem, Prediction, Run, RunSource, Spend
from routing.runs.predict import PendingItems, predict_missing
from routing.services.answers import table_of_answers
from routing.services.chains import chains_to_json
from routing.services.freeze import freeze
from routing.services.plans import plan_of
from routing.services.run_usability import refuse_unusable
from routing.services.scoring import score_of
from routing.services.sql import analyse_tables
from routing.services.states import State, move
from routing.services.stored_scores import score_missing

KEYS_CHUNK = 50_000
CALIBRATION_PRIORITY = 1


def prepare(context: JobContext) -> dict[str, object]:
    run = Run.objects.select_related("project").get(pk=context.params["run"])
    if run.state != State.PREPARING:
        return {"state": run.state}
    _freeze(context, run)
    run_sources = list(run.run_sources.select_related("source", "run__project").order_by("position"))
    groups = _groups(run, run_sources)
    with context.chunk(total=sum(items.count for _, items, _, _ in groups)):
        pass
    done = 0
    for run_source, items, stage, words in groups:
        done += predict_missing(
            context, run_source=run_source, items=items, stage=stage, words=words, done=done
        )
    for run_source in run_sources:
        score_missing(context, run_source=run_source, score=score_of(run, run_source))
    refuse_unusable(run, run_sources)
    _fill_keys(context, run, run_sources[0])
    _build_chains(context, run, run_sources)
    _ask_people(context, run)
    return {"state": run.state}


def _freeze(context: JobContext, run: Run) -> None:
    """Pool, pilot and draw, where the request that started the run left them to this job."""
    if Draw.objects.filter(run=run).exists():
        return
    with context.chunk(stage="Pool and draw"):
        freeze(run, pilot=context.params["pilot"], last=context.params["last"])
    analyse_tables(PoolItem)


def _groups(run: Run, run_sources: list[RunSource]) -> list[tuple[RunSource, PendingItems, str, str]]:
    """Who answers for what: the first source for the pool, the others for the pilot and for what people are
    asked.
    """
    first, *later = run_sources
    pool = PendingItems([PoolItem.objects.filter(run=run)])
    pilot = PendingItems([PilotItem.objects.filter(run=run)])
    asked = PendingItems([DrawItem.objects.filter(draw__run=run, asked=True)])
    groups = [(first, pool, Spend.Stage.POOL, first.source.name)]
    for run_source in later:
        name = run_source.source.name
        groups.append((run_source, pilot, Spend.Stage.PILOT, f"{name} on the pilot"))
        groups.append((run_source, asked, Spend.Stage.CALIBRATION, f"{name} on the calibration set"))
    return [(run_source, items, stage.value, words) for run_source, items, stage, words in groups]


def _fill_keys(context: JobContext, run: Run, first: RunSource) -> None:
    """Copy the first source's scores to the pool, where they are the keys of the routing."""
    score = ItemScore.objects.filter(
        prediction__item=OuterRef("item"),
        prediction__source=first.source_id,
        prediction__fingerprint=first.fingerprint,
        name=score_of(run, first).key,
    )
    for start in range(0, run.pool_size, KEYS_CHUNK):
        part = run.pool_items.filter(position__gte=start, position__lt=start + KEYS_CHUNK, u__isnull=True)
        with context.chunk(stage="Order of the items"):
            part.update(u=Subquery(score.values("value")[:1]))


def _build_chains(context: JobContext, run: Run, run_sources: list[RunSource]) -> None:
    """Fix the chains, or the slices along which one is to be learnt, before the first label can exist."""
    run.refresh_from_db()
    if run.chains is not None:
        return
    context.progress(stage="Chains of policies")
    keys = _keys(run)
    plan = plan_of(run)
    reference = None
    if run.target == Run.Target.POPULATION:
        reference = np.ones(run.pool_size, dtype=np.bool_)
        drawn = run.pool_items.filter(Exists(DrawItem.objects.filter(draw__run=run, item=OuterRef("item"))))
        reference[list(drawn.values_list("position", flat=True))] = False
    u, v = keys.real.copy(), keys.imag.astype(np.int64)
    if plan.rule == split_fixed_sequence.RULE.name:
        slices = slices_document(cut_slices(plan, u=u, v=v, reference=reference))
        fixed: dict[str, Any] = {"chains": [], "slices": slices}
    else:
        pilot = _pilot(run, run_sources) if len(run_sources) > 1 else None
        try:
            chains = build_chains(plan, u=u, v=v, pilot=pilot, reference=reference)
        except LossUnavailableError as error:
            raise JobFailedError(
                _("The losses could not be computed: %(error)s.") % {"error": error}, permanent=False
            ) from error
        fixed = {"chains": chains_to_json(chains)}
    with context.chunk():
        Run.objects.filter(pk=run.pk, chains__isnull=True).update(**fixed)
    run.refresh_from_db()


def _keys(run: Run) -> NDArray[np.complex128]:
    """Keys of the pool by position, packed: real part u, imaginary part v; both are exact."""
    keys = np.empty(run.pool_size, dtype=np.complex128)
    rows = run.pool_items.order_by("position").values_list("position", "u", "v")
    for position, u, v in rows.iterator(chunk_size=10_000):
        if u is None:
            raise JobFailedError(
                _("The item at place %(position)s of the pool has no uncertainty score.")
                % {"position": position}
            )
        keys[position] = complex(u, v)
    return keys


def _pilot(run: Run, run_sources: list[RunSource]) -> PilotData | None:
    items = list(run.pilot_items.order_by("order").values_list("item_id", flat=True))
    if not items:
        return None
    keys: dict[int, tuple[float | None, int]] = {}
    for start in range(0, len(items), 500):
        part = run.pool_items.filter(item__in=items[start : start + 500])
        keys.update({item: (u, v) for item, u, v in part.values_list("item_id", "u", "v")})
    answers, scores = table_of_answers(run, run_sources, items)
    own = np.array([scores[item] for item in items], dtype=np.float64)  # None becomes NaN
    return PilotData.of(
        u=np.array([keys[item][0] for item in items], dtype=np.float64),
        v=[keys[item][1] for item in items],
        answers=[answers[item] for item in items],
        own_scores=own,
        costs=_costs(run_sources, items),
    )


def _costs(run_sources: list[RunSource], items: list[int]) -> NDArray[np.float64]:
    """What each model's answer on each of ``items`` cost, (n, S - 1); NaN where it gave none."""
    rows = {item: row for row, item in enumerate(items)}
    costs = np.full((len(items), len(run_sources)), np.nan)
    for column, run_source in enumerate(run_sources):
        for start in range(0, len(items), 500):
            paid = Prediction.objects.filter(
                item__in=items[start : start + 500],
                source=run_source.source_id,
                fingerprint=run_source.fingerprint,
            )
            for item, cost in paid.values_list("item_id", "cost"):
                costs[rows[item], column] = cost
    return costs


def _ask_people(context: JobContext, run: Run) -> None:
    """Make the calibration batch: blind, in random order, before all other work."""
    asked = DrawItem.objects.filter(draw__run=run, asked=True).order_by("item_id")
    with context.chunk(stage="Calibration set"):
        batch = queue.create_batch(
            project=run.project,
            item_ids=list(asked.values_list("item_id", flat=True)),
            blind=True,
            priority=CALIBRATION_PRIORITY,
            entropy=sampling.new_entropy(),
            overlap=run.overlap,
            overlap_share=run.overlap_share,
        )
        move(
            run,
            before=State.PREPARING,
            after=State.CALIBRATING,
            calibration_batch=batch,
            refusal=_("Run %(run)s was cancelled.") % {"run": run.number},
        )
