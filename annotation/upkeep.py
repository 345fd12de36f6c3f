"""What is looked after every few seconds: by a worker whom beat asks, or by `manage.py serve`."""

from annotation import jobs
from annotation.services import attempts, guidelines, idempotency, project_removal, tokens
from annotation.webhooks import sending


def look_after() -> None:
    """Any number of processes may do so at the same time."""
    jobs.reconcile()
    sending.catch_up()
    idempotency.forget_old()
    tokens.forget_ended()
    attempts.forget_old()
    project_removal.try_again()
    guidelines.render_outdated()
