"""People label everything: a run without any model. Its items are chosen (all without a label, what filters
find, a random sample of either) and given to people by the job "give_to_people"; nothing is drawn for a
certificate, and nothing is certified.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common import audit, limits
from annotation.common.bulk import copy_rows
from annotation.common.locks import locked_against_jobs
from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.labelling import queue
from annotation.models import MAX_OVERLAP, Item, Project
from annotation.permissions import Access, access_to
from annotation.words import Words
from routing.common.sql import analyse_tables
from routing.common.states import OPEN, State, change_state, was_cancelled
from routing.core import sampling
from routing.core.exact import plain
from routing.items.filters import conditions
from routing.models import PoolItem, Run
from routing.models.runs import price_per_item
from routing.runs.busy import refuse_beside_run, refuse_while_busy
from routing.runs.draw import AT_ONCE, changed_meanwhile
from routing.runs.events import run_routed
from routing.runs.labelling_pace import LabellingTime, labelling_time_of
from routing.runs.later.intakes import abandon_unfinished
from routing.runs.pool import last_place, pool_of
from routing.visibility import view_permission

KIND = "give_to_people"
PRIORITY = 10


@dataclass(frozen=True)
class Wanted:
    """Which items people are to label, and how many people each.

    Attributes
    ----------
    filters
        Names and values of the items table's; empty: all items.
    sample
        How many of the items that they find are drawn at random; None: all.
    overlap, overlap_share
        `overlap` people are asked about an item with the probability `overlap_share`, else one is; None:
        as the project says.
    """

    filters: Mapping[str, str]
    sample: int | None = None
    overlap: int | None = None
    overlap_share: Decimal | None = None

    def completed(self, project: Project) -> "Wanted":
        """Raises InputError whose `where` names what cannot be used."""
        found = replace(
            self,
            filters={name: value for name, value in self.filters.items() if value},
            overlap=project.overlap if self.overlap is None else self.overlap,
            overlap_share=project.overlap_share if self.overlap_share is None else self.overlap_share,
        )
        if found.sample is not None and found.sample < 1:
            raise InputError(_("A sample has at least one item."), where="sample")
        if not 1 <= found.people <= MAX_OVERLAP:
            raise InputError(
                _("Between 1 and %(most)s people can label an item.") % {"most": MAX_OVERLAP}, where="overlap"
            )
        if not 0 < found.share <= 1 or found.share != round(found.share, 4):
            raise InputError(
                _("Write a share above 0 and at most 1, with at most four places."), where="overlap_share"
            )
        return found

    @property
    def people(self) -> int:
        return self.overlap or 0

    @property
    def share(self) -> Decimal:
        return self.overlap_share or Decimal(0)


@dataclass(frozen=True)
class PeopleOutlook:
    """What it would mean: `matching` items of which `labelled` have a label already, or wait for a reviewer,
    and keep it; `items` that people would be asked about, `answers` that they give on average, what these
    cost, and how long one takes.
    """

    matching: int
    labelled: int
    items: int
    answers: Decimal
    cost: Decimal
    time: LabellingTime

    @property
    def seconds(self) -> float:
        """Of people's time, in all."""
        return float(self.answers) * self.time.seconds


def people_outlook(*, access: Access, wanted: Wanted) -> PeopleOutlook:
    """Raises InputError where a filter, the sample or the overlap cannot be used, and ConflictError while it
    would tell, filter by filter, which items of a calibration set are labelled.
    """
    project = access.project
    refuse_beside_run(project, OPEN)
    wanted = wanted.completed(project)
    found = _items_of(access, wanted).count()
    matching = project.items.filter(*_conditions(access, wanted)).count()
    items = found if wanted.sample is None else min(found, wanted.sample)
    each = price_per_item(Decimal(1), wanted.people, wanted.share)
    return PeopleOutlook(
        matching=matching,
        labelled=matching - found,
        items=items,
        answers=items * each,
        cost=items * each * project.human_cost,
        time=labelling_time_of(project),
    )


def start_people_run(*, access: Access, wanted: Wanted, entropy: int | None = None) -> Run:
    """Have people label items, without any model. Those that have a label already keep it, and are not asked
    about.

    A few are given to people at once, more by the job. `entropy` seeds the sample; leave it out except in
    tests.

    Raises InputError whose `where` names what cannot be used, and ConflictError where another run is under
    way.
    """
    project = access.project
    wanted = wanted.completed(project)
    seed = sampling.new_entropy() if entropy is None else entropy
    with transaction.atomic():
        locked_against_jobs(project.pk)
        refuse_while_busy(project)
        limits.refuse_more(
            project.runs.all(),
            limits.RUNS,
            _("A project has at most %(most)s runs. Go on in a copy of it."),
            code="too_many_runs",
        )
        last = last_place(project)
        found = _items_of(access, wanted).count()
        if not found:
            raise _nothing_to_ask(access, wanted)
        if wanted.sample is not None and wanted.sample > found:
            raise InputError(
                _("Only %(count)s items can be drawn from: a sample has no more.") % {"count": f"{found:,}"},
                where="sample",
            )
        items = wanted.sample or found
        run = Run.objects.create(
            project=project,
            number=(project.runs.aggregate(last=Max("number"))["last"] or 0) + 1,
            state=State.ROUTING,
            by_people=True,
            chosen={"filters": dict(wanted.filters), "found": found, "sample": wanted.sample, "last": last},
            m=items,
            p=Decimal(1),
            bound="",
            rule="",
            score="",
            loss="",
            human_cost=project.human_cost,
            overlap=wanted.people,
            overlap_share=wanted.share,
            consensus=project.consensus,
            pool_size=items,
            entropy=str(seed),
            salt=sampling.make_salt(seed),
            created_by=access.user,
        )
        abandon_unfinished(project)
        audit.record(
            project=project,
            actor=access.user,
            action="run.started",
            target=f"run:{run.number}",
            data={
                "by_people": True,
                # Their names alone: a value may be a label or a person.
                "filters": sorted(wanted.filters),
                "sample": wanted.sample,
                "pool_size": items,
                **({"overlap": [run.overlap, plain(run.overlap_share)]} if run.overlap > 1 else {}),
            },
        )
        job = jobs.enqueue(
            project=project,
            kind_name=KIND,
            params={"run": run.pk},
            unique_key=f"{KIND}:{run.pk}",
            user=access.user,
            total=items,
        )
    if items <= AT_ONCE:
        jobs.run(job.pk)
        run.refresh_from_db()
    return run


ASKER_GONE = failures.register(
    "asker_gone_of_people_run",
    gettext_noop("Whoever asked for this is no longer in the project. Cancel the run and start another one."),
)


def give_to_people(context: JobContext) -> dict[str, Any]:
    """The job "give_to_people"."""
    runs = Run.objects.select_related("project")
    run = runs.get(pk=context.params["run"], project=context.job.project_id)
    if run.state != State.ROUTING:
        return {"state": run.state}
    user = context.job.created_by
    access = access_to(user, run.project.slug) if user else None
    if access is None:
        raise ASKER_GONE.error()
    with context.chunk(done=run.pool_size, stage=Words(gettext_noop("Work for people"))):
        ids = _chosen_ids(access, run)
        copy_rows(PoolItem, ("run", "item", "position", "v"), _pool(run, ids))
        names = run.pool_items.order_by("position").values_list("item__external_id", flat=True)
        run.pool_hash = sampling.pool_hash(names.iterator(chunk_size=5_000))
        run.save(update_fields=["pool_hash"])
        batch = queue.create_batch(
            project=run.project,
            item_ids=ids,
            blind=False,  # no model is compared with these labels
            priority=PRIORITY,
            entropy=sampling.new_entropy(),
            overlap=run.overlap,
            overlap_share=run.overlap_share,
        )
        change_state(
            run,
            before=State.ROUTING,
            after=State.LABELLING,
            routed_at=timezone.now(),
            routed_batch=batch,
            refusal=was_cancelled(run),
        )
        run_routed(run, people=len(ids))
    analyse_tables(PoolItem)
    return {"people": len(ids)}


def _chosen_ids(access: Access, run: Run) -> list[int]:
    """Ids of the run's items, in the order of import. Raises ConflictError where others would be found than
    when it was started.
    """
    chosen = run.how_chosen
    wanted = Wanted(chosen["filters"])
    found = _items_of(access, wanted).filter(position__lte=chosen["last"])
    ids = list(found.values_list("pk", flat=True))
    if len(ids) != chosen["found"]:
        raise changed_meanwhile()
    if chosen["sample"] is None:
        return ids
    places = sampling.draw_pilot(pool_size=len(ids), size=chosen["sample"], entropy=int(run.entropy))
    return [ids[place] for place in sorted(places.tolist())]


def _pool(run: Run, ids: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """Nothing is routed by keys here: `v` says nothing."""
    return ((run.pk, pk, position, 0) for position, pk in enumerate(ids))


def _items_of(access: Access, wanted: Wanted) -> QuerySet[Item]:
    """Of the items that the filters find those that a run could cover: without a label."""
    return pool_of(access.project, Run.Target.DATASET, of_rounds=True).filter(*_conditions(access, wanted))


def _conditions(access: Access, wanted: Wanted) -> list[Any]:
    return list(conditions(view_permission(access.project, access), wanted.filters).values())


def _nothing_to_ask(access: Access, wanted: Wanted) -> ConflictError | InputError:
    project = access.project
    if not project.items.exists():
        return InputError(_("There is no item yet: import data first."), where="filters")
    if project.items.filter(*_conditions(access, wanted)).exists():
        return InputError(
            _("Every item that you chose has a label already, and keeps it. Choose others."), where="filters"
        )
    return InputError(_("No item matches. Choose other filters."), where="filters")
