"""What the models of a run have cost, what is set aside for calls, what the budget leaves, and how fast it
goes."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.db.models import Min, Sum
from django.utils import timezone

from annotation.jobs import running as jobs
from annotation.jobs.progress import JobProgress, job_progress
from annotation.models import Job
from routing.models import Reservation, Run, Spend
from routing.runs.budget import spends_of_models

ZERO = Decimal(0)
WINDOW = timedelta(minutes=2)
# Over less than so many seconds a rate says more about the start than about the work.
SETTLED_SECONDS = 2


@dataclass(frozen=True)
class Aside:
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
    asides: list[Aside]
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


def _asides(run: Run) -> list[Aside]:
    rows = (
        run.reservations.filter(calls__gt=0)
        .exclude(state=Reservation.State.SETTLED)
        .values("source__position", "source__name", "stage", "state")
        .annotate(number=Sum("calls"), total=Sum("amount"))
        .order_by("source__position", "stage", "state")
    )
    return [
        Aside(
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
