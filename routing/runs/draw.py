"""What a run draws: pool and pilot before anything is known, the calibration set once it has committed to
what models said, and to the chains.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from django.db.models import F, Value, Window
from django.db.models.functions import RowNumber
from django.utils.translation import gettext_noop
from numpy.typing import NDArray

from annotation import failures
from annotation.errors import ConflictError, HypacError
from annotation.jobs.context import JobContext
from annotation.words import Words
from routing.common.sql import TieBreak, analyse_tables, insert_select
from routing.core import sampling
from routing.models import Draw, DrawItem, Measurement, PilotItem, PoolItem, Run
from routing.runs.expert.freeze import critical_values
from routing.runs.plan import plan_of
from routing.runs.plan_fields import probabilities_by_position
from routing.runs.pool import pool_of

CHUNK = 5_000
AT_ONCE = 20_000
"""Items of a pool up to which the request that starts a run freezes it. A larger one takes seconds, and is
the first thing that the run's job does, before any model is asked."""


def freeze_pool(run: Run, *, pilot: int, last: int) -> None:
    """Store the pool of a new run, with its hash, and its pilot where that is drawn from the whole of it.
    Call it in a transaction.

    `pilot` is the size of the pilot, `last` the position of the last item that the plan knew: what was
    imported since is not in the pool. Where the plan rests on a measurement, that is the pilot. It locks none
    of the items: people and imports go on meanwhile.

    Raises ConflictError where items were labelled or deleted since the plan was made, or where one has no
    probability any more.
    """
    items = pool_of(run.project, run.target).filter(position__lte=last)
    items = items.annotate(
        place=Window(RowNumber(), order_by=F("position").asc()) - 1,
        tie=TieBreak(run.salt, "external_id"),
    )
    rows = items.order_by().values_list(Value(run.pk), "pk", "place", "tie")
    count = insert_select(PoolItem, ("run", "item", "position", "v"), rows)
    if count != run.pool_size:
        raise changed_meanwhile()
    names = run.pool_items.order_by("position").values_list("item__external_id", flat=True)
    run.pool_hash = sampling.pool_hash(names.iterator(chunk_size=CHUNK))
    run.save(update_fields=["pool_hash"])
    _probabilities(run)
    if run.target != Run.Target.POPULATION:
        _store_pilot(run, pilot, exclude=None)


def freeze_missing_pool(context: JobContext, run: Run) -> None:
    """Pool and pilot, where the request that started the run left them to this job."""
    if run.pool_hash:
        return
    with context.chunk(stage=Words(gettext_noop("Pool"))):
        freeze_pool(run, pilot=context.params["pilot"], last=context.params["last"])
    analyse_tables(PoolItem)


def draw_pilot_outside(context: JobContext, run: Run) -> None:
    """For the target population, once the calibration set is drawn: the pilot, of what that leaves."""
    if run.target != Run.Target.POPULATION or run.pilot_items.exists():
        return
    in_draw = DrawItem.objects.filter(draw__run=run)
    drawn = run.pool_items.filter(item__in=in_draw.values("item")).values_list("position", flat=True)
    with context.chunk(stage=Words(gettext_noop("Pilot"))):
        _store_pilot(run, context.params["pilot"], exclude=np.array(drawn, dtype=np.int64))


def _store_pilot(run: Run, size: int, *, exclude: NDArray[np.int64] | None) -> None:
    if run.measurement is not None:
        piloted = _measured(run, run.measurement)
    else:
        places = sampling.draw_pilot(
            pool_size=run.pool_size, size=size, entropy=int(run.entropy), exclude=exclude
        )
        piloted = _items_at(run, places)
    PilotItem.objects.bulk_create(
        (PilotItem(run=run, item_id=item, order=order) for order, item in enumerate(piloted)),
        batch_size=CHUNK,
    )


def store_draw(run: Run, *, entropy: int, randomness: dict[str, Any]) -> Draw:
    """Draw the calibration set of a run by this number, which `randomness` tells the origin of. Call it in a
    transaction.
    """
    p = run.p.normalize()
    each = _probabilities(run)
    drawn = sampling.draw_calibration(pool_size=run.pool_size, m=run.m, p=each or p, entropy=entropy)
    asked = int(drawn.asked.sum())
    draw = Draw.objects.create(
        run=run,
        m=run.m,
        n=asked,
        randomness=randomness,
        critical=critical_values(run, plan_of(run), asked),
    )
    DrawItem.objects.bulk_create(
        (
            DrawItem(
                draw=draw,
                item_id=item,
                order=order,
                asked=bool(drawn.asked[order]),
                probability=each[position] if each else p,
            )
            for order, (item, position) in enumerate(
                zip(_items_at(run, drawn.positions), drawn.positions.tolist(), strict=True)
            )
        ),
        batch_size=CHUNK,
    )
    return draw


def _probabilities(run: Run) -> list[Decimal]:
    """Of asking, in the order of the pool, where each item has its own. Raises ConflictError where they are
    not those of the plan any more.
    """
    each = probabilities_by_position(run.pool_items.all(), run.p_column) if run.p_column else None
    if each and (None in each or min(filter(None, each)) != run.p_min):
        raise changed_meanwhile()
    return [one for one in each or () if one is not None]


CHANGED = failures.register(
    "items_changed_meanwhile",
    gettext_noop("The items changed while the run was planned. Look at the plan again, then start."),
)


def changed_meanwhile() -> HypacError:
    return CHANGED.error(raised_as=ConflictError)


def _measured(run: Run, measurement: Measurement) -> list[int]:
    """Ids of the items of a pilot that was drawn from this pool before the plan was chosen."""
    if measurement.pool_hash != run.pool_hash:
        raise changed_meanwhile()
    return list(measurement.items.order_by("order").values_list("item_id", flat=True))


def _items_at(run: Run, positions: NDArray[np.int64]) -> list[int]:
    """Ids of the items at these places of the pool, in their order."""
    found: dict[int, int] = {}
    wanted: Sequence[int] = positions.tolist()
    for start in range(0, len(wanted), 500):
        part = run.pool_items.filter(position__in=wanted[start : start + 500])
        found.update(part.values_list("position", "item_id"))
    return [found[position] for position in wanted]
