"""What is looked after every few seconds: by a worker whom beat asks, or by `manage.py serve`."""

from annotation import retention
from annotation.common import attempts, once, own_folders
from annotation.common.api import idempotency
from annotation.imports import bucket_sync
from annotation.jobs import jobs
from annotation.mail import digest, sending as mail
from annotation.outside.webhooks import sending
from annotation.people import sessions, tokens
from annotation.ports import routing_port
from annotation.projects import guidelines, removal


def run_maintenance() -> None:
    """Any number of processes may do so at the same time."""
    jobs.reconcile()
    bucket_sync.start_due()
    sending.catch_up()
    mail.catch_up()
    digest.post_digests()
    idempotency.forget_old()
    tokens.forget_ended()
    attempts.forget_old()
    once.forget_old()
    sessions.forget_old()
    removal.retry_removals()
    guidelines.render_outdated()
    retention.forget_old()
    routing_port().maintain_losses()
    own_folders.remove_abandoned()
