"""Celery tasks: take an id, call one function."""

from celery import shared_task

from annotation import maintenance
from annotation.common import workers
from annotation.jobs import jobs
from annotation.mail import sending as mail
from annotation.outside.webhooks import sending


@shared_task(name=workers.RUN_JOB)
def run_job(job_id: int) -> None:
    jobs.run(job_id)


@shared_task(name="annotation.reconcile_jobs")
def reconcile_jobs() -> None:
    maintenance.run_maintenance()


@shared_task(name=workers.SEND_WEBHOOKS)
def send_webhooks(webhook_id: int) -> None:
    sending.send_due(webhook_id)


@shared_task(name=workers.SEND_MAIL)
def send_mail() -> None:
    mail.send_due()
