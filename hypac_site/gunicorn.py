"""How gunicorn serves HyPAC where web server, workers and database run apart:

    gunicorn -c python:hypac_site.gunicorn hypac_site.wsgi

WEB_CONCURRENCY is the number of processes, HYPAC_WEB_THREADS that of threads in each; every thread keeps one
connection to the database. Options on the command line go first.
"""

import copy
import itertools
import os
import shutil
import tempfile
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hypac_site.settings")

from django.conf import settings

from hypac_site import environment

bind = environment.text("HYPAC_WEB_BIND") or "127.0.0.1:8000"
workers = environment.integer("WEB_CONCURRENCY", 2)
# Threads, so that somebody who downloads a large file slowly holds one of them and not a whole process.
worker_class = "gthread"
threads = environment.integer("HYPAC_WEB_THREADS", 4)
# Of a worker that answers nothing at all; a long download does not count.
timeout = 60
# A worker that is to end finishes its requests.
graceful_timeout = 30
# Above what proxies keep a connection open for (Caddy 2 minutes, nginx 60 s), so that they close it first.
keepalive = 125
# Memory that pages leave behind goes back to the system now and then, not in all workers at the same time.
max_requests = 10_000
max_requests_jitter = 1_000
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108 - a heartbeat on disk may stall
control_socket_disable = True
# The address and the scheme are taken from the proxy's headers by the settings (HYPAC_BEHIND_PROXY) alone.
forwarded_allow_ips = ""
# Its messages go where all others go. It writes no lines about requests: those of HYPAC_LOG_REQUESTS carry
# the id of the request.
logconfig_dict: dict[str, Any] = copy.deepcopy(settings.LOGGING)
logconfig_dict["loggers"] |= {
    "gunicorn.error": {"level": "INFO", "handlers": [], "propagate": True},
    "gunicorn.access": {"level": "WARNING", "handlers": [], "propagate": True},
}

if environment.text("HYPAC_METRICS_TOKEN"):
    # Before prometheus_client is imported, which looks for it then. Figures begin anew with the server.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="hypac-metrics-")


def pre_fork(server: Any, worker: Any) -> None:
    """Give the process the lowest number that no living one has."""
    taken = {other.hypac_number for other in server.WORKERS.values()}
    worker.hypac_number = next(number for number in itertools.count() if number not in taken)


def post_fork(server: Any, worker: Any) -> None:
    """Keep its figures under that number, where the process before it left them: by its own id, each process
    that is replaced would leave a file that every look at /metrics has to read.
    """
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        from prometheus_client import values

        values.ValueClass = values.MultiProcessValue(lambda: worker.hypac_number)


def on_exit(server: Any) -> None:
    if folder := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        shutil.rmtree(folder, ignore_errors=True)
