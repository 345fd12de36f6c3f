"""/metrics, for whoever shows the token."""

from collections.abc import Iterable, Iterator

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from annotation.common.access import public
from hypac_site.metrics import models, web, work


class _Everything(Collector):
    def collect(self) -> Iterable[Metric]:
        return self._collect()

    def _collect(self) -> Iterator[Metric]:
        yield from web.collect()
        yield from work.collect()
        yield from models.collect()

    def describe(self) -> Iterable[Metric]:
        return ()


@public("GET")
def metrics(request: HttpRequest) -> HttpResponse:
    """404 where no token is configured, 401 for another one."""
    wanted = settings.HYPAC_METRICS_TOKEN
    if not wanted:
        raise Http404("no token is configured")
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not constant_time_compare(shown.strip(), wanted):
        return HttpResponse(
            "Show the token: Authorization: Bearer ...\n",
            status=401,
            content_type="text/plain; charset=utf-8",
            headers={"WWW-Authenticate": "Bearer"},
        )
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Everything())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)
