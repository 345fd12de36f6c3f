"""What is to be measured of a run whose losses are measured elsewhere, and how far that is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from annotation.common.value_reader import as_text
from annotation.errors import ConflictError
from routing.common.states import State
from routing.models import Run
from routing.runs.given_losses import ToMeasure, given_losses, measured, to_measure_of
from routing.runs.load_calibration import drawn_rows, records_at

NAMED = 10
"""Items that are named where losses are missing."""


@dataclass(frozen=True)
class LossesSoFar:
    """How far the measuring is; `missing` has the names of all items of which something is missing."""

    wanted: int
    missing: Sequence[str]

    @property
    def done(self) -> int:
        return self.wanted - len(self.missing)

    @property
    def finished(self) -> bool:
        return not self.missing

    @property
    def named(self) -> str:
        """The first of the missing ones, and how many more there are."""
        more = len(self.missing) - NAMED
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


def to_measure(run: Run) -> list[ToMeasure]:
    """In draw order, which is random; labels as they were locked.

    Raises ConflictError, in words, where nothing is to be measured now.
    """
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
    labels = records_at(batch, batch.locked_at)
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    drawn = drawn_rows(run, run_sources)
    labelled = [
        replace(row, label=as_text(labels[item])) if row.asked and item in labels else row
        for item, row in zip(drawn.item_ids, drawn.rows, strict=True)
    ]
    return to_measure_of(drawn.item_ids, labelled)


def losses_so_far(run: Run) -> LossesSoFar:
    """Raises ConflictError as `to_measure`."""
    wanted = to_measure(run)
    found = measured(wanted, given_losses(run))
    return LossesSoFar(len(wanted), [one.name for one in wanted if one.item not in found])


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
                "missing": f"{len(so_far.missing):,}",
                "wanted": f"{so_far.wanted:,}",
                "named": so_far.named,
            },
            code="losses_missing",
        )
