"""What is the same for all items of a delivery."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from django.db.models import Q

from annotation.common.ranges import of_items
from annotation.common.value_reader import Value
from annotation.labelling.label_queries import imported_batches
from annotation.models import Item
from routing.models import Run, RunSource
from routing.sources.visibility import hidden_batches, in_open_calibration


@dataclass(frozen=True)
class Frame:
    """The run, its sources, the names of the choices, and which batches count."""

    run: Run
    run_sources: Sequence[RunSource]
    names: Mapping[str, str]
    hidden: set[int]
    anew: Q
    runs_of_batches: Mapping[int, int]
    certificate_id: str
    imported: Set[int] = frozenset()

    @classmethod
    def of(cls, run: Run) -> "Frame":
        runs_of_batches: dict[int, int] = {}
        batches = run.project.runs.values_list("number", "calibration_batch", "routed_batch")
        for number, calibration, routed in batches:
            runs_of_batches |= {batch: number for batch in (calibration, routed) if batch is not None}
        return cls(
            run=run,
            run_sources=list(run.run_sources.select_related("source").order_by("position")),
            names=dict(run.project.choices.values_list("key", "name")),
            hidden=hidden_batches(run.project),
            anew=in_open_calibration(run.project, "pk"),
            runs_of_batches=runs_of_batches,
            certificate_id=run.certificate.sha256,
            imported=frozenset(imported_batches(run.project)),
        )

    @cached_property
    def own_batches(self) -> set[int]:
        """Batches of the run, whose labels go before others."""
        batches = (self.run.calibration_batch_id, self.run.routed_batch_id)
        return {pk for pk in batches if pk is not None}

    def in_open_calibration(self, ids: Collection[int]) -> set[int]:
        """Of these items those that an open run asks about again: nothing that people said of them counts,
        also where a correction has settled it meanwhile.
        """
        among = Item.objects.filter(of_items("pk", list(ids)))
        return set(among.filter(self.anew).values_list("pk", flat=True)).intersection(ids)

    def name_of(self, value: Value) -> Value | None:
        """Of choices their names as they are now; None where the label is no choice."""
        if isinstance(value, list):
            return [self.names.get(key, key) for key in value]
        return self.names.get(value)
