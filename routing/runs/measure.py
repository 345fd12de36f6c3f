"""Measure first: before anything is promised, all models answer a pilot. Nobody labels it, no risk is spent,
and nobody is shown an answer. What it costs is known before, and a budget holds.

The plan is then chosen by what the pilot foretells, and the run that starts takes it as its own: the same
items with the same answers, all of it fixed before the run's draw.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_noop

from annotation.common import audit
from annotation.common.locks import locked_against_jobs, locked_project
from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import Project, User
from annotation.words import Words
from routing.core import sampling
from routing.core.choices import DEFAULT_TARGET
from routing.core.exact import plain
from routing.core.plan import PILOT_LEAST, default_pilot_size
from routing.models import MeasuredItem, MeasuredSource, Measurement, Run, Source, Spend
from routing.models.runs import price_per_item
from routing.runs.budget import checked_budget, mark_lost
from routing.runs.busy import refuse_while_busy
from routing.runs.draw import AT_ONCE, changed_meanwhile
from routing.runs.measurements import KIND, Measured, measured_for, waiting_measurements
from routing.runs.plan import sources_of
from routing.runs.pool import last_place, nothing_to_plan_for, pool_of, size_of_pool
from routing.runs.predict import PendingItems, predict_missing
from routing.runs.source_changes import fingerprint_now
from routing.sources.backends import backends_that
from routing.sources.trials import way_of_asking


@dataclass(frozen=True)
class Offer:
    """What measuring would take: so many items, answered by all sources, for about this price."""

    sources: tuple[Source, ...]
    pool_size: int
    size: int
    price: Decimal

    @property
    def at_once(self) -> bool:
        """Whether all answers are there already and the pool is small: then it takes no time."""
        known = backends_that(lambda backend: bool(backend.known_from))
        return self.pool_size <= AT_ONCE and known.issuperset(source.backend for source in self.sources)


def offer(
    project: Project,
    *,
    target: str = DEFAULT_TARGET,
    leave_out: Sequence[str] = (),
    size: int | None = None,
) -> Offer:
    """What measuring the models of a plan would take; `size` None for the default of a pilot.

    Raises InputError where there is nothing to measure: no item, or one model only.
    """
    sources = tuple(sources_of(project, leave_out=leave_out))
    if len(sources) == 1:
        raise InputError(
            _(
                "There is one model only, and no other whose answers could be compared with its own: "
                "nothing can be foretold of it without labels."
            ),
            where="sources",
        )
    pool_size = size_of_pool(project, target)
    if not pool_size:
        raise nothing_to_plan_for(project)
    costs = (*(source.cost_per_label for source in sources), _people_cost(project))
    size = default_pilot_size(pool_size, costs) if size is None else size
    if size == 0:
        raise InputError(
            _(
                "For so few items, or with models that are so dear beside people, a pilot of at least "
                "%(least)s items costs more than it can tell. Plan without one; whoever runs the server, or "
                "a program, can measure all the same with a size of their own."
            )
            % {"least": PILOT_LEAST},
            where="size",
        )
    if not 1 <= size < pool_size:
        raise InputError(
            _("A pilot has at least 1 item, and fewer than the %(pool)s of the pool.") % {"pool": pool_size},
            where="size",
        )
    return Offer(sources, pool_size, size, size * sum(costs[:-1], Decimal(0)))


def _people_cost(project: Project) -> Decimal:
    """What people cost per item, on average, where one person's label is right."""
    return price_per_item(project.human_cost, project.overlap, project.overlap_share)


def start_measurement(
    *,
    project: Project,
    user: User | None,
    target: str = DEFAULT_TARGET,
    leave_out: Sequence[str] = (),
    size: int | None = None,
    budget: Decimal | None = None,
    entropy: int | None = None,
) -> Measured:
    """Draw a pilot and have all models answer it (job "measure"), at once where all answers are there.

    One that stopped, for its budget say, is gone on with where it still fits: nothing is paid twice.
    `entropy` seeds the draw; nothing that comes from a browser may set it.

    Raises InputError, whose `where` names the field, and ConflictError while a run, an import or another
    measurement is under way.
    """
    offered = offer(project, target=target, leave_out=leave_out, size=size)
    budget = checked_budget(budget)
    fingerprints = [fingerprint_now(source) for source in offered.sources]
    with transaction.atomic():
        locked_against_jobs(project.pk)
        refuse_while_busy(project)
        before = measured_for(project, target=target, sources=offered.sources)
        measurement = _to_go_on_with(before, fingerprints)
        if measurement is None:
            _refuse_beyond(offered, budget, project.currency)
            measurement = _create(project, user, target, offered, budget, fingerprints, entropy)
        elif measurement.budget != budget:
            measurement.budget = budget
            measurement.save(update_fields=["budget"])
        job = jobs.enqueue(
            project=project,
            kind_name=KIND,
            params={"measurement": measurement.pk},
            unique_key=KIND,
            user=user,
        )
        audit.record(
            project=project,
            actor=user,
            action="plan.measured",
            target=f"measurement:{measurement.pk}",
            data={
                "sources": [source.name for source in offered.sources],
                "items": measurement.size,
                "price": plain(offered.price),
                "budget": None if budget is None else plain(budget),
                "seed": "given" if entropy is not None else "from the system",
            },
        )
    if offered.at_once:
        jobs.run(job.pk)
    return measured_for(project, target=target, sources=offered.sources)


def discard_measurement(*, project: Project, user: User | None) -> None:
    """No run is to take what was measured; what was paid stays in the books. Raises ConflictError where there
    is nothing to discard.
    """
    with transaction.atomic():
        locked_project(project.pk)
        waiting = waiting_measurements(project)
        if not waiting.exists():
            raise ConflictError(_("Nothing was measured that could be discarded."), code="nothing_measured")
        for job in project.jobs.filter(kind=KIND, state__in=jobs.UNFINISHED):
            jobs.cancel(job=job)
        for measurement in waiting:
            mark_lost(measurement.reservations.all())
            measurement.discarded_at = timezone.now()
            measurement.save(update_fields=["discarded_at"])
            audit.record(
                project=project,
                actor=user,
                action="plan.measurement_discarded",
                target=f"measurement:{measurement.pk}",
            )


def run_measurement(context: JobContext) -> dict[str, object]:
    """The job "measure"."""
    measurements = Measurement.objects.select_related("project").filter(project=context.job.project_id)
    measurement = measurements.get(pk=context.params["measurement"])
    if not measurement.pool_hash:
        with context.chunk(stage=Words(gettext_noop("Pilot"))):
            _draw(measurement)
    asked = list(measurement.sources.select_related("source", "measurement__project").order_by("position"))
    items = PendingItems([MeasuredItem.objects.filter(measurement=measurement)])
    with context.chunk(total=items.count * len(asked)):
        pass
    done = 0
    for one in asked:
        done += predict_missing(
            context,
            frozen_source=one,
            items=items,
            stage=Spend.Stage.PILOT,
            says=Words.name(one.source.name),
            done=done,
        )
    with context.chunk():
        Measurement.objects.filter(pk=measurement.pk, finished_at=None).update(finished_at=timezone.now())
    return {"measurement": measurement.pk, "items": items.count}


def _to_go_on_with(before: Measured, fingerprints: Sequence[str]) -> Measurement | None:
    """One that stopped half way, if it asked for the same."""
    found = before.unfinished
    if found is None:
        return None
    asked = list(found.sources.order_by("position").values_list("fingerprint", flat=True))
    return found if asked == list(fingerprints) else None


def _refuse_beyond(offered: Offer, budget: Decimal | None, currency: str) -> None:
    if budget is not None and offered.price > budget:
        raise InputError(
            _(
                "Measuring is expected to cost about %(price)s %(currency)s, more than the budget of "
                "%(budget)s %(currency)s."
            )
            % {"price": plain(offered.price), "budget": plain(budget), "currency": currency},
            where="budget",
        )


def _create(
    project: Project,
    user: User | None,
    target: str,
    offered: Offer,
    budget: Decimal | None,
    fingerprints: Sequence[str],
    entropy: int | None,
) -> Measurement:
    measurement = Measurement.objects.create(
        project=project,
        outside=target == Run.Target.POPULATION,
        pool_size=offered.pool_size,
        last=last_place(project),
        size=offered.size,
        entropy=str(sampling.new_entropy() if entropy is None else entropy),
        budget=budget,
        created_by=user,
    )
    MeasuredSource.objects.bulk_create(
        MeasuredSource.of(
            source,
            measurement=measurement,
            position=position,
            fingerprint=fingerprint,
            asked_as=way_of_asking(source),
        )
        for position, (source, fingerprint) in enumerate(
            zip(offered.sources, fingerprints, strict=True), start=1
        )
    )
    return measurement


def _draw(measurement: Measurement) -> None:
    """Draw its items, and note the pool that a run has to have that takes it. Called in a transaction."""
    target = Run.Target.POPULATION if measurement.outside else Run.Target.DATASET
    pool = pool_of(measurement.project, target).filter(position__lte=measurement.last)
    ids = np.fromiter(pool.values_list("pk", flat=True).iterator(chunk_size=10_000), dtype=np.int64)
    if len(ids) != measurement.pool_size:
        raise changed_meanwhile()
    entropy, size = int(measurement.entropy), measurement.size
    drawn = sampling.draw_pilot(pool_size=len(ids), size=size, entropy=entropy)
    apart = set(drawn.tolist()) if measurement.outside else set()
    names = pool.values_list("external_id", flat=True).iterator(chunk_size=10_000)
    measurement.pool_hash = sampling.pool_hash(
        name for position, name in enumerate(names) if position not in apart
    )
    MeasuredItem.objects.bulk_create(
        MeasuredItem(measurement=measurement, item_id=int(ids[position]), order=order)
        for order, position in enumerate(drawn.tolist())
    )
    measurement.save(update_fields=["pool_hash"])
