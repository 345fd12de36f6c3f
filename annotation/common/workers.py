"""Messages to the workers, by the names of Celery tasks: whoever sends one need not import what it starts."""

from celery import current_app

RUN_JOB = "annotation.run_job"
SEND_WEBHOOKS = "annotation.send_webhooks"


def message_workers(task: str, pk: int, *, queue: str = "default") -> None:
    """Raises what the broker raises, and at once: it is asked one time."""
    current_app.send_task(task, args=(pk,), queue=queue, retry=False, ignore_result=True)
