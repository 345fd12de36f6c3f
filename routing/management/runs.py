"""What commands about runs have in common."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from annotation.jobs.manage import retry_job
from annotation.labelling import queue
from annotation.management.scripts import ScriptCommand, add_project, add_waiting
from annotation.models import Job
from annotation.permissions import Access
from routing.models import Certificate, Run

NEWEST = "newest"


class RunCommand(ScriptCommand):
    """A command that has a job take a run of a project further."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_project(parser)
        parser.add_argument("run", help=f"its number, or {NEWEST} for the newest that was not cancelled")
        add_waiting(parser)
        super().add_arguments(parser)

    def follow_run(self, run: Run, kind: str, access: Access, options: dict[str, Any]) -> None:
        """Follow the job that has the run in hand. One that failed, in an earlier night, goes on where it
        stopped.
        """
        job = run.project.jobs.filter(kind=kind, params__run=run.pk).order_by("-pk").first()
        if job is None:
            return
        if job.state == Job.State.FAILED and access.allows("jobs.edit"):
            retry_job(job=job, user=access.user)
        self.follow(job, options, beside=run_content(run))
        run.refresh_from_db()


def run_of(access: Access, named: str) -> Run:
    runs = access.project.runs.select_related("project")
    if named == NEWEST:
        run = runs.exclude(state=Run.State.CANCELLED).order_by("-number").first()
    else:
        number = int(named) if named.isdecimal() and len(named) < 10 else 0
        run = runs.filter(number=number).first()
    if run is None:
        raise CommandError(f"The project has no run {named}.")
    return run


def missing_in_words(left: int, about: str = "") -> str:
    return f"1 answer{about} is missing" if left == 1 else f"{left:,} answers{about} are missing"


def run_content(run: Run) -> dict[str, Any]:
    """Nothing of what the analysis finds is in it before the analysis."""
    content: dict[str, Any] = {"run": run.number, "state": run.state, "pool_size": run.pool_size}
    if run.invalid_reasons:
        content["invalid_reasons"] = run.broken_by
    certificate: Certificate | None = getattr(run, "certificate", None)
    if certificate is not None:
        content |= {"certified": certificate.holds, "certificate": certificate.sha256}
    return content


def left_to_label(run: Run) -> int:
    """How many answers by people the run still waits for at its present stage."""
    analysed = Certificate.objects.filter(run=run).exists()
    if analysed or run.by_people:
        batches = [run.routed_batch, run.expert_routed_batch, run.later_audit_batch]
    else:
        batches = [run.expert_batch if run.state == Run.State.CHECKING else run.calibration_batch]
    found = [queue.batch_progress(batch) for batch in batches if batch is not None]
    return sum(progress.open + progress.leased + progress.disagreeing for progress in found)
