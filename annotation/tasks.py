"""Celery tasks: take an id, call one function."""

from celery import shared_task

from annotation import jobs


@shared_task(name="annotation.run_job")
def run_job(job_id: int) -> None:
    jobs.run(job_id)


@shared_task(name="annotation.reconcile_jobs")
def reconcile_jobs() -> None:
    jobs.reconcile()
