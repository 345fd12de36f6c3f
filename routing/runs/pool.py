"""Which items a run covers, and what the data set that it completes holds beside them."""

from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.items.queries import brought_by
from annotation.labelling.label_queries import imported_batches
from annotation.labelling.labels_of_record import has_record, has_split_record
from annotation.models import Item, Project, ShownSuggestion, WorkItem
from routing.core.choices import DEFAULT_TARGET
from routing.models import DrawItem, MeasuredItem, PilotItem, PoolItem, RoundItem, Run
from routing.runs.covered_items import COVERED
from routing.visibility import hidden_batches

ERASED = Q(erased_at__isnull=False)
"""Of items: there is nothing left to label."""


def pool_of(project: Project, target: str, *, of_rounds: bool = False) -> QuerySet[Item]:
    """The items that a run planned now would cover, in the order of import: those without a label by people.
    Where labels that came with an import differ about an item, it waits for a reviewer, who sees them: it is
    in no pool either. Nor is an item of a guideline round, which all have seen and talked about;
    `of_rounds` has these, too, for runs by people alone. Nor one of which somebody was shown what a model
    answered, nor one that is held out, or whose content was erased, whatever the run.

    For the target `population` also none that an earlier run drew, or its pilot used, or that was measured: a
    random sample of the source's items must not have been looked at before. And none of a pool whose rest
    people were given by thresholds: what they left is no random sample, but the items that the models find
    easy. Nor any that came with an import that brought labels: why people elsewhere had left them out, nobody
    knows. Nor any that was there when people were given some by filters, or named some for a guideline round
    or to be held out: these left out others than chance does. So does whoever erases items that nothing had
    looked at.
    """
    out = _in_no_run(project) if of_rounds else _left_out(project)
    items = project.items.filter(~out)
    if target == Run.Target.POPULATION:
        items = items.filter(*(~used for used in _looked_at()))
        items = items.exclude(_came_beside_labels(project)).exclude(_left_by_filters(project))
        items = items.exclude(_left_by_names(project)).exclude(_left_by_erasure(project))
    return items.order_by("position")


def _has_labels(project: Project) -> Q:
    brought = list(project.work_batches.filter(imported_by__isnull=False).values_list("pk", flat=True))
    labelled = has_record(project, item="pk") & ~has_split_record(project, item="pk")
    if not brought:
        return labelled
    return labelled | Q(Exists(WorkItem.objects.filter(item=OuterRef("pk"), batch__in=brought)))


def _left_out(project: Project) -> Q:
    return _in_no_run(project) | in_rounds(project)


def _in_no_run(project: Project) -> Q:
    return _has_labels(project) | was_suggested(project) | is_held_out(project) | ERASED


def is_held_out(project: Project, item: str = "pk") -> Q:
    """Rows, by their path to an item, about items that are kept to practise on or to check people with."""
    return Q(**{f"{item}__in": project.held_out.values("item")})


def in_rounds(project: Project, item: str = "pk") -> Q:
    """Rows, by their path to an item, about items of guideline rounds."""
    return Q(**{f"{item}__in": RoundItem.objects.filter(round__project=project).values("item")})


def was_suggested(project: Project) -> Q:
    """Items that somebody was shown with a model's answer, and may not have labelled: nobody could say any
    more that they are labelled blind.
    """
    shown = ShownSuggestion.objects.filter(work_item__batch__project=project)
    return Q(pk__in=shown.values("work_item__item"))


def _looked_at() -> tuple[Exists, ...]:
    """Of an item whether a run drew it, used it as its pilot, or routed it with the rest of its pool, and
    whether it was measured before a plan was chosen.
    """
    return (
        Exists(DrawItem.objects.filter(item=OuterRef("pk"))),
        Exists(PilotItem.objects.filter(item=OuterRef("pk"))),
        Exists(MeasuredItem.objects.filter(item=OuterRef("pk"))),
        Exists(PoolItem.objects.filter(COVERED, item=OuterRef("pk"), run__routed_batch__isnull=False)),
    )


def _came_beside_labels(project: Project) -> Q:
    return brought_by(project.jobs.filter(label_batches__isnull=False).distinct())


def _left_by_filters(project: Project) -> Q:
    """Items that were there when a run by people chose its items by filters."""
    runs = project.runs.filter(by_people=True).values_list("chosen", flat=True)
    last = max((chosen["last"] for chosen in runs if chosen and chosen["filters"]), default=-1)
    return Q(position__lte=last)


def _left_by_names(project: Project) -> Q:
    """Items that were there when somebody named those of a guideline round, or some to be held out."""
    named = (project.rounds.filter(by_name=True), project.held_out.filter(at_random=False))
    found = [rows.aggregate(last=Max("created_at"))["last"] for rows in named]
    last = max((one for one in found if one is not None), default=None)
    return Q(pk__in=[]) if last is None else Q(created_at__lte=last)


def _left_by_erasure(project: Project) -> Q:
    """Items that were there when one was erased that a run could have drawn: who chose it, and why, nobody
    knows. Those that were in no pool any more leave every pool as it was.
    """
    erased = project.items.filter(ERASED).exclude(_has_labels(project)).exclude(is_held_out(project))
    erased = erased.exclude(in_rounds(project)).filter(*(~used for used in _looked_at()))
    last = erased.aggregate(last=Max("erased_at"))["last"]
    return Q(pk__in=[]) if last is None else Q(created_at__lte=last)


def labelled_already(project: Project) -> int:
    """How many items have a label by people, from whatever run or import: they are in no pool."""
    return project.items.filter(_has_labels(project)).count()


def size_of_pool(project: Project, target: str) -> int:
    """How many items `pool_of` has. A form asks whenever a field of it changes, so that the few that are
    labelled are looked for, and the others counted in an index.
    """
    if target == Run.Target.POPULATION:
        return pool_of(project, target).count()
    return project.items.count() - project.items.filter(_left_out(project)).count()


def has_items_without_label(project: Project) -> bool:
    """Whether a run planned now could cover any item."""
    return project.items.filter(~_has_labels(project), ~is_held_out(project), ~ERASED).exists()


def last_place(project: Project) -> int:
    """Position of the last item; 0 where there is none."""
    return project.items.aggregate(last=Max("position"))["last"] or 0


def nothing_to_plan_for(project: Project) -> InputError:
    """Why `pool_of` has no item."""
    if not project.items.exists():
        return InputError(_("There is no item yet: import data first."), where="m")
    unlabelled = project.items.filter(~_has_labels(project), ~ERASED)
    if not unlabelled.exists():
        return InputError(
            _(
                "Every item has a label already, or was erased, and a run covers those without one: import "
                "new items first."
            ),
            where="m",
        )
    unlabelled = unlabelled.exclude(is_held_out(project))
    if not unlabelled.exists():
        return InputError(
            _(
                "Every item without a label is held out: for practice, as gold, or to compare prompts. "
                "Import new items."
            ),
            where="m",
        )
    if not unlabelled.exclude(in_rounds(project)).exists():
        return InputError(
            _("Every item without a label was in a guideline round, and is in no draw. Import new items."),
            where="m",
        )
    if not unlabelled.exclude(in_rounds(project) | was_suggested(project)).exists():
        return InputError(
            _(
                "Every item without a label was shown to somebody with what a model answered, and is in no "
                "draw. Import new items."
            ),
            where="m",
        )
    unused = unlabelled.exclude(in_rounds(project) | was_suggested(project)).filter(
        *(~used for used in _looked_at())
    )
    if unused.filter(_left_by_filters(project)).exclude(_came_beside_labels(project)).exists():
        why = _(
            "People were given items of this project by filters, and what a filter leaves is no random "
            "sample of its source."
        )
        what = _("For this target, import new items from the same source first, without labels.")
        return InputError(f"{why} {what}", where="target")
    if unused.filter(_left_by_names(project)).exclude(_came_beside_labels(project)).exists():
        why = _(
            "Somebody named items for a guideline round, for practice or as gold, and what that leaves is no "
            "random sample of its source."
        )
        what = _("For this target, import new items from the same source first, without labels.")
        return InputError(f"{why} {what}", where="target")
    if unused.filter(_left_by_erasure(project)).exclude(_came_beside_labels(project)).exists():
        why = _(
            "Items were erased that no run had looked at yet, and what that leaves is no random sample of "
            "its source."
        )
        what = _("For this target, import new items from the same source first, without labels.")
        return InputError(f"{why} {what}", where="target")
    beside_labels = unused.count()
    used = unlabelled.count() > beside_labels
    if used and beside_labels:
        why = _(
            "Of the items without a label, earlier runs have drawn, used or routed some, and the others "
            "came with an import that brought labels."
        )
    elif used:
        why = _("Earlier runs have drawn, used or routed every item without a label.")
    else:
        why = _(
            "Every item without a label came with an import that brought labels of others: why people "
            "elsewhere had left these out, nobody knows."
        )
    what = _("For this target, import new items from the same source first, without labels.")
    return InputError(f"{why} {what}", where="target")


def data_set_size(project: Project, *, target: str, pool_size: int) -> int | None:
    """N_all: items of the data set that a run on the `pool_size` items without a label would complete.

    The other items of the delivery carry labels that people gave before. For the target `dataset` these count
    as right, so the pool may hold as many wrong labels as are allowed in the whole data set. None where there
    are no such items, and for the other targets, which speak about the pool or its source alone.

    An item whose labels may not be shown yet is delivered blank, so it is not counted. Nor is one whose
    label came with an import: nobody gave it for this project, so that it allows no wrong label elsewhere.
    """
    if target != Run.Target.DATASET:
        return None
    aside = hidden_batches(project).union(imported_batches(project))
    labelled = project.items.filter(has_record(project, item="pk", hidden=aside)).count()
    return pool_size + labelled if labelled else None


def has_new_items(*, project: Project, target: str | None = None) -> bool:
    """Whether a run planned now would cover an item that was in no pool before, be it of a cancelled run."""
    in_a_pool = Exists(PoolItem.objects.filter(item=OuterRef("pk")))
    return pool_of(project, target or DEFAULT_TARGET).filter(~in_a_pool).exists()


def items_in_no_run(project: Project, *, of_rounds: bool = False) -> int:
    """How many items a run planned now would cover, and no run does that was not cancelled."""
    runs = project.runs.exclude(state=Run.State.CANCELLED)
    covered = Exists(PoolItem.objects.filter(COVERED, item=OuterRef("pk"), run__in=runs))
    return pool_of(project, DEFAULT_TARGET, of_rounds=of_rounds).filter(~covered).count()
