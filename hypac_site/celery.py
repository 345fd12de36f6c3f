"""The Celery application. Messages are only nudges: the Job rows say what there is to do."""

import ctypes
import logging
import multiprocessing
import os
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_process_init, worker_ready, worker_shutting_down

log = logging.getLogger(__name__)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hypac_site.settings")

app = Celery("hypac")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# Made before the worker forks, so that its children see it, too. No Event: that has a lock, and a child that
# is killed while it looks would hold it for ever, with the worker and all its other children waiting for it.
_ends = multiprocessing.RawValue(ctypes.c_bool, False)


def is_ending() -> bool:
    """Whether this worker is to end."""
    return bool(_ends.value)


@worker_init.connect
def _watch(**_: Any) -> None:
    from annotation.jobs import context

    context.stop_when(is_ending)


@worker_init.connect
def _keep_places_free(**_: Any) -> None:
    from hypac_site import redis_broker

    redis_broker.install(app.conf.broker_url)


@worker_process_init.connect
def _limit_memory(**_: Any) -> None:
    from django.conf import settings

    from hypac_site import worker_memory

    worker_memory.limit(settings.HYPAC_WORKER_MEMORY_MB)


@worker_ready.connect
def _look_around(**_: Any) -> None:
    """Say at the start what this host has otherwise than the others: later it would be a job that fails."""
    from django.db import connections

    from annotation.checks import host_findings

    for finding in host_findings():
        log.log(finding.level, "%s", finding)
    connections.close_all()


@worker_shutting_down.connect
def _let_go(**_: Any) -> None:
    """A job that can be taken up again stores what is under way, and another worker goes on with it."""
    _ends.value = True
