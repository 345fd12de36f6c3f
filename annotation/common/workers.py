"""Messages to the workers, by the names of Celery tasks: whoever sends one need not import what it starts.

A message is a nudge: the row says what is to be done.
"""

import logging
import time
from collections.abc import Iterable

from celery import current_app

log = logging.getLogger(__name__)

RUN_JOB = "annotation.run_job"
SEND_WEBHOOKS = "annotation.send_webhooks"

# After a broker that did not answer, answers of people do not wait for it so soon again: the rows are there,
# and the reconciler looks at them.
SILENT_SECONDS = 30.0
_silent_until = 0.0


def message_workers(task: str, pk: int, *, queue: str = "default") -> None:
    """Raises what the broker raises, and at once: it is asked one time."""
    current_app.send_task(task, args=(pk,), queue=queue, retry=False, ignore_result=True)


def announce_webhooks(webhook_ids: Iterable[int]) -> None:
    """Nudge a worker for each of these addresses. A broker that is down is no failure."""
    global _silent_until

    for pk in webhook_ids:
        if time.monotonic() < _silent_until:
            return
        try:
            message_workers(SEND_WEBHOOKS, pk)
        except Exception:
            _silent_until = time.monotonic() + SILENT_SECONDS
            log.warning(
                "Messages to webhook %s could not be announced; they are sent later.", pk, exc_info=True
            )
