"""Stored answers of models with their scores, for programs."""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotation.errors import NotAllowedError
from annotation.models import Project
from annotation.permissions import Access
from routing.core.exact import plain
from routing.models import Prediction
from routing.sources.visibility import output_is_open

PAGE = 1_000


def refuse_blind(access: Access) -> None:
    """Raises NotAllowedError while nobody may see what models answered."""
    if not output_is_open(access.project):
        raise NotAllowedError(
            _(
                "What models answered is shown once a run has been analysed, and not while another one is "
                "open: until then everybody labels blind."
            )
        )


def predictions_of(
    project: Project, *, source: int | None = None, external_id: str | None = None
) -> QuerySet[Prediction]:
    """Of a source by its id, or for an item by its id in the project."""
    rows = Prediction.objects.filter(source__project=project).select_related("item")
    rows = rows.defer("item__text", "item__data", "item__typed", "item__fields")
    if source is not None:
        rows = rows.filter(source=source)
    if external_id is not None:
        rows = rows.filter(item__external_id=external_id)
    return rows.prefetch_related("scores")


def prediction_content(row: Prediction) -> dict[str, Any]:
    return {
        "id": row.pk,
        "source": row.source_id,
        "fingerprint": row.fingerprint,
        "item": row.item_id,
        "external_id": row.item.external_id,
        "value": row.value,
        "reason": row.reason,
        "raw": row.raw,
        "scores": [
            {"name": score.name, "uncertainty": score.value, "reason": score.reason}
            for score in row.scores.all()
        ],
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "finish_reason": row.finish_reason,
        "latency_ms": row.latency_ms,
        "served_model": row.served_model,
        "served_revision": row.served_revision,
        "cost": plain(row.cost),
        "cost_note": row.cost_note,
        "created_at": row.created_at.isoformat(),
    }


def pages_of_predictions(rows: QuerySet[Prediction]) -> Iterator[list[dict[str, Any]]]:
    """All of them in the order in which they were stored, a page at a time."""
    last = 0
    while page := list(rows.filter(pk__gt=last).order_by("pk")[:PAGE]):
        yield [prediction_content(row) for row in page]
        last = page[-1].pk
