"""What a run fixes before anything is known: pool, salt, pilot and draw."""

from collections.abc import Sequence

import numpy as np
from django.db.models import F, Value, Window
from django.db.models.functions import RowNumber
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.errors import ConflictError
from routing.core import sampling
from routing.core.plan import Plan
from routing.models import Draw, DrawItem, PilotItem, PoolItem, Run
from routing.services.plan_fields import Asking, probabilities_by_position
from routing.services.plans import pool_of
from routing.services.sql import TieBreak, insert_select

CHUNK = 5_000


def freeze(run: Run, plan: Plan, asking: Asking) -> None:
    """Store pool, pilot and draw of a new run; sets its pool hash. Call it in the transaction that makes the
    run. `asking` is what `plan` was made with.

    Raises ConflictError where items came or were labelled since the plan was made.
    """
    items = pool_of(run.project, run.target).annotate(
        place=Window(RowNumber(), order_by=F("position").asc()) - 1,
        tie=TieBreak(run.salt, "external_id"),
    )
    rows = items.order_by().values_list(Value(run.pk), "pk", "place", "tie")
    count = insert_select(PoolItem, ("run", "item", "position", "v"), rows)
    if count != run.pool_size:
        raise ConflictError(
            _("The items changed while the run was planned. Look at the plan again, then start.")
        )
    names = run.pool_items.order_by("position").values_list("item__external_id", flat=True)
    run.pool_hash = sampling.pool_hash(names.iterator(chunk_size=CHUNK))
    run.save(update_fields=["pool_hash"])

    entropy = int(run.entropy)
    each = probabilities_by_position(run.pool_items.all(), asking) if asking.column else None
    drawn = sampling.draw_calibration(pool_size=count, m=run.m, p=each or plan.p.normalize(), entropy=entropy)
    exclude = drawn.positions if run.target == Run.Target.POPULATION else None
    pilot = sampling.draw_pilot(pool_size=count, size=plan.pilot, entropy=entropy, exclude=exclude)
    PilotItem.objects.bulk_create(
        (PilotItem(run=run, item_id=item, order=order) for order, item in enumerate(_items_at(run, pilot))),
        batch_size=CHUNK,
    )
    draw = Draw.objects.create(run=run, m=run.m, n=int(drawn.asked.sum()))
    DrawItem.objects.bulk_create(
        (
            DrawItem(
                draw=draw,
                item_id=item,
                order=order,
                asked=bool(drawn.asked[order]),
                probability=each[position] if each else plan.p,
            )
            for order, (item, position) in enumerate(
                zip(_items_at(run, drawn.positions), drawn.positions.tolist(), strict=True)
            )
        ),
        batch_size=CHUNK,
    )


def _items_at(run: Run, positions: NDArray[np.int64]) -> list[int]:
    """Ids of the items at these places of the pool, in their order."""
    found: dict[int, int] = {}
    wanted: Sequence[int] = positions.tolist()
    for start in range(0, len(wanted), 500):
        part = run.pool_items.filter(position__in=wanted[start : start + 500])
        found.update(part.values_list("position", "item_id"))
    return [found[position] for position in wanted]
