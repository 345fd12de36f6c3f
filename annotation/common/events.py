"""Telling other programs what happened: services of both applications call `emit`, and nothing listens.

The message is stored in the transaction of what it tells, so that none is lost and none is sent of what was
rolled back. It holds ids and where to ask for the rest: no label, no prediction, no name of a person.
"""

import json
import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.common.mail import tell_leaders
from annotation.common.shapes import in_shape
from annotation.common.workers import announce_webhooks
from annotation.models import Job, Label, Project, Webhook, WebhookDelivery
from annotation.ports import routing_port

EVENTS: dict[str, str | Promise] = {
    "import.finished": _("An import has finished"),
    "job.finished": _("Work in the background has finished, imports included"),
    "job.failed": _("Work in the background has failed"),
    "run.committed": _("A run has committed to what it will draw from, or to its draw"),
    "run.calibration_done": _("All calibration labels of a run are there"),
    "run.analysed": _("A run has been analysed, certified or not"),
    "certificate.broken": _("The certificate of a run no longer holds"),
    "run.routed": _("The items of a run have been routed"),
    "run.audit_alarm": _("The audit of a run found more errors than were accepted"),
    "run.completed": _("Everything that a run sent to people is labelled"),
    "annotator.paused": _("Somebody is paused: too few of their answers to gold items were right"),
    "label.created": _("Somebody gave a label: one message for each"),
    "label.corrected": _("Somebody corrected a label: one message for each"),
    "delivery.made": _("A delivery has been made"),
    "project.archived": _("The project has been archived"),
}
TEST = "webhook.test"
NO_MORE: Mapping[str, Any] = MappingProxyType({})
# Of messages that are told once in all, whoever comes to tell them again.
_ONCE = uuid.UUID("5d0f3a3c-3c55-4a55-9d0c-6a8f1c1f7f3e")


def emit(
    *,
    project: Project,
    event: str,
    data: Mapping[str, Any],
    key: str = "",
    letter: Mapping[str, Any] | None = NO_MORE,
    letter_key: str = "",
) -> int:
    """Tell the project's addresses that want it; returns how many. Call it in the transaction of what
    happened. Of the same `key` only the first call has an effect, of the same `letter_key` the first e-mail,
    for as long as letters are kept. `letter` is what the e-mail has besides `data`, None where there is to be
    none.
    """
    wanting = wanted_by(project, event)
    if wanting:
        store(wanting, project=project, event=event, data=data, key=key)
    if letter is not None:
        tell_leaders(project=project, event=event, data={**data, **letter}, key=letter_key or key)
    return len(wanting)


def wanted_by(project: Project, event: str) -> list[Webhook]:
    """The addresses that are to be told of it: one query, for what a project has few of."""
    assert event in EVENTS  # noqa: S101 - a mistake of the programmer
    active = Webhook.objects.filter(project=project.pk, is_active=True).only("events")
    return [webhook for webhook in active if event in webhook.events]


def is_watched(project: str) -> Exists:
    """Whether anything is told to anybody at all, for rows from which `project` leads to their project: for
    queries that are made anyway.
    """
    return Exists(Webhook.objects.filter(project=OuterRef(project), is_active=True))


def store(
    webhooks: list[Webhook], *, project: Project, event: str, data: Mapping[str, Any], key: str = ""
) -> None:
    """Store the message to each of these, and have it sent once the transaction is committed. Not to one that
    was deleted or switched off since it was looked up.
    """
    shapes = _still_wanting(webhooks, event)
    message = uuid.uuid5(_ONCE, f"{project.pk}:{event}:{key}") if key else uuid.uuid4()
    body = {
        "type": event,
        "timestamp": timezone.now().isoformat().replace("+00:00", "Z"),
        "data": {"project": project.slug, **data},
    }
    title, of = EVENTS.get(event, _("A test: nothing has happened")), (project.slug, project.name)
    payloads = {
        shape: json.dumps(in_shape(shape, body, title=title, project=of), separators=(",", ":"))
        for shape in set(shapes.values())
    }
    WebhookDelivery.objects.bulk_create(
        (
            WebhookDelivery(
                webhook_id=pk,
                message_id=f"msg_{message.hex}",
                event=event,
                payload=payloads[shape],
                due_since=Now(),
                next_attempt_at=Now(),
            )
            for pk, shape in shapes.items()
        ),
        ignore_conflicts=bool(key),
    )
    transaction.on_commit(lambda: announce_webhooks(shapes))


def _still_wanting(webhooks: list[Webhook], event: str) -> dict[int, str]:
    """Ids and shapes of those that are still there, and active unless it is for a test. Whoever deletes one
    of them or switches it off waits until this transaction ends, and then finds its message; many tell one
    at once, and hold up nobody who changes something else of it.
    """
    rows = Webhook.objects.filter(pk__in=[webhook.pk for webhook in webhooks]).order_by("pk")
    if event != TEST:
        rows = rows.filter(is_active=True)
    select, params = rows.values_list("pk", "shape").query.sql_with_params()
    with connection.cursor() as cursor:
        # The ORM has no word for this lock; SQLite has one writer at a time.
        cursor.execute(select + (" FOR KEY SHARE" if connection.vendor == "postgresql" else ""), params)
        return dict(cursor.fetchall())


def address(project: Project, *parts: object) -> str:
    """The path in the API at which something of the project is: ("runs", 3)."""
    return reverse("api_project", args=[project.slug]) + "".join(f"{part}/" for part in parts)


def job_ended(job: Job, event: str) -> None:
    data = {"job": job.pk, "kind": job.kind, "url": address(job.project, "jobs", job.pk)}
    emit(project=job.project, event=event, data=data)


def import_finished(job: Job, result: Mapping[str, Any]) -> None:
    counts = {name: result.get(name) for name in ("added", "already_there", "problems", "duplicates")}
    data = {"job": job.pk, **counts, "url": address(job.project, "jobs", job.pk)}
    emit(project=job.project, event="import.finished", data=data)


def label_stored(label: Label, project: Project, batch_id: int) -> None:
    """Of a batch that is hidden not even which items are in it may be known: then their ids are null."""
    event = "label.created" if label.version == 1 else "label.corrected"
    wanting = wanted_by(project, event)
    if not wanting:
        return
    hidden = batch_id in routing_port().hidden_batches(project=project)
    data = {
        "label": label.pk,
        "version": label.version,
        "item": None if hidden else label.item_id,
        "external_id": None if hidden else label.item.external_id,
        "url": address(project, "labels", label.pk),
    }
    store(wanting, project=project, event=event, data=data)
