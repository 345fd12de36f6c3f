"""What is to be measured of a run whose losses are measured elsewhere, and how far that is.

Which items those are, and of which label and answers, is written down once, when the labels are locked: what
is asked again and again reads neither labels nor answers.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db.models import F, OuterRef, Subquery
from django.utils.translation import gettext as _

from annotation.common.value_reader import as_text
from annotation.errors import ConflictError
from annotation.models import Item, WorkBatch
from routing.common.states import State
from routing.models import DrawItem, GivenLosses, Run, WantedLosses
from routing.runs.given_losses import ToMeasure, what_to_measure
from routing.runs.load_calibration import records_at
from routing.runs.usable_answers import table_of_answers

HANDED_OUT = "run.losses_handed_out"
"""As what it stands in the audit trail that answers were given out."""
NAMED = 10
"""Items that are named in a sentence where losses are missing."""
LISTED = 100
"""Items that are named to a program."""
PART = 500
"""Items whose labels and answers are held at once; either may have 100,000 characters."""


@dataclass(frozen=True)
class LossesSoFar:
    """How far the measuring is; `missing` has names of items of which something is missing, the first in draw
    order, at most `LISTED`.
    """

    wanted: int
    done: int
    missing: Sequence[str]

    @property
    def left(self) -> int:
        return self.wanted - self.done

    @property
    def finished(self) -> bool:
        return not self.left

    @property
    def named(self) -> str:
        """The first of the missing ones, and how many more there are."""
        more = self.left - NAMED
        names = ", ".join(self.missing[:NAMED])
        if more <= 0:
            return names
        return _("%(names)s and %(more)s more") % {"names": names, "more": f"{more:,}"}


def refuse_computed_here(run: Run) -> None:
    """Raises ConflictError where nobody measures losses for the run."""
    if not run.measured_elsewhere:
        raise ConflictError(
            _("The losses of run %(run)s are computed here: its labels can be analysed.")
            % {"run": run.number},
            code="losses_computed_here",
        )


def note_wanted(run: Run, batch: WorkBatch) -> None:
    """Write down what is to be measured, once the labels of the batch are locked."""
    asked = DrawItem.objects.filter(draw__run=run, asked=True).order_by("order")
    orders = dict(asked.values_list("item", "order"))
    items = list(orders)
    for start in range(0, len(items), PART):
        WantedLosses.objects.bulk_create(
            WantedLosses(run=run, item_id=one.item, order=orders[one.item], measured=one.measured)
            for one in _read(run, batch, items[start : start + PART])
        )


def wanted_items(run: Run) -> list[int]:
    """Ids of the items whose losses are wanted, in draw order, which is random.

    Raises ConflictError, in words, where nothing is to be measured now.
    """
    _refuse_now(run)
    return list(run.wanted_losses.order_by("order").values_list("item", flat=True))


def to_measure(run: Run, items: Collection[int]) -> list[ToMeasure]:
    """What is to be measured of these items, in draw order; labels as they were locked. Items of which
    nothing is are left out.

    Raises ConflictError, in words, where nothing is to be measured now.
    """
    batch = _refuse_now(run)
    rows = run.wanted_losses.filter(item__in=items).order_by("order")
    return _read(run, batch, list(rows.values_list("item", flat=True)))


def losses_so_far(run: Run) -> LossesSoFar:
    """Raises ConflictError as `to_measure`."""
    _refuse_now(run)
    newest = GivenLosses.objects.filter(run=run, item=OuterRef("item")).order_by("-version")
    wanted = run.wanted_losses.annotate(given=Subquery(newest.values("measured")[:1]))
    done = wanted.filter(given=F("measured"))
    missing = wanted.exclude(pk__in=done.values("pk")).order_by("order")
    names = list(missing.values_list("item__external_id", flat=True)[:LISTED])
    return LossesSoFar(wanted.count(), done.count(), names)


def refuse_unmeasured(run: Run) -> None:
    """Raises ConflictError, which names items, where the losses of an answer are missing."""
    so_far = losses_so_far(run)
    if not so_far.finished:
        raise ConflictError(
            _(
                "The losses of models' answers about %(missing)s of %(wanted)s calibration items are "
                "missing: %(named)s. Both the label and the answers are in losses.ndjson; send what your "
                "program measures."
            )
            % {
                "missing": f"{so_far.left:,}",
                "wanted": f"{so_far.wanted:,}",
                "named": so_far.named,
            },
            code="losses_missing",
        )


def _refuse_now(run: Run) -> WorkBatch:
    """The batch whose labels are locked. Raises ConflictError where nothing is to be measured now."""
    refuse_computed_here(run)
    batch = run.calibration_batch
    if run.state != State.LOSSES or batch is None or batch.locked_at is None:
        raise ConflictError(
            _(
                "Nothing of run %(run)s is to be measured now: %(state)s. What models answered is given out "
                "once the calibration labels are locked, and until the analysis."
            )
            % {"run": run.number, "state": run.get_state_display().lower()},
            code="no_losses_wanted_now",
        )
    return batch


def _read(run: Run, batch: WorkBatch, items: Sequence[int]) -> list[ToMeasure]:
    """Of those, in this order, that have a label and that a model has answered about."""
    if batch.locked_at is None:
        raise TypeError("its labels are not locked")
    names = dict(Item.objects.filter(pk__in=items).values_list("pk", "external_id"))
    labels = records_at(batch, batch.locked_at, items)
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    answers, _scores = table_of_answers(run, run_sources, items)
    found = (
        what_to_measure(
            item, names[item], as_text(labels[item]) if item in labels else None, tuple(answers[item])
        )
        for item in items
    )
    return [one for one in found if one is not None]
