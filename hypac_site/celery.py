"""The Celery application. Messages are only nudges: the Job rows say what there is to do."""

import ctypes
import multiprocessing
import os
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_shutting_down

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hypac_site.settings")

app = Celery("hypac")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# Made before the worker forks, so that its children see it, too. No Event: that has a lock, and a child that
# is killed while it looks would hold it for ever, with the worker and all its other children waiting for it.
_ends = multiprocessing.RawValue(ctypes.c_bool, False)


def ends() -> bool:
    """Whether this worker is to end."""
    return bool(_ends.value)


@worker_init.connect
def _watch(**_: Any) -> None:
    from annotation import job_context

    job_context.stop_when(ends)


@worker_shutting_down.connect
def _let_go(**_: Any) -> None:
    """A job that can be taken up again stores what is under way, and another worker goes on with it."""
    _ends.value = True
