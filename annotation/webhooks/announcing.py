"""The message to workers that something is to be sent: a nudge, as that of jobs."""

import logging
import time
from collections.abc import Iterable

from annotation.common.workers import SEND_WEBHOOKS, message_workers

log = logging.getLogger(__name__)

# After a broker that did not answer, answers of people do not wait for it so soon again: the rows are there,
# and the reconciler looks at them.
SILENT_SECONDS = 30.0
_silent_until = 0.0


def announce(webhook_ids: Iterable[int]) -> None:
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
