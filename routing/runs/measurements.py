"""The measurement that a plan would rest on: the newest one, and whether it still fits."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotation.jobs import jobs
from annotation.models import Job, Project
from routing.models import MeasuredSource, Measurement, Run, Source
from routing.runs.pool import last_place, size_of_pool
from routing.sources.trials import way_of_asking

KIND = "measure"


@dataclass(frozen=True)
class Measured:
    """What was measured for a plan.

    Attributes
    ----------
    measurement
        The newest one that no run has used up and nobody discarded; None where there is none.
    job
        The newest job that has worked on it.
    stale
        Why no plan may rest on it any more, in a sentence; "" where it still fits.
    """

    measurement: Measurement | None = None
    job: Job | None = None
    stale: str = ""

    @property
    def state(self) -> str:
        """For programs."""
        if self.measurement is None:
            return "not measured"
        if self.under_way:
            return "under way"
        if self.stale:
            return "stale"
        return "measured" if self.measurement.finished_at else "stopped"

    @property
    def under_way(self) -> bool:
        return self.job is not None and self.job.state in jobs.UNFINISHED

    @property
    def usable(self) -> Measurement | None:
        """The measurement, where it is finished and still fits."""
        found = self.measurement
        return found if found and found.finished_at and not self.stale else None

    @property
    def unfinished(self) -> Measurement | None:
        """The measurement, where nobody works on it and it could be gone on with."""
        found = self.measurement
        return found if found and not (found.finished_at or self.stale or self.under_way) else None


def waiting_measurements(project: Project) -> QuerySet[Measurement]:
    """Those that no run has used up and nobody discarded. A cancelled run leaves its measurement behind."""
    used = Run.objects.filter(project=project).exclude(state=Run.State.CANCELLED)
    return project.measurements.filter(discarded_at__isnull=True).exclude(runs__in=used)


def measured_for(project: Project, *, target: str, sources: Sequence[Source]) -> Measured:
    """What was measured for a plan with this target and these sources.

    No server is asked: whether a model still answers as the same one is seen when the run starts.
    """
    newest = waiting_measurements(project).order_by("-pk").first()
    if newest is None:
        return Measured()
    job = project.jobs.filter(kind=KIND, params__measurement=newest.pk).order_by("-pk").first()
    return Measured(newest, job, _pool_changed(newest, target) or _sources_changed(newest, sources))


def _pool_changed(measurement: Measurement, target: str) -> str:
    """Whether a run would not cover what the measurement was drawn from; found out without reading items."""
    if measurement.outside != (target == Run.Target.POPULATION):
        return _(
            "It was drawn for another promise: for one about everything from the same source, what is "
            "measured stays outside the pool."
        )
    size = measurement.pool_size
    if measurement.outside and measurement.pool_hash:
        size -= measurement.size
    project = measurement.project
    if size_of_pool(project, target) != size or last_place(project) != measurement.last:
        return _("Items were imported, labelled or removed since.")
    return ""


def _sources_changed(measurement: Measurement, sources: Sequence[Source]) -> str:
    frozen = {row.source_id: row for row in MeasuredSource.objects.filter(measurement=measurement)}
    for source in sources:
        if source.pk not in frozen:
            return _("%(source)s was not measured.") % {"source": source.name}
        if frozen[source.pk].asked_as != way_of_asking(source):
            return _("How %(source)s is asked, or how its answers are read, was changed since.") % {
                "source": source.name
            }
    return ""
