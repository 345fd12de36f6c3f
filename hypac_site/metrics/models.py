"""What models did and cost.

Predictions and payments are append-only tables, so their counters go on from the row that was counted last,
along the primary key. The last row and the sums lie in the cache that web processes share. Rows of the last
MARGIN are left for later: one with a lower id may still be under way in another transaction.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Max, Model, Q, QuerySet, Sum
from django.utils import timezone
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from annotation.models import Project
from routing.models import Prediction, Reservation, Source, Spend

MARGIN = timedelta(seconds=30)
# Rows that one scrape looks at, at most; what is left is counted by the next ones.
MOST_ROWS = 50_000
KEPT_SECONDS = 24 * 3600
# Milliseconds.
BUCKETS = (50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)


@dataclass
class _Calls:
    """Of one source: `within[i]` took at most BUCKETS[i]."""

    name: str = ""
    answers: int = 0
    unusable: int = 0
    timed: int = 0
    milliseconds: float = 0.0
    within: list[int] = field(default_factory=lambda: [0] * len(BUCKETS))


def collect() -> Iterator[Metric]:
    yield from _predictions()
    yield from _spend()


def _predictions() -> Iterator[Metric]:
    calls = _count_predictions()
    answers = CounterMetricFamily(
        "hypac_predictions",
        "Predictions stored since counting began, by source: usable answers, and those without.",
        labels=("source", "outcome"),
    )
    latency = HistogramMetricFamily(
        "hypac_model_call_seconds",
        "Seconds that a model took for an answer, as its worker measured it, by source.",
        labels=("source",),
    )
    for key, one in sorted(calls.items()):
        label = f"{key}:{one.name}"
        answers.add_metric((label, "usable"), one.answers - one.unusable)
        answers.add_metric((label, "unusable"), one.unusable)
        if one.timed:
            buckets = [(str(limit / 1000), float(n)) for limit, n in zip(BUCKETS, one.within, strict=True)]
            latency.add_metric((label,), [*buckets, ("+Inf", float(one.timed))], one.milliseconds / 1000)
    yield answers
    yield latency


def _count_predictions() -> dict[int, _Calls]:
    """By id of the source, since the cache began to hold them."""
    stored: dict[str, Any] | None = cache.get("metrics:predictions")
    if stored is None:  # what came before is not counted: that would be a look at the whole table
        stored = {"mark": _newest(Prediction), "sources": {}}
    calls = {key: _Calls(**one) for key, one in stored["sources"].items()}
    mark, new = _next_rows(Prediction, stored["mark"], most=MOST_ROWS)
    within = {f"within{i}": Count("pk", filter=Q(latency_ms__lte=limit)) for i, limit in enumerate(BUCKETS)}
    rows = (
        new.order_by()
        .values("source_id")
        .annotate(
            answers=Count("pk"),
            unusable=Count("pk", filter=Q(value__isnull=True)),
            timed=Count("latency_ms"),
            milliseconds=Sum("latency_ms"),
            **within,
        )
    )
    for row in rows if mark > stored["mark"] else ():
        one = calls.setdefault(row["source_id"], _Calls())
        one.answers += row["answers"]
        one.unusable += row["unusable"]
        one.timed += row["timed"]
        one.milliseconds += row["milliseconds"] or 0.0
        one.within = [n + row[f"within{i}"] for i, n in enumerate(one.within)]
    names = dict(Source.objects.filter(pk__in=calls).values_list("pk", "name"))
    calls = {key: one for key, one in calls.items() if key in names}
    for key, one in calls.items():
        one.name = names[key]
    kept = {"mark": mark, "sources": {key: asdict(one) for key, one in calls.items()}}
    cache.set("metrics:predictions", kept, KEPT_SECONDS)
    return calls


def _spend() -> Iterator[Metric]:
    spent = GaugeMetricFamily(
        "hypac_spend",
        "What labels and predictions of a project have cost, in its currency.",
        labels=("project", "currency", "by"),
    )
    for (project, currency, by), amount in sorted(_sum_spend().items()):
        spent.add_metric((project, currency, by), float(amount))
    yield spent
    reserved = GaugeMetricFamily(
        "hypac_spend_reserved",
        "Set aside for calls of models that are under way, in the project's currency.",
        labels=("project", "currency"),
    )
    open_ = Reservation.objects.filter(state=Reservation.State.OPEN).order_by()
    rows = open_.values_list("run__project__slug", "run__project__currency").annotate(sum=Sum("amount"))
    for slug, currency, amount in rows:
        reserved.add_metric((slug, currency), float(amount))
    yield reserved


def _sum_spend() -> dict[tuple[str, str, str], Decimal]:
    """By project, currency and who was paid. All rows are read once, when the cache holds nothing."""
    stored: dict[str, Any] = cache.get("metrics:spend") or {"mark": 0, "sums": {}}
    sums: dict[tuple[int, bool], Decimal] = stored["sums"]
    mark, new = _next_rows(Spend, stored["mark"])
    if mark > stored["mark"]:
        sums = _added(sums, new)
        cache.set("metrics:spend", {"mark": mark, "sums": sums}, KEPT_SECONDS)
    latest = _added(sums, Spend.objects.filter(pk__gt=mark))
    projects = {
        pk: (slug, currency)
        for pk, slug, currency in Project.objects.filter(
            pk__in={project for project, _ in latest}
        ).values_list("pk", "slug", "currency")
    }
    return {
        (*projects[project], "people" if people else "models"): amount
        for (project, people), amount in latest.items()
        if project in projects
    }


def _added(sums: dict[tuple[int, bool], Decimal], rows: "QuerySet[Spend]") -> dict[tuple[int, bool], Decimal]:
    together = dict(sums)
    grouped = rows.order_by().values_list("project_id", "source_id").annotate(sum=Sum("amount"))
    for project, source, amount in grouped:
        key = (project, source is None)
        together[key] = together.get(key, Decimal(0)) + amount
    return together


def _newest(model: type[Model]) -> int:
    return model._default_manager.aggregate(newest=Max("pk"))["newest"] or 0


def _next_rows(model: type[Any], mark: int, *, most: int | None = None) -> tuple[int, "QuerySet[Any]"]:
    """(new mark, rows between the marks): those after `mark` that are older than MARGIN, at most `most`."""
    beyond = model._default_manager.filter(pk__gt=mark)
    if most is not None:
        end = beyond.order_by("pk").values_list("pk", flat=True)[most - 1 : most].first()
        beyond = beyond.filter(pk__lte=end) if end else beyond
    settled = timezone.now() - MARGIN
    last = beyond.filter(created_at__lt=settled).order_by("-pk").values_list("pk", flat=True).first()
    return (last or mark), model._default_manager.filter(pk__gt=mark, pk__lte=last or mark)
