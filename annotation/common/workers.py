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
SEND_MAIL = "annotation.send_mail"

# After a broker that did not answer, answers of people do not wait for it so soon again: the rows are there,
# and the reconciler looks at them.
SILENT_SECONDS = 30.0
_silent_until = 0.0


def message_workers(task: str, *args: int, queue: str = "default") -> None:
    """Raises what the broker raises, and at once: it is asked one time."""
    current_app.send_task(task, args=args, queue=queue, retry=False, ignore_result=True)


def announce_webhooks(webhook_ids: Iterable[int]) -> None:
    """Nudge a worker for each of these addresses. A broker that is down is no failure."""
    for pk in webhook_ids:
        if not _nudge(SEND_WEBHOOKS, pk):
            return


def announce_mail() -> None:
    """Nudge a worker to send what is stored."""
    _nudge(SEND_MAIL)


def _nudge(task: str, *args: int) -> bool:
    """Whether the broker took it. After one that did not, nobody waits for it so soon again."""
    global _silent_until

    if time.monotonic() < _silent_until:
        return False
    try:
        message_workers(task, *args)
    except Exception:
        _silent_until = time.monotonic() + SILENT_SECONDS
        log.warning("%s%s could not be announced; it is done later.", task, args, exc_info=True)
        return False
    return True
