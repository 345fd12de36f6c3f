"""A loss of one's own that does not declare to be quick, and tells which pairs it was asked about."""

from annotation.jobs import jobs
from annotation.models import Job, Project

PATH = "tests.routing.runs.slow_loss:SLOW"


class Slow:
    """Right or wrong."""

    bound = 1.0
    binary = True

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []

    def __call__(self, label: str, prediction: str) -> float:
        self.pairs.append((label, prediction))
        return float(label != prediction)


SLOW = Slow()


def compute_all(project: Project) -> int:
    """Do the jobs that compute losses until none waits; returns how many there were."""
    count = 0
    while job := project.jobs.filter(kind="compute_losses", state=Job.State.QUEUED).first():
        assert jobs.run(job.pk), Job.objects.get(pk=job.pk).error
        count += 1
    return count
