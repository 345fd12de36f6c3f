"""One item with all that this person may see of it: what people and models said, where it went."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from django.db.models import Exists, Model, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext as _

from annotation.common import limits
from annotation.common.replaced_labels import names_as_given
from annotation.common.value_reader import Value
from annotation.imports.limits import MAX_COLUMNS
from annotation.labelling.label_queries import label_in_words
from annotation.models import AuditEvent, Comment, Item, Label, Project, Settlement, Skip
from annotation.permissions import Access
from routing.core.every_score.chain import FIRST_SCORE
from routing.core.every_score.items import EVERYTHING
from routing.core.scores import SCORES
from routing.core_language import translated
from routing.items.table import neighbours
from routing.models import (
    REMOVED,
    Delivery,
    ItemScore,
    PoolItem,
    Prediction,
    PromptVersion,
    Route,
    Run,
    RunSource,
)
from routing.runs.chains import limits_of, thresholds_from_json
from routing.runs.covered_items import COVERED
from routing.runs.expert.analyse import SLICES
from routing.runs.expert.report import source_names
from routing.sources.hidden_columns import hidden_columns
from routing.visibility import ViewPermission, view_permission

Row = TypeVar("Row", bound=Model)

SAME_SHOWN = 20
EVENTS_SHOWN = 50


@dataclass(frozen=True)
class LabelVersion:
    value: Value
    name: str
    annotator: str
    version: int
    counts: bool
    comment: str
    created_at: datetime
    seconds: float | None


@dataclass(frozen=True)
class SettledView:
    """`value` is None where the item was opened again. `by` is "" where no reviewer decided."""

    value: Value | None
    name: str
    method: str
    by: str
    version: int
    counts: bool
    comment: str
    created_at: datetime


@dataclass(frozen=True)
class ScoreView:
    """`unscored` says why `value` is 1 only for want of a score; it is "" where there is one."""

    title: str
    value: float
    unscored: str


@dataclass(frozen=True)
class PredictionView:
    """What a source answered once.

    `cost_note` says why the price per label was charged instead of what was used; "" where it was not. `raw`
    holds what the answer and the scores were read from, `prompt` the number of the prompt that was in force
    then (None for a source without one), `runs` the numbers of the runs that it counts in.
    """

    source: str
    value: Value | None
    name: str
    reason: str
    scores: list[ScoreView]
    cost: Any
    cost_note: str
    raw: dict[str, Any]
    tokens_in: int | None
    tokens_out: int | None
    finish_reason: str
    latency_ms: float | None
    model: str
    prompt: int | None
    fingerprint: str
    runs: list[int]
    created_at: datetime

    @property
    def removed(self) -> bool:
        return self.raw == REMOVED

    @property
    def raw_text(self) -> str:
        text = json.dumps(self.raw, indent=2, ensure_ascii=False)
        return text if len(text) <= limits.LONG_TEXT else f"{text[: limits.LONG_TEXT]}…"


@dataclass(frozen=True)
class Step:
    """One threshold of a run: the item stays with the source where its score, the source's `own` or that of
    the first one, is at most `u`; None: nothing stays there. `everything`: every answer that can be used.
    """

    source: str
    u: float | None
    own: bool
    everything: bool


@dataclass(frozen=True)
class RouteView:
    """Where a run sent the item: `source` is "" for people, None where it is not routed yet."""

    run: int
    source: str | None
    u: float | None
    drawn: bool
    asked: bool
    p: Decimal | None
    steps: list[Step]
    invalid: str


@dataclass(frozen=True)
class ItemHistory:
    """`deliveries` are those made since the item was imported: each holds every item of its moment. Of each
    list the newest entries (annotation.common.limits). `data` has columns by the beginning of their names,
    which two may share; `more_columns` are not in it. `withholds`: as it is `blind`, something is left out.
    """

    item: Item
    data: list[tuple[str, str]]
    labels: list[LabelVersion]
    predictions: list[PredictionView]
    routes: list[RouteView]
    blind: bool
    withholds: bool = False
    settlements: list[SettledView] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    events: list[AuditEvent] = field(default_factory=list)
    next: int | None = None
    previous: int | None = None
    duplicates: list[Item] = field(default_factory=list)
    more_columns: int = 0


def item_history(
    project: Project,
    access: Access,
    item_id: int,
    *,
    filters: Mapping[str, str] | None = None,
    sort: str = "position",
    run: int | None = None,
) -> ItemHistory | None:
    """None where the project has no such item. `filters`, `sort` and `run` are those of the table that the
    item before it and the one after it are looked up in.
    """
    item = project.items.select_related("image").filter(pk=item_id).first()
    if item is None:
        return None
    permission = view_permission(project, access, run=run)
    names = names_as_given(project)
    secret = frozenset() if permission.output else hidden_columns(project)
    known = set(project.columns)
    columns = [name for name in project.columns if name in item.data]
    columns += [name for name in item.data if name not in known]
    shown = [name for name in columns if name not in secret]
    before, after = neighbours(permission, item, filters=filters or {}, sort=sort)
    comments = permission.comments().filter(item=item).select_related("author", "resolved_by")
    skips = permission.skips().filter(work_item__item=item).select_related("user")
    twins = project.items.filter(content_hash=item.content_hash).exclude(pk=item.pk)
    return ItemHistory(
        item=item,
        data=[(name[: limits.NAME], item.data[name]) for name in shown[:MAX_COLUMNS]],
        more_columns=max(0, len(shown) - MAX_COLUMNS),
        labels=_labels(permission, item, names),
        predictions=_predictions(item, names) if permission.output else [],
        routes=_routes(project, item) if permission.output else [],
        blind=not permission.output,
        withholds=permission.withholds,
        settlements=_settlements(permission, item, names),
        skips=_newest(skips),
        comments=_newest(comments, limits.COMMENTS),
        deliveries=_deliveries(project, item) if access.allows("deliveries.view") else [],
        events=_events(permission, item, comments) if access.allows("audit.view") else [],
        next=after,
        previous=before,
        duplicates=list(twins.only("external_id").order_by("position")[:SAME_SHOWN]),
    )


def _labels(permission: ViewPermission, item: Item, names: Mapping[str, str]) -> list[LabelVersion]:
    labels = permission.every_label().filter(item=item).select_related("annotator", "superseded_by")
    return [
        LabelVersion(
            value=row.value,
            name=label_in_words(row.value, names),
            annotator=row.annotator.get_username(),
            version=row.version,
            counts=not hasattr(row, "superseded_by"),
            comment=row.comment,
            created_at=row.created_at,
            seconds=None if row.lead_time_ms is None else row.lead_time_ms / 1000,
        )
        for row in _newest(labels)
    ]


def _settlements(permission: ViewPermission, item: Item, names: Mapping[str, str]) -> list[SettledView]:
    rows = _newest(permission.settlements().filter(item=item).select_related("decided_by", "superseded_by"))
    answers = Counter(
        Label.objects.filter(
            item=item, version=1, work_item__batch__in={row.batch_id for row in rows}
        ).values_list("work_item__batch", flat=True)
    )
    return [
        SettledView(
            value=row.value,
            name="" if row.value is None else label_in_words(row.value, names),
            method=_method_in_words(row, answers[row.batch_id]),
            by=row.decided_by.get_username() if row.decided_by else "",
            version=row.version,
            counts=not hasattr(row, "superseded_by"),
            comment=row.comment,
            created_at=row.created_at,
        )
        for row in rows
    ]


def _method_in_words(row: Settlement, answers: int) -> str:
    """One answer is no majority: the others were asked no more."""
    if row.method == Settlement.Method.MAJORITY and answers == 1:
        return _("The one answer there is")
    return str(Settlement.Method(row.method).label)


def _predictions(item: Item, names: Mapping[str, str]) -> list[PredictionView]:
    scores: dict[int, list[ScoreView]] = {}
    for score in _newest(ItemScore.objects.filter(prediction__item=item), 10 * limits.LISTED):
        kind, _, digest = score.name.partition("#")
        title = translated(SCORES.get(kind).title) if kind in SCORES else kind
        view = ScoreView(f"{title} ({digest[:6]})" if digest else title, score.value, score.reason)
        scores.setdefault(score.prediction_id, []).append(view)
    runs: dict[tuple[int, str], list[int]] = {}
    frozen = RunSource.objects.filter(run__project=item.project_id).order_by("run__number")
    for source, fingerprint, number in frozen.values_list("source", "fingerprint", "run__number"):
        runs.setdefault((source, fingerprint), []).append(number)
    in_force = PromptVersion.objects.filter(
        source=OuterRef("source"), created_at__lte=OuterRef("created_at")
    ).order_by("-number")
    rows = _newest(Prediction.objects.filter(item=item).select_related("source"))
    shown = Prediction.objects.filter(pk__in=[row.pk for row in rows])
    prompts = dict(shown.values_list("pk", Subquery(in_force.values("number")[:1])))
    return [
        PredictionView(
            source=row.source.name,
            value=row.value,
            name=label_in_words(row.value, names) if row.value is not None else "",
            reason=row.reason,
            scores=scores.get(row.pk, []),
            cost=row.cost,
            cost_note=row.cost_note,
            raw=row.raw,
            tokens_in=row.tokens_in,
            tokens_out=row.tokens_out,
            finish_reason=row.finish_reason,
            latency_ms=row.latency_ms,
            model=" ".join(filter(None, (row.served_model, row.served_revision))),
            prompt=prompts.get(row.pk),
            fingerprint=row.fingerprint,
            runs=runs.get((row.source_id, row.fingerprint), []),
            created_at=row.created_at,
        )
        for row in sorted(rows, key=lambda row: (row.source.position, row.pk))
    ]


def _routes(project: Project, item: Item) -> list[RouteView]:
    """Of the newest analysed runs that cover the item."""
    covers = PoolItem.objects.filter(COVERED, run=OuterRef("pk"), item=item)
    runs = (
        project.runs.filter(Exists(covers), certificate__isnull=False)
        .select_related("certificate")
        .prefetch_related("run_sources__source")
        .order_by("-number")[: limits.RUNS_LISTED]
    )
    return [_route(run, item) for run in reversed(runs)]


def _route(run: Run, item: Item) -> RouteView:
    names = [entry.source.name for entry in sorted(run.run_sources.all(), key=lambda entry: entry.position)]
    position = Route.objects.filter(run=run, item=item).values_list("position", flat=True).first()
    drawn = run.draw.items.filter(item=item).first()
    found = run.certificate
    thresholds = (
        []
        if found.shape == SLICES
        else limits_of(found.shape, found.model_positions, found.thresholds, len(names))
    )
    return RouteView(
        run=run.number,
        source=None if position is None else _source_at(run, names, position),
        u=run.pool_items.filter(item=item).values_list("u", flat=True).first(),
        drawn=drawn is not None,
        asked=drawn is not None and drawn.asked,
        p=drawn.probability if drawn else None,
        steps=[
            Step(name, None if key is None else key.u, found.shape != FIRST_SCORE, key == EVERYTHING)
            for name, key in zip(names, thresholds_from_json(thresholds), strict=False)
        ],
        invalid=" ".join(run.broken_by),
    )


def _source_at(run: Run, models: list[str], position: int) -> str:
    """Name of a source; "" for people."""
    if position == len(models) + 1:
        return ""
    return source_names(models)[position - 1] if run.by_expert else models[position - 1]


def _deliveries(project: Project, item: Item) -> list[Delivery]:
    made = Delivery.objects.filter(run__project=project, created_at__gte=item.created_at)
    return _newest(made.select_related("run").defer("run__invalid_reasons"), limits.RUNS_LISTED)


def _newest(rows: QuerySet[Row], most: int | None = None) -> list[Row]:
    """The oldest of them first."""
    return list(rows.order_by("-pk")[: most or limits.LISTED])[::-1]


def _events(permission: ViewPermission, item: Item, comments: Any) -> list[AuditEvent]:
    """What was decided on this item, on the work that was asked for about it, and on its comments.

    Decisions on work named the item once, and no batch: while a batch is hidden, these are left out, of every
    item alike.
    """
    rows: dict[str, QuerySet[Any]] = {
        "comment": comments,
        "settlement": permission.settlements().filter(item=item),
        "work_item": permission.work().filter(item=item),
    }
    targets = [f"{name}:{pk}" for name, seen in rows.items() for pk in seen.values_list("pk", flat=True)]
    named = Q(target=f"item:{item.pk}")
    if permission.hidden:
        named &= ~Q(action__startswith="work.")
    events = permission.project.audit_events.filter(named | Q(target__in=targets)).select_related("actor")
    return list(events.order_by("-pk")[:EVENTS_SHOWN])
