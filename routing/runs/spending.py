"""What was paid for a run, what is set aside for calls of models and what the budget leaves, how fast it
goes, and the two savings, which are never mixed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.jobs import jobs
from annotation.jobs.progress import JobProgress, job_progress
from annotation.models import Job, WorkItem
from routing.common.states import ROUTED
from routing.core.every_score.chain import FIRST_SCORE
from routing.models import DrawItem, MeasuredSource, Prediction, Reservation, Run, RunSource, Spend
from routing.runs import every_score_runs
from routing.runs.budget import spends_of_models
from routing.runs.expert.analyse import SLICES
from routing.runs.label_counts import tally
from routing.runs.usable_answers import reaches

ZERO = Decimal(0)


@dataclass(frozen=True)
class Paid:
    """One line of the ledger, summed: who was paid for what. `source` is "" for people, of whom the expert is
    one.
    """

    source: str
    stage: str
    stage_title: str
    quantity: int
    amount: Decimal
    by_expert: bool = False


@dataclass(frozen=True)
class Savings:
    """Shares of what people would have cost, as decimals; 0.25 is 25 %. None before the run is routed.

    Attributes
    ----------
    net : Decimal or None
        1 - everything really paid / (N c), where N counts what the run covers, and c is what it costs to have
        an item labelled by whose label is right: people, or the expert. While people still label, what they
        will be paid is counted, too.
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
        .values("source__position", "source__name", "by_expert", "stage")
        .annotate(count=Sum("quantity"), amount=Sum("amount"))
        .order_by()
    )
    stages = list(Spend.Stage.values)
    ordered = sorted(
        rows,
        key=lambda row: (row["source__position"] or 10**6, row["by_expert"], stages.index(row["stage"])),
    )
    return [
        Paid(
            source=row["source__name"] or "",
            stage=row["stage"],
            stage_title=_("Labels by people") if run.by_people else str(Spend.Stage(row["stage"]).label),
            quantity=row["count"],
            amount=row["amount"],
            by_expert=row["by_expert"],
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
    items that come to it. Also of unfinished and abandoned intakes: the ledger holds them, too.
    """
    answers = Prediction.objects.filter(source=run_source.source_id, fingerprint=run_source.fingerprint)
    item = OuterRef("item")
    if run_source.position == 1:
        in_pool = Q(Exists(run.pool_items.filter(item=item)))
        if run.measurement_id is not None and run.target == Run.Target.POPULATION:
            in_pool |= Q(Exists(run.pilot_items.filter(item=item)))  # which stays outside the pool
        return answers.filter(in_pool)
    beforehand = Exists(run.pilot_items.filter(item=item)) | Exists(
        DrawItem.objects.filter(draw__run=run, asked=True, item=item)
    )
    if (
        (every_score_runs.uses_every_score(run) or run.by_expert)
        and run.routed_at is not None
        and run.certificate.shape != SLICES
        and run.certificate.shape != FIRST_SCORE
    ):
        looked_at = every_score_runs.looked_at(run, run_source.position)
        return answers.filter(beforehand | Exists(run.pool_items.filter(looked_at, item=item)))
    run_sources = list(run.run_sources.select_related("run").order_by("position"))
    return answers.filter(
        beforehand | Exists(run.routes.filter(reaches(run_sources, run_source.position), item=item))
    )


def savings(run: Run, rows: Sequence[Paid], *, with_routing: bool = True) -> Savings:
    """Everything paid for the run, and what it saves against people labelling all that it covers.

    `rows` are those of `paid_by(run)`, which every caller shows beside it. A page that asks again and again
    leaves the routing saving out.
    """
    paid = sum((row.amount for row in rows), ZERO)
    people_only = run.covered_size * run.cost_of_right
    if run.state not in ROUTED:
        return Savings(net=None, routing=None, paid=paid, people_only=people_only, final=False)
    waiting = (_waiting(run.routed_batch_id) + _waiting(run.later_audit_batch_id)) * run.human_cost
    if run.by_expert:
        waiting += _waiting(run.expert_routed_batch_id) * run.cost_of_right
    return Savings(
        net=None if run.by_people else 1 - (paid + waiting) / people_only,
        routing=_routing_saving(run) if with_routing and not run.by_people else None,
        paid=paid,
        people_only=people_only,
        final=run.state == Run.State.COMPLETE,
    )


def _waiting(batch: int | None) -> int:
    return WorkItem.objects.filter(batch=batch, state__in=WorkItem.UNFINISHED).count()


def _routing_saving(run: Run) -> Decimal | None:
    saving = tally(run)["saving"]
    return None if saving is None else Decimal(saving)


WINDOW = timedelta(minutes=2)
# Over less than so many seconds a rate says more about the start than about the work.
SETTLED_SECONDS = 2


@dataclass(frozen=True)
class SetAside:
    """Money set aside for calls of a source at a stage: under way, or `lost` with their worker."""

    source: str
    stage_title: str
    lost: bool
    calls: int
    amount: Decimal


@dataclass(frozen=True)
class ModelMoney:
    """Amounts are in the project's currency; people's labels are in none of them.

    Attributes
    ----------
    left : Decimal or None
        What may still be set aside; None where there is no budget.
    rate, per_hour
        Answers per second and money per hour of the last minutes; None where too little was answered.
    seconds_left : float or None
        Until the job at work is done, at that rate.
    """

    budget: Decimal | None
    spent: Decimal
    asides: list[SetAside]
    rate: float | None
    per_hour: Decimal | None
    seconds_left: float | None
    work: JobProgress | None

    @property
    def under_way(self) -> Decimal:
        return sum((row.amount for row in self.asides if not row.lost), ZERO)

    @property
    def lost(self) -> Decimal:
        return sum((row.amount for row in self.asides if row.lost), ZERO)

    @property
    def lost_calls(self) -> int:
        return sum(row.calls for row in self.asides if row.lost)

    @property
    def left(self) -> Decimal | None:
        return None if self.budget is None else self.budget - self.spent - self.under_way - self.lost


def model_money(run: Run) -> ModelMoney:
    models = spends_of_models(run)
    work = run.project.jobs.filter(params__run=run.pk, state__in=jobs.UNFINISHED).order_by("-id").first()
    rate, per_hour = _pace(run, work)
    left = None
    if work and rate and work.state == Job.State.RUNNING and work.total:
        left = max(work.total - work.done, 0) / rate
    return ModelMoney(
        budget=run.budget,
        spent=models.aggregate(total=Sum("amount"))["total"] or ZERO,
        asides=_asides(run),
        rate=rate,
        per_hour=per_hour,
        seconds_left=left,
        work=job_progress(work) if work else None,
    )


def _asides(run: Run) -> list[SetAside]:
    rows = (
        run.reservations.filter(calls__gt=0)
        .exclude(state=Reservation.State.SETTLED)
        .values("source__position", "source__name", "stage", "state")
        .annotate(number=Sum("calls"), total=Sum("amount"))
        .order_by("source__position", "stage", "state")
    )
    return [
        SetAside(
            source=row["source__name"],
            stage_title=str(Spend.Stage(row["stage"]).label),
            lost=row["state"] == Reservation.State.LOST,
            calls=row["number"],
            amount=row["total"],
        )
        for row in rows
    ]


def _pace(run: Run, work: Job | None) -> tuple[float | None, Decimal | None]:
    """From the payments of the last minutes, so that neither a pause nor what was there before counts."""
    if work is None or work.state != Job.State.RUNNING:
        return None, None
    now = timezone.now()
    rows = Spend.objects.filter(run=run, source__isnull=False, created_at__gte=now - WINDOW)
    found = rows.aggregate(since=Min("created_at"), items=Sum("quantity"), amount=Sum("amount"))
    seconds = (now - found["since"]).total_seconds() if found["since"] else 0.0
    if seconds < SETTLED_SECONDS:
        return None, None
    per_hour = found["amount"] * 3600 / Decimal(str(round(seconds, 3)))
    return found["items"] / seconds, per_hour.quantize(Decimal("0.000001"))
