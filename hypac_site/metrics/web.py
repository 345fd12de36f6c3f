"""Requests by the name of their view. With several web processes on one host, prometheus_client keeps the
figures in files that they share (PROMETHEUS_MULTIPROC_DIR, which hypac_site/gunicorn.py sets)."""

import os
from collections.abc import Iterable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector

# Seconds. The label of a view is its name in the addresses, of which there is a fixed number.
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

_registry = CollectorRegistry()
_seconds = Histogram(
    "hypac_http_request_seconds",
    "Seconds until an answer began, by the name of the view, method and class of status.",
    ("view", "method", "status"),
    buckets=BUCKETS,
    registry=_registry,
)


def observe(request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
    """Count one request; nothing where /metrics is off."""
    if not settings.HYPAC_METRICS_TOKEN:
        return
    match = request.resolver_match
    view = (match.view_name if match else None) or "none"
    method = request.method if request.method in METHODS else "other"
    _seconds.labels(view, method, f"{response.status_code // 100}xx").observe(seconds)


def collect() -> Iterable[Metric]:
    """Of all web processes of this host."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return _registry.collect()
    together = CollectorRegistry()
    MultiProcessCollector(together)
    return together.collect()
