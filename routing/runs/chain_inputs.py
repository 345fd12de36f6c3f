"""What chains may look at: the first model's keys of the pool, and what all models said of the pilot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_noop
from numpy.typing import NDArray

from annotation import failures
from annotation.common.ranges import of_items
from annotation.models import Item
from routing.core.arrays import Bools, Floats, Ints
from routing.core.chain import Chain, PilotData, build_chains
from routing.core.every_score.build import ScoreChains, build_score_chains
from routing.core.plan import Plan
from routing.core.sampling import tie_breaks
from routing.models import DrawItem, Prediction, Run, RunSource
from routing.runs.usable_answers import has_usable_answer, table_of_answers

NO_SCORE = failures.register(
    "item_without_score",
    gettext_noop("The item at place %(position)s of the pool has no uncertainty score."),
)


@dataclass(frozen=True)
class ChainInputs:
    """What chains may look at: the first model's keys of the pool, by position, and the pilot.

    Attributes
    ----------
    u, v : (N,)
    usable : (N,)
        Whether its answer can be used.
    pilot : PilotData or None
        None without a pilot and with one model alone.
    reference : (N,) or None
        For the target population the items outside the draw.
    """

    u: Floats
    v: Ints
    usable: Bools
    pilot: PilotData | None
    reference: Bools | None

    @classmethod
    def of(cls, run: Run, run_sources: Sequence[RunSource]) -> "ChainInputs":
        keys = _keys(run)
        reference = None
        if run.target == Run.Target.POPULATION:
            reference = np.ones(run.pool_size, dtype=np.bool_)
            in_draw = Exists(DrawItem.objects.filter(draw__run=run, item=OuterRef("item")))
            reference[list(run.pool_items.filter(in_draw).values_list("position", flat=True))] = False
        usable = np.ones(run.pool_size, dtype=np.bool_)
        # An answer that cannot be used is as uncertain as can be.
        unusable = run.pool_items.filter(~has_usable_answer(run_sources[0]), u=1.0)
        usable[list(unusable.values_list("position", flat=True))] = False
        pilot = _pilot(run, run_sources)
        return cls(keys.real.copy(), keys.imag.astype(np.int64), usable, pilot, reference)

    def chains(self, plan: Plan) -> tuple[Chain, ...]:
        """Those with all thresholds on the first model's score."""
        return build_chains(plan, u=self.u, v=self.v, pilot=self.pilot, reference=self.reference)

    def score_chains(self, plan: Plan) -> ScoreChains:
        """Those of `every_score`."""
        return build_score_chains(
            plan, u=self.u, v=self.v, usable=self.usable, pilot=self.pilot, reference=self.reference
        )


def _keys(run: Run) -> NDArray[np.complex128]:
    """Keys of the pool by position, packed: real part u, imaginary part v; both are exact."""
    keys = np.empty(run.pool_size, dtype=np.complex128)
    rows = run.pool_items.order_by("position").values_list("position", "u", "v")
    for position, u, v in rows.iterator(chunk_size=10_000):
        if u is None:
            raise NO_SCORE.error(position=position)
        keys[position] = complex(u, v)
    return keys


def _pilot(run: Run, run_sources: Sequence[RunSource]) -> PilotData | None:
    items = list(run.pilot_items.order_by("order").values_list("item_id", flat=True))
    if not items or len(run_sources) == 1:
        return None
    answers, scores = table_of_answers(run, run_sources, items)
    keys = _keys_of(run, items, {item: of_item[0] for item, of_item in scores.items()})
    own = np.array([scores[item] for item in items], dtype=np.float64)  # None becomes NaN
    return PilotData.of(
        u=np.array([keys[item][0] for item in items], dtype=np.float64),
        v=[keys[item][1] for item in items],
        answers=[answers[item] for item in items],
        own_scores=own,
        costs=_costs(run_sources, items),
    )


def _keys_of(
    run: Run, items: list[int], scores: Mapping[int, float | None]
) -> dict[int, tuple[float | None, int]]:
    """Keys of items, also of those that were measured and stay outside the pool."""
    keys: dict[int, tuple[float | None, int]] = {}
    for start in range(0, len(items), 500):
        part = run.pool_items.filter(item__in=items[start : start + 500])
        keys.update({item: (u, v) for item, u, v in part.values_list("item_id", "u", "v")})
    if outside := [item for item in items if item not in keys]:
        names = dict(Item.objects.filter(of_items("pk", outside)).values_list("pk", "external_id"))
        breaks = tie_breaks(run.salt, [names[item] for item in outside]).tolist()
        for item, v in zip(outside, breaks, strict=True):
            found = scores[item]
            keys[item] = (1.0 if found is None else found, v)
    return keys


def _costs(run_sources: Sequence[RunSource], items: list[int]) -> NDArray[np.float64]:
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
