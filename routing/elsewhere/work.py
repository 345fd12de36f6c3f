"""What people still have to label in a run that is routed, for a program elsewhere: no prediction, no score.

The calibration set is not given out: that nobody saw a model's answer before theirs is what its certificate
rests on, and only this server can see to that.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.errors import ConflictError
from annotation.imports.columns import shown_in_order
from annotation.imports.formats.label_studio_names import META, plain_names
from annotation.models import Item, User, WorkBatch, WorkItem
from annotation.ports import routing_port
from routing.models import Run

PAGE = 500
HYPAC, LABEL_STUDIO = "hypac", "label-studio"
FORMATS = (HYPAC, LABEL_STUDIO)


def batch_for_elsewhere(run: Run) -> WorkBatch:
    """Raises ConflictError, in words, where nothing of the run may be labelled elsewhere now."""
    batch = run.routed_batch
    if batch is None or run.state != Run.State.LABELLING:
        raise ConflictError(
            _(
                "Only what a run sends to people once it is routed can be labelled elsewhere, and run "
                "%(run)s is not there: %(state)s. Its calibration set is labelled here, blind."
            )
            % {"run": run.number, "state": run.get_state_display().lower()},
            code="no_routed_items",
        )
    hidden = batch.pk in routing_port().hidden_batches(project=run.project)
    if batch.blind or batch.rostered or hidden:
        raise ConflictError(
            _(
                "The items of run %(run)s are labelled blind or by a roster, which only this server can see "
                "to."
            )
            % {"run": run.number},
            code="labelled_here_alone",
        )
    return batch


def waiting_work(batch: WorkBatch) -> list[int]:
    """Ids of the items that wait for an answer and are with nobody, in the order of the queue."""
    hidden = routing_port().hidden_items(project=batch.project, item_path="item")
    rows = WorkItem.objects.filter(batch=batch, state=WorkItem.State.OPEN).exclude(hidden)
    ordered = rows.order_by("priority", "order", "slot").values_list("item_id", flat=True)
    return list(dict.fromkeys(ordered))


def hand_out(*, run: Run, user: User, format_name: str) -> Callable[[], Iterator[Sequence[dict[str, Any]]]]:
    """The pages of what is given out. That it was stands in the audit trail."""
    batch = batch_for_elsewhere(run)
    audit.record(
        project=run.project,
        actor=user,
        action="run.handed_out",
        target=f"run:{run.number}",
        data={"format": format_name},
    )
    project = run.project
    secret = routing_port().model_columns(project=project)
    columns = [name for name in shown_in_order(project) if name not in secret]
    plain = plain_names(project.columns)

    def content(item: Item) -> dict[str, Any]:
        if format_name == HYPAC:
            return {"item": item.pk, "name": item.external_id, **_seen(item)}
        seen = _data(item, columns)
        data = {plain.get(name, name): value for name, value in seen.items()}
        return {"data": data, "meta": {META: {"item": item.pk, "external_id": item.external_id}}}

    def pages() -> Iterator[Sequence[dict[str, Any]]]:
        ids = waiting_work(batch)
        for start in range(0, len(ids), PAGE):
            part = ids[start : start + PAGE]
            found = Item.objects.select_related("image").in_bulk(part)
            yield [content(found[pk]) for pk in part if pk in found]

    return pages


def _seen(item: Item) -> dict[str, Any]:
    image = item.image
    return {"text": item.text, "fields": item.fields, "image": image.sha256 if image else None}


def _data(item: Item, columns: Sequence[str]) -> dict[str, Any]:
    """By the columns that the project's configuration for Label Studio shows."""
    if item.image_id is not None:
        return {columns[0] if columns else "image": item.short_name}
    cells = {name: item.data[name] for name in columns if name in item.data}
    return cells or {columns[0] if columns else "text": item.text}
