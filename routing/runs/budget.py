"""The money of a run, a measurement or a candidate prompt: set aside before a model is called, settled with
its answers, never above the budget.

What a worker had set aside when it died counts as lost: those calls may have been charged, and nobody can
tell. It stays within the budget.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet, Sum
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.errors import ConflictError, HypacError, InputError, JobFailedError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import Job, User
from routing.common.states import CANCELLABLE
from routing.core.exact import plain
from routing.models import (
    BudgetOwner,
    FrozenSource,
    Measurement,
    PromptCandidate,
    Reservation,
    Run,
    Spend,
)
from routing.sources.backends import backends_that

ZERO = Decimal(0)
State = Reservation.State
# What the column of budgets holds.
PLACES, LARGEST = Decimal(1).scaleb(-6), Decimal(10) ** 14


class BudgetError(JobFailedError):
    """The budget has no room for the next call."""


def _used_up(params: Mapping[str, Any]) -> str:
    if params["lost"] is None:
        return (
            _(
                "The budget of run %(run)s is not enough for more: of %(budget)s %(currency)s its models "
                "have spent %(spent)s %(currency)s, and the next answer may cost up to %(most)s "
                "%(currency)s. Everything that was paid for is stored. Raise the budget on the page of the "
                "run: it then goes on where it stopped."
            )
            % params
        )
    return (
        _(
            "The budget of run %(run)s is not enough for more: of %(budget)s %(currency)s its models have "
            "spent %(spent)s %(currency)s, up to %(lost)s %(currency)s may have been charged for %(calls)s "
            "calls that were lost with their worker, and the next answer may cost up to %(most)s "
            "%(currency)s. Everything that was paid for is stored. Raise the budget on the page of the run: "
            "it then goes on where it stopped."
        )
        % params
    )


USED_UP = failures.register("budget_used_up", _used_up)


def _used_up_measuring(params: Mapping[str, Any]) -> str:
    return (
        _(
            "The budget of %(budget)s %(currency)s is not enough to measure more: %(gone)s %(currency)s are "
            "spent or lost, and the next answer may cost up to %(most)s %(currency)s. Everything that was "
            "paid for is stored. Measure with a larger budget: it then goes on where it stopped."
        )
        % params
    )


USED_UP_MEASURING = failures.register("measuring_budget_used_up", _used_up_measuring)


USED_UP_COMPARING = failures.register(
    "candidate_budget_used_up",
    gettext_noop(
        "The budget of %(budget)s %(currency)s is not enough to ask about more items: %(gone)s %(currency)s "
        "are spent or lost, and the next answer may cost up to %(most)s %(currency)s. Everything that was "
        "paid for is stored. Ask again with a larger budget: it then goes on where it stopped."
    ),
)

_COLUMNS = {Run: "run", Measurement: "measurement", PromptCandidate: "candidate"}


def owner_column(budget_owner: BudgetOwner) -> dict[str, Any]:
    """Under which column payments and reservations name what pays them."""
    return {_COLUMNS[type(budget_owner)]: budget_owner}


def spends_of_models(budget_owner: BudgetOwner) -> QuerySet[Spend]:
    """What the models were paid: for a run also what was paid for the measurement that its plan rests on."""
    paid = Q(**owner_column(budget_owner))
    if isinstance(budget_owner, Run) and budget_owner.measurement_id is not None:
        paid |= Q(measurement=budget_owner.measurement_id)
    return Spend.objects.filter(paid, source__isnull=False)


class BudgetReservation:
    """What one worker sets aside and pays for one source at one stage of what pays.

    All that writes is called inside `context.chunk`, which only the worker that has the job can enter: so
    nobody else pays for the same models meanwhile, and sums need not be made anew.
    """

    def __init__(self, context: JobContext, frozen_source: FrozenSource, stage: str) -> None:
        self.budget_owner: BudgetOwner = frozen_source.budget_owner
        self.calls, self.amount = 0, ZERO
        self._written = (0, ZERO)
        lost = self.budget_owner.reservations.filter(state=State.LOST)
        self.spent, self.lost = _sum(spends_of_models(self.budget_owner)), _sum(lost)
        self._row, _ = Reservation.objects.get_or_create(
            **owner_column(self.budget_owner),
            source_id=frozen_source.source_id,
            stage=stage,
            claim_token=context.token,
            defaults={"calls": 0, "amount": ZERO},
        )

    def take(self, most: Sequence[Decimal]) -> int:
        """Set aside money for as many of the next calls as fit into the budget; returns how many that are."""
        # Without an order: to find out by which columns a run is ordered takes as long as the rest of this.
        row = (
            type(self.budget_owner)
            ._default_manager.filter(pk=self.budget_owner.pk)
            .order_by()
            .select_for_update(no_key=True)
        )
        (budget,) = row.values_list("budget", flat=True)
        taken = 0
        for amount in most:
            if budget is not None and self.spent + self.lost + self.amount + amount > budget:
                break
            self.amount += amount
            taken += 1
        self.calls += taken
        return taken

    def settle(self, most: Sequence[Decimal], paid: Decimal) -> None:
        """Give back what was set aside for these calls; `paid` is what they cost."""
        self.calls -= len(most)
        self.amount -= sum(most, ZERO)
        self.spent += paid

    def store(self) -> None:
        """Write down what is set aside now, where that is not what is written already."""
        if self._written != (self.calls, self.amount):
            self._written = (self.calls, self.amount)
            state = State.OPEN if self.calls else State.SETTLED
            _write(self._row, state=state, calls=self.calls, amount=self.amount)

    def release(self) -> None:
        """Give back everything: the model said that it has answered all that it was asked and will be paid
        for.
        """
        self.calls, self.amount = 0, ZERO
        _write(self._row, state=State.SETTLED, calls=0, amount=ZERO)

    def lose(self, most: Sequence[Decimal]) -> None:
        """These calls are under way, and nobody waits for them any more. May be called outside a chunk, also
        by a worker that has lost its job.
        """
        row = Reservation.objects.filter(pk=self._row.pk)
        row.filter(state=State.OPEN).update(calls=len(most), amount=sum(most, ZERO))
        mark_lost(row)

    def budget_error(self, most: Decimal) -> HypacError:
        """Why the run stops, as an error to raise: the budget is too small for the next call."""
        budget_owner = self.budget_owner
        budget_owner.refresh_from_db(fields=["budget"])
        budget = budget_owner.budget or ZERO
        currency = budget_owner.project.currency
        if not isinstance(budget_owner, Run):
            measuring = isinstance(budget_owner, Measurement)
            return (USED_UP_MEASURING if measuring else USED_UP_COMPARING).error(
                raised_as=BudgetError,
                currency=currency,
                budget=plain(budget),
                gone=plain(self.spent + self.lost),
                most=plain(most),
            )
        calls = lost_reservations(budget_owner).aggregate(calls=Sum("calls"))["calls"] if self.lost else 0
        return USED_UP.error(
            raised_as=BudgetError,
            run=budget_owner.number,
            currency=currency,
            budget=plain(budget),
            spent=plain(self.spent),
            lost=plain(self.lost) if self.lost else None,
            calls=calls,
            most=plain(most),
        )


def checked_budget(budget: Decimal | None) -> Decimal | None:
    """A budget as it is stored; None: no limit. Raises InputError where it is none."""
    if budget is None:
        return None
    if not budget.is_finite() or budget < 0 or budget >= LARGEST:
        raise InputError(_("A budget is an amount of at least 0 and below 10 to the 14th."), where="budget")
    if budget != budget.quantize(PLACES):
        raise InputError(_("A budget has at most six decimal places."), where="budget")
    return budget


def set_budget(*, run: Run, user: User | None, budget: Decimal | None) -> Run:
    """Change what the models of a run may cost; None: no limit.

    It counts from the next call on, also while they are at work; where they have stopped at the budget, they
    start again with the new one. What people are paid is no part of it.
    Raises InputError below what is spent, set aside or lost already, and ConflictError for a run that has
    ended.
    """
    checked = checked_budget(budget)
    with transaction.atomic():
        stored = (
            Run.objects.select_for_update(of=("self",), no_key=True).select_related("project").get(pk=run.pk)
        )
        # A complete run may still take in later items.
        takes_in = stored.state == Run.State.COMPLETE and stored.target == Run.Target.POPULATION
        if stored.state not in CANCELLABLE and not takes_in:
            raise ConflictError(
                _("Run %(stored)s is %(state)s: its models cost nothing more.")
                % {"stored": stored.number, "state": stored.get_state_display().lower()},
                code="run_not_spending",
            )
        spent = _sum(spends_of_models(stored))
        aside = _sum(stored.reservations.filter(state__in=(State.OPEN, State.LOST)))
        if checked is not None and checked < spent + aside:
            currency = stored.project.currency
            words = (
                _(
                    "The models of run %(run)s have spent %(spent)s %(currency)s and %(aside)s %(currency)s "
                    "set aside for calls already. Give at least as much."
                )
                if aside
                else _(
                    "The models of run %(run)s have spent %(spent)s %(currency)s already. "
                    "Give at least as much."
                )
            )
            amounts = {"spent": plain(spent), "aside": plain(aside), "currency": currency}
            raise InputError(words % {"run": stored.number, **amounts}, where="budget")
        before, stored.budget = stored.budget, checked
        stored.save(update_fields=["budget"])
        audit.record(
            project=stored.project,
            actor=user,
            action="run.budget_changed",
            target=f"run:{stored.number}",
            data={"from": _text(before), "to": _text(checked)},
        )
        newest = stored.project.jobs.filter(params__run=stored.pk).order_by("-id").first()
        if newest is not None and stopped_at_budget(newest):
            jobs.retry(job=newest)
    return stored


def stopped_at_budget(job: Job | None) -> bool:
    """Whether the job failed for want of budget alone."""
    return job is not None and job.state == Job.State.FAILED and job.error_code == USED_UP.code


def mark_abandoned_as_lost(context: JobContext, budget_owner: BudgetOwner) -> None:
    """Count what workers had set aside that no longer have the job. Called inside a chunk."""
    mark_lost(budget_owner.reservations.exclude(claim_token=context.token))


def mark_lost(reservations: QuerySet[Reservation]) -> None:
    """Nobody waits for the calls of these reservations any more: what is open of them counts as lost."""
    left = reservations.filter(state=State.OPEN)
    never_lost = backends_that(lambda backend: backend.never_lost)
    nothing = Q(calls=0) | Q(source__backend__in=never_lost)
    left.filter(nothing).update(state=State.SETTLED, calls=0, amount=ZERO)
    left.update(state=State.LOST)


def lost_reservations(run: Run) -> QuerySet[Reservation]:
    return run.reservations.filter(state=State.LOST, calls__gt=0)


def _write(row: Reservation, **values: object) -> None:
    # By its state, too: once it is counted as lost, it stays so.
    Reservation.objects.filter(pk=row.pk, state__in=(State.OPEN, State.SETTLED)).update(**values)


def _sum(rows: QuerySet[Spend] | QuerySet[Reservation]) -> Decimal:
    return rows.aggregate(total=Sum("amount"))["total"] or ZERO


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else plain(amount)
