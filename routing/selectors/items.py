"""The table of items, and one item with its history.

Nothing that would spoil a blind label leaves this module.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.errors import InputError
from annotation.hooks import hidden_batches
from annotation.models import Item, Label, Project, WorkItem
from annotation.permissions import Access
from annotation.selectors.label_values import in_words, with_choice
from annotation.values import Value
from routing.core.scores import SCORES
from routing.models import ItemScore, Prediction, Route, Run
from routing.selectors.visibility import hidden_columns, may_see_model_output

MAX_SIZE = 200
EXCERPT = 300
STAGES = ("labelled", "unlabelled", "waiting", "unlabelable")


@dataclass(frozen=True)
class ItemRow:
    """One line of the table.

    `label` is a person's; `routed_to` and `uncertainty` are None where they may not be seen.
    """

    id: int
    position: int
    external_id: str
    excerpt: str
    image: Any
    label: Value | None
    label_name: str | None
    annotator: str | None
    uncertainty: float | None
    routed_to: str | None


@dataclass(frozen=True)
class Page:
    """`next` and `previous` are positions to go on from, None at an end; `total` is the number on all pages.

    `blind` says that uncertainty and routes are missing because they may not be seen now, or not by this
    person.
    """

    rows: list[ItemRow]
    next: int | None
    previous: int | None
    total: int
    blind: bool


@dataclass(frozen=True)
class LabelVersion:
    value: Value
    name: str
    annotator: str
    version: int
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
    """`cost_note` says why the price per label was charged instead of what was used; "" where it was not."""

    source: str
    value: Value | None
    name: str
    reason: str
    scores: list[ScoreView]
    cost: Any
    cost_note: str
    raw: dict[str, Any]


@dataclass(frozen=True)
class ItemHistory:
    """An item with all that this person may see of it."""

    item: Item
    data: dict[str, str]
    labels: list[LabelVersion]
    predictions: list[PredictionView]
    routes: list[tuple[int, str]]
    blind: bool
    next: int | None = None
    previous: int | None = None
    duplicates: list[Item] = field(default_factory=list)


def item_rows(
    project: Project,
    access: Access,
    *,
    after: int | None = None,
    before: int | None = None,
    q: str = "",
    label: str | None = None,
    stage: str | None = None,
    size: int = 50,
) -> Page:
    """A page of items in the order of import: those after a position, or those before one.

    `q` is part of the id or the text; `label` the key of a choice that a person gave; `stage` one of STAGES.
    Labels of batches that are still blind count as not there, so that no filter tells who is being asked for
    what.
    Raises InputError for an unknown stage.
    """
    hidden = hidden_batches(project)
    items = _filtered(project, hidden, q=q, label=label, stage=stage)
    size = max(1, min(size, MAX_SIZE))
    if before is not None:
        found = list(items.filter(position__lt=before).order_by("-position")[: size + 1])
        more_back, more_on = len(found) > size, True
        found = found[:size][::-1]
    else:
        start = items if after is None else items.filter(position__gt=after)
        found = list(start.order_by("position")[: size + 1])
        more_back, more_on = after is not None, len(found) > size
        found = found[:size]
    open_ = may_see_model_output(project, access)
    return Page(
        rows=_rows(project, found, hidden, open_),
        next=found[-1].position if found and more_on else None,
        previous=found[0].position if found and more_back else None,
        total=items.count(),
        blind=not open_,
    )


def item_history(project: Project, access: Access, item_id: int) -> ItemHistory | None:
    """None where the project has no such item."""
    item = project.items.select_related("image").filter(pk=item_id).first()
    if item is None:
        return None
    names = dict(project.choices.values_list("key", "name"))
    open_ = may_see_model_output(project, access)
    secret = frozenset() if open_ else hidden_columns(project)
    labels = (
        Label.objects.filter(item=item)
        .exclude(work_item__batch__in=hidden_batches(project))
        .select_related("annotator")
        .order_by("id")
    )
    around = project.items.order_by("position").values_list("pk", flat=True)
    return ItemHistory(
        item=item,
        data={name: value for name, value in item.data.items() if name not in secret},
        labels=[
            LabelVersion(
                value=row.value,
                name=in_words(row.value, names),
                annotator=row.annotator.get_username(),
                version=row.version,
                comment=row.comment,
                created_at=row.created_at,
            )
            for row in labels
        ],
        predictions=_predictions(item, names) if open_ else [],
        routes=_routes(item) if open_ else [],
        blind=not open_,
        next=around.filter(position__gt=item.position).first(),
        previous=around.filter(position__lt=item.position).last(),
        duplicates=list(
            project.items.filter(content_hash=item.content_hash).exclude(pk=item.pk).order_by("position")[:20]
        ),
    )


def _filtered(
    project: Project, hidden: set[int], *, q: str, label: str | None, stage: str | None
) -> QuerySet[Item]:
    items = project.items.select_related("image")
    if q:
        items = items.filter(Q(external_id__icontains=q) | Q(text__icontains=q))
    seen = Label.objects.filter(item=OuterRef("pk"), superseded_by__isnull=True).exclude(
        work_item__batch__in=hidden
    )
    work = WorkItem.objects.filter(item=OuterRef("pk")).exclude(batch__in=hidden)
    if label:
        items = items.filter(Exists(with_choice(seen, project, label)))
    if not stage:
        return items
    if stage not in STAGES:
        raise InputError(f"There is no such filter; choose one of {', '.join(STAGES)}.", where="stage")
    if stage == "labelled":
        return items.filter(Exists(seen))
    if stage == "unlabelled":
        return items.filter(~Exists(seen))
    if stage == "waiting":
        return items.filter(Exists(work.filter(state__in=(WorkItem.State.OPEN, WorkItem.State.LEASED))))
    return items.filter(Exists(work.filter(state=WorkItem.State.UNLABELABLE)))


def _rows(project: Project, items: list[Item], hidden: set[int], open_: bool) -> list[ItemRow]:
    ids = [item.pk for item in items]
    names = dict(project.choices.values_list("key", "name"))
    labels = {
        label.item_id: label
        for label in Label.objects.filter(item__in=ids, superseded_by__isnull=True)
        .exclude(work_item__batch__in=hidden)
        .select_related("annotator")
        .order_by("id")
    }
    u: dict[int, float | None] = {}
    routed: dict[int, str] = {}
    run = project.runs.filter(certificate__isnull=False).order_by("-number").first() if open_ else None
    if run is not None:
        u = dict(run.pool_items.filter(item__in=ids).values_list("item_id", "u"))
        titles = _titles(run)
        routed = {
            item: titles[position]
            for item, position in Route.objects.filter(run=run, item__in=ids).values_list(
                "item_id", "position"
            )
        }
    rows = []
    for item in items:
        label = labels.get(item.pk)
        rows.append(
            ItemRow(
                id=item.pk,
                position=item.position,
                external_id=item.external_id,
                excerpt=item.text[:EXCERPT],
                image=item.image,
                label=label.value if label else None,
                label_name=in_words(label.value, names) if label else None,
                annotator=label.annotator.get_username() if label else None,
                uncertainty=u.get(item.pk),
                routed_to=routed.get(item.pk),
            )
        )
    return rows


def _titles(run: Run) -> dict[int, str]:
    """Name of the source at each position; people's is empty."""
    names = dict(run.run_sources.values_list("position", "source__name"))
    return {**names, len(names) + 1: ""}


def _predictions(item: Item, names: dict[str, str]) -> list[PredictionView]:
    scores: dict[int, list[ScoreView]] = {}
    for score in ItemScore.objects.filter(prediction__item=item).order_by("id"):
        kind, _, digest = score.name.partition("#")
        title = SCORES.get(kind).title if kind in SCORES else kind
        view = ScoreView(f"{title} ({digest[:6]})" if digest else title, score.value, score.reason)
        scores.setdefault(score.prediction_id, []).append(view)
    rows = Prediction.objects.filter(item=item).select_related("source").order_by("source__position", "id")
    return [
        PredictionView(
            source=row.source.name,
            value=row.value,
            name=in_words(row.value, names) if row.value is not None else "",
            reason=row.reason,
            scores=scores.get(row.pk, []),
            cost=row.cost,
            cost_note=row.cost_note,
            raw=row.raw,
        )
        for row in rows
    ]


def _routes(item: Item) -> list[tuple[int, str]]:
    """Number of each run that routed the item, and the source that it was sent to."""
    routes = Route.objects.filter(item=item).select_related("run").order_by("run__number")
    return [(route.run.number, _titles(route.run)[route.position]) for route in routes]
