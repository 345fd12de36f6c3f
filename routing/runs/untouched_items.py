"""Items that no run has looked at, which may be kept out of all: for guideline rounds, practice and gold."""

from collections.abc import Sequence

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.models import Item, Project
from routing.core import sampling
from routing.models import DrawItem, MeasuredItem, PilotItem, PoolItem, Run
from routing.runs.pool import pool_of


def untouched_items(project: Project) -> QuerySet[Item]:
    """Items that may be kept out of all runs, in the order of import: without a label, in no draw, pool or
    round, and not held out.
    """
    used = (
        Exists(DrawItem.objects.filter(item=OuterRef("pk"))),
        Exists(PilotItem.objects.filter(item=OuterRef("pk"))),
        Exists(MeasuredItem.objects.filter(item=OuterRef("pk"))),
        Exists(PoolItem.objects.filter(item=OuterRef("pk")).exclude(run__state=Run.State.CANCELLED)),
    )
    return pool_of(project, Run.Target.DATASET).filter(*(~one for one in used))


def drawn_ids(ids: Sequence[int], *, size: int, entropy: int) -> list[int]:
    """`size` of these items by chance, in their order."""
    places = sampling.draw_pilot(pool_size=len(ids), size=size, entropy=entropy)
    return [ids[place] for place in sorted(places.tolist())]


def named_ids(project: Project, names: Sequence[str]) -> list[int]:
    """The untouched items with these external ids, in the order of the names.

    Raises InputError whose `where` is "names" for a name of no item, or of one that was touched.
    """
    there = set(project.items.filter(external_id__in=names).values_list("external_id", flat=True))
    ids = dict(untouched_items(project).filter(external_id__in=names).values_list("external_id", "pk"))
    for name in names:
        if name not in there:
            raise InputError(_("There is no item “%(name)s”.") % {"name": name[:100]}, where="names")
        if name not in ids:
            raise InputError(
                _(
                    "“%(name)s” has a label, or a run covers it, or it was in a round or is held out. "
                    "Choose another item."
                )
                % {"name": name[:100]},
                where="names",
            )
    return [ids[name] for name in names]
