"""What was paid, and the two savings, which are never mixed."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from annotation.models import WorkItem
from routing.common.states import ROUTED
from routing.models import DrawItem, MeasuredSource, Prediction, Run, RunSource, Spend
from routing.runs.budget import spends_of_models
from routing.runs.counts import tally
from routing.runs.usable_answers import reaches

ZERO = Decimal(0)


@dataclass(frozen=True)
class Paid:
    """One line of the ledger, summed: who was paid for what. `source` is "" for people."""

    source: str
    stage: str
    stage_title: str
    quantity: int
    amount: Decimal


@dataclass(frozen=True)
class Savings:
    """Shares of what people would have cost, as decimals; 0.25 is 25 %. None before the run is routed.

    Attributes
    ----------
    net : Decimal or None
        1 - everything really paid / (N c_h), where c_h is what people cost per item. While people still
        label, what they will be paid is counted, too.
    routing : Decimal or None
        The paper's figure: 1 - cost of the sources that the routing uses / (c_h per item), over the items
        that were not asked about for calibration.
    final : bool
        Whether everything is paid.
    """

    net: Decimal | None
    routing: Decimal | None
    paid: Decimal
    people_only: Decimal
    final: bool


def paid_by(run: Run) -> list[Paid]:
    """The run's ledger, models first in their order, people last; then what an earlier run paid for it."""
    return [*_ledger(run), *_reused(run)]


def _ledger(run: Run) -> list[Paid]:
    rows = (
        _spends(run)
        .values("source__position", "source__name", "stage")
        .annotate(count=Sum("quantity"), amount=Sum("amount"))
        .order_by()
    )
    stages = list(Spend.Stage.values)
    ordered = sorted(rows, key=lambda row: (row["source__position"] or 10**6, stages.index(row["stage"])))
    return [
        Paid(
            source=row["source__name"] or "",
            stage=row["stage"],
            stage_title=str(Spend.Stage(row["stage"]).label),
            quantity=row["count"],
            amount=row["amount"],
        )
        for row in ordered
    ]


def _spends(run: Run) -> QuerySet[Spend]:
    """Of the run, and of the measurement that its plan rests on."""
    return Spend.objects.filter(run=run) | spends_of_models(run)


def _reused(run: Run) -> list[Paid]:
    """Answers that this run uses and an earlier run or measurement paid. They were really paid, so they count
    here, too: else a run would look cheap because another one was cancelled.
    """
    rows = []
    for run_source in run.run_sources.select_related("source").order_by("position"):
        same = {"source": run_source.source_id, "fingerprint": run_source.fingerprint}
        in_runs = RunSource.objects.filter(**same, run__number__lt=run.number)
        measured = MeasuredSource.objects.filter(**same).exclude(measurement=run.measurement_id)
        if not (in_runs.exists() or measured.exists()):
            continue
        used = _used_answers(run, run_source).aggregate(count=Count("pk"), amount=Sum("cost"))
        own = _spends(run).filter(source=run_source.source_id)
        here = own.aggregate(count=Sum("quantity"), amount=Sum("amount"))
        count = used["count"] - (here["count"] or 0)
        if count > 0:
            rows.append(
                Paid(
                    source=run_source.source.name,
                    stage="reused",
                    stage_title=_("Paid earlier, used again"),
                    quantity=count,
                    amount=used["amount"] - (here["amount"] or ZERO),
                )
            )
    return rows


def _used_answers(run: Run, run_source: RunSource) -> QuerySet[Prediction]:
    """Of the first source the whole pool's; of another one those of the pilot, of the asked items, and of the
    items that come to it.
    """
    answers = Prediction.objects.filter(source=run_source.source_id, fingerprint=run_source.fingerprint)
    item = OuterRef("item")
    if run_source.position == 1:
        in_pool = Q(Exists(run.pool_items.filter(item=item)))
        if run.measurement_id is not None and run.target == Run.Target.POPULATION:
            in_pool |= Q(Exists(run.pilot_items.filter(item=item)))  # which stays outside the pool
        return answers.filter(in_pool)
    run_sources = list(run.run_sources.select_related("run").order_by("position"))
    return answers.filter(
        Exists(run.pilot_items.filter(item=item))
        | Exists(DrawItem.objects.filter(draw__run=run, asked=True, item=item))
        | Exists(run.routes.filter(reaches(run_sources, run_source.position), item=item))
    )


def savings(run: Run, rows: Sequence[Paid], *, with_routing: bool = True) -> Savings:
    """Everything paid for the run, and what it saves against people labelling the whole pool.

    `rows` are those of `paid_by(run)`, which every caller shows beside it. A page that asks again and again
    leaves the routing saving out.
    """
    paid = sum((row.amount for row in rows), ZERO)
    people_only = run.pool_size * run.cost_per_item
    if run.state not in ROUTED:
        return Savings(net=None, routing=None, paid=paid, people_only=people_only, final=False)
    waiting = WorkItem.objects.filter(
        batch=run.routed_batch_id, state__in=(WorkItem.State.OPEN, WorkItem.State.LEASED)
    ).count()
    return Savings(
        net=1 - (paid + waiting * run.human_cost) / people_only,
        routing=_routing_saving(run) if with_routing else None,
        paid=paid,
        people_only=people_only,
        final=run.state == Run.State.COMPLETE,
    )


def _routing_saving(run: Run) -> Decimal | None:
    saving = tally(run)["saving"]
    return None if saving is None else Decimal(saving)
