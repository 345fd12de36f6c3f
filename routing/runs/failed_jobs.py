"""What ended badly in a project and still waits for somebody."""

from annotation.models import Job, Project
from routing.models import Run


def failed_job_of(project: Project, run: Run | None) -> Job | None:
    """The newest job, if it failed or was stopped and what it was for still waits for it."""
    job = project.jobs.order_by("-id").first()
    if job is None or job.state not in (Job.State.FAILED, Job.State.CANCELLED):
        return None
    if "run" in job.params and (run is None or job.params["run"] != run.pk):
        return None
    return job if job.state == Job.State.FAILED or "run" in job.params else None
