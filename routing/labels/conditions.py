"""Which label a delivery would hold now, as conditions on items.

What `routing.labels.all_items` and `record_values` (`annotation.labelling.labels_of_record`) say of a page of
items, said to the database of all of them; a test compares both.
"""

from collections.abc import Mapping
from typing import Any

from django.db.models import (
    Case,
    Exists,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value as Constant,
    When,
)
from django.db.models.lookups import IsNull

from annotation.common.replaced_labels import replaced_labels
from annotation.labelling.label_queries import with_choice, with_split_choice, without_split_choice
from annotation.labelling.labels_of_record import batches_with_overlap, has_record, has_split_record
from annotation.models import Settlement, WorkItem
from routing.models import PoolItem, Prediction, Route, RunSource
from routing.runs.covered_items import covered_routes
from routing.runs.expert.delivered import undelivered
from routing.runs.usable_answers import has_usable_answer, reaches
from routing.visibility import ViewPermission, in_pools


def by_person(permission: ViewPermission) -> Q:
    """Whether the label that is delivered is a person's, or settled from several people's."""
    condition = has_record(permission.project, item="pk", hidden=permission.hidden or None)
    if permission.run is not None and permission.delivers and permission.run.by_expert:
        condition &= ~undelivered(permission.run, "pk")
    if (own := _only_own(permission)) is not None:
        condition &= ~_in_pool(permission) | has_record(permission.project, item="pk", only=own)
    return (
        condition & ~in_pools(permission.open_calibration, "pk") if permission.open_calibration else condition
    )


def by_model(permission: ViewPermission, run_source: RunSource) -> Q:
    """Whether the source's answer is delivered where there is no label of record."""
    if not permission.delivers:
        return Q(pk__in=[])
    return Q(Exists(_routes_to(permission, run_source)))


def delivered_as(permission: ViewPermission, key: str) -> Q:
    """Whether the label that is delivered is this one, or has this choice."""
    condition = _recorded_as(permission, key)
    if not permission.delivers:
        return condition
    models = Q(pk__in=[])
    for run_source in permission.run_sources:
        answers = Prediction.objects.filter(
            item=OuterRef("item_id"), source=run_source.source_id, fingerprint=run_source.fingerprint
        )
        answers = with_choice(answers, permission.project, key)
        models |= _found(_routes_to(permission, run_source).filter(_found(answers)))
    people = by_person(permission)
    return _somebody_said(permission, key) & ((condition & people) | (models & ~people))


def _somebody_said(permission: ViewPermission, key: str) -> Q:
    """What every item has that is delivered with this label; it is quickly seen of most others that they have
    not.
    """
    settled = permission.settlements().filter(item=OuterRef("pk"), value__isnull=False)
    found = _found(with_choice(permission.labels().filter(item=OuterRef("pk")), permission.project, key))
    found |= _found(with_choice(settled, permission.project, key))
    for run_source in permission.run_sources:
        answers = Prediction.objects.filter(
            item=OuterRef("pk"), source=run_source.source_id, fingerprint=run_source.fingerprint
        )
        found |= _found(with_choice(answers, permission.project, key))
    return found


def needs_new_choice(permission: ViewPermission) -> Q:
    """Whether the label that is delivered was split into others, and nobody has chosen one of these yet."""
    project = permission.project
    if not replaced_labels(project).split:
        return Q(pk__in=[])
    found = has_split_record(project, item="pk", hidden=permission.hidden)
    for run_source in permission.run_sources if permission.delivers else ():
        answers = Prediction.objects.filter(
            item=OuterRef("item_id"), source=run_source.source_id, fingerprint=run_source.fingerprint
        )
        routes = _routes_to(permission, run_source).filter(_found(with_split_choice(answers, project)))
        found |= Q(_found(routes)) & ~by_person(permission)
    return found & ~in_pools(permission.open_calibration, "pk")


def own_batches(permission: ViewPermission) -> Mapping[int, int]:
    """Batches whose labels go before others, by rank: those of the run that delivers."""
    if permission.run is None or not permission.delivers:
        return {}
    return permission.run.own_batches


def _only_own(permission: ViewPermission) -> list[int] | None:
    """Batches of which alone labels of the pool are delivered; None where all are."""
    run = permission.run
    return run.only_batches if run is not None and permission.delivers else None


def _in_pool(permission: ViewPermission, item: str = "pk") -> Q:
    return Q(Exists(PoolItem.objects.filter(run=permission.run, item=OuterRef(item))))


def _routes_to(permission: ViewPermission, run_source: RunSource) -> QuerySet[Route]:
    assert permission.run is not None  # noqa: S101 - asked for before
    routes = covered_routes(permission.run).filter(item=OuterRef("pk"))
    return routes.filter(reaches(permission.run_sources, run_source.position), has_usable_answer(run_source))


def _recorded_as(permission: ViewPermission, key: str) -> Q:
    """Whether the label of record is this one: of the batch that goes before others, else of the one with the
    newest answer.
    """
    own = own_batches(permission)
    rank = Case(
        *(When(work_item__batch=batch, then=Constant(rank)) for batch, rank in own.items()),
        default=Constant(0),
        output_field=IntegerField(),
    )
    several = batches_with_overlap(permission.project)
    answers = permission.labels().alias(rank=rank)
    if replaced_labels(permission.project).split:
        answers = without_split_choice(answers, permission.project)
    if (batches := _only_own(permission)) is not None:
        answers = answers.filter(Q(work_item__batch__in=batches) | ~_in_pool(permission, "item"))
    same = {"batch": OuterRef("work_item__batch"), "item": OuterRef("item")}
    standing = Settlement.objects.filter(**same, superseded_by__isnull=True, value__isnull=False)
    others = WorkItem.objects.filter(**same, slot__gte=1, batch__in=several)
    if several:
        answers = answers.filter(~Exists(others) | Exists(standing))
    later = answers.filter(item=OuterRef("item_id")).filter(
        Q(rank__gt=OuterRef("rank")) | Q(rank=OuterRef("rank"), pk__gt=OuterRef("pk"))
    )
    last = answers.filter(item=OuterRef("pk")).exclude(Exists(later))
    if not several:
        return _found(with_choice(last, permission.project, key))
    alone = with_choice(last.exclude(Exists(others)), permission.project, key)
    return _found(alone) | _found(last.filter(Exists(with_choice(standing, permission.project, key))))


def _found(rows: QuerySet[Any]) -> Q:
    """As EXISTS, but looked up row by row: beside an OR PostgreSQL would read whole tables into memory for
    each EXISTS, where a page needs some fifty rows.
    """
    return Q(IsNull(Subquery(rows.order_by().values("pk")[:1]), False))
