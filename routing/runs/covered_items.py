"""What a run covers: its frozen pool, and later items once they are taken in. Those of an intake that is not
finished, or was abandoned, are not delivered, counted or shown as labelled by the run.
"""

from django.db.models import Exists, OuterRef, Q, QuerySet

from routing.models import Intake, PoolItem, Route, Run

COVERED = Q(intake__isnull=True) | Q(intake__finished_at__isnull=False)
"""Of items of pools."""


def covered_items(run: Run) -> QuerySet[PoolItem]:
    """The items that the run covers, with their keys."""
    items = PoolItem.objects.filter(run=run)
    return items.filter(COVERED) if run.target == Run.Target.POPULATION else items


def erased_items_of(run: Run) -> QuerySet[PoolItem]:
    """Of these the ones whose content was erased."""
    return covered_items(run).filter(item__erased_at__isnull=False)


def covered_routes(run: Run, *, finishing: Intake | None = None) -> QuerySet[Route]:
    """Their routes, and those of what is being taken in by `finishing`."""
    routes = Route.objects.filter(run=run)
    if run.target != Run.Target.POPULATION:
        return routes
    unfinished = run.intakes.filter(finished_at__isnull=True)
    if finishing is not None:
        unfinished = unfinished.exclude(pk=finishing.pk)
    left_out = list(unfinished.values_list("pk", flat=True))
    if not left_out:
        return routes
    return routes.filter(~Exists(PoolItem.objects.filter(intake__in=left_out, item=OuterRef("item"))))
