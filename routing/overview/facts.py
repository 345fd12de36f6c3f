"""What the stages of a project and its next step are told from, read once for both."""

from dataclasses import dataclass
from typing import Any

from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.labelling.queue import BatchProgress
from annotation.models import Job, Project
from annotation.models.projects import LONG_COLUMNS
from annotation.permissions import Access
from routing.common.states import State
from routing.models import Delivery, Run
from routing.runs.delivered import is_overtaken
from routing.runs.labelling_pace import routed_progress
from routing.runs.pool import has_items_without_label
from routing.runs.queries import failed_job_of


@dataclass(frozen=True)
class Facts:
    """`failed` is what ended badly and still waits; `jobs` are the unfinished ones by kind; `alone`: nobody
    else takes part in the project. `overtaken`: the run is complete, and its deliveries lack labels.
    """

    project: Project
    access: Access
    run: Run | None
    items: int
    sources: int
    calibration: BatchProgress | None
    routed: BatchProgress | None
    expert: BatchProgress | None
    jobs: dict[str, Job]
    failed: Job | None
    delivery: Delivery | None
    overtaken: bool
    alone: bool

    @property
    def here(self) -> dict[str, Any]:
        return {"slug": self.project.slug}

    @property
    def run_here(self) -> dict[str, Any]:
        return {"slug": self.project.slug, "number": self.run.number if self.run else 0}

    @property
    def state(self) -> str:
        return self.run.state if self.run else ""

    @property
    def more_for_people(self) -> bool:
        """Whether a run by people left items without a label."""
        return self.run is not None and self.run.by_people and has_items_without_label(self.project)

    def has_failed(self, kind: str) -> bool:
        return self.failed is not None and self.failed.kind == kind


def read_facts(access: Access) -> Facts:
    """`run` is the newest that was not cancelled."""
    project = access.project
    batches = tuple(
        f"{name}__project"
        for name in (
            *("calibration_batch", "routed_batch", "expert_batch", "expert_routed_batch"),
            "later_audit_batch",
        )
    )
    runs = project.runs.exclude(state=State.CANCELLED).select_related(*batches)
    run = runs.defer(*(f"{path}__{name}" for path in batches for name in LONG_COLUMNS)).last()
    return Facts(
        project=project,
        access=access,
        run=run,
        items=project.items.count(),
        sources=project.sources.count(),
        calibration=_progress(run and run.calibration_batch),
        routed=routed_progress(run) if run else None,
        expert=_progress(run and (run.expert_routed_batch or run.expert_batch)),
        jobs={job.kind: job for job in project.jobs.filter(state__in=jobs.UNFINISHED).order_by("id")},
        failed=failed_job_of(project, run),
        delivery=Delivery.objects.filter(run=run).first() if run else None,
        overtaken=run is not None and is_overtaken(run),
        alone=project.memberships.filter(is_active=True, user__is_active=True).count() == 1,
    )


def _progress(batch: Any) -> BatchProgress | None:
    return queue.batch_progress(batch) if batch else None
