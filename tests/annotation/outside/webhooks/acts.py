"""What tests of webhooks share."""

from datetime import timedelta
from typing import Any

from annotation.common import events
from annotation.models import Project, Webhook, WebhookDelivery

State = WebhookDelivery.State
ALL = list(events.EVENTS)


def happens(project: Project, event: str = "run.completed", **options: Any) -> None:
    events.emit(project=project, event=event, data={"run": 1}, **options)


def come(webhook: Webhook, seconds: float = 24 * 3600) -> None:
    """As if so much time had passed."""
    later = timedelta(seconds=seconds)
    for row in webhook.deliveries.all():
        changes = {"due_since": row.due_since - later}
        if row.next_attempt_at:
            changes["next_attempt_at"] = row.next_attempt_at - later
        WebhookDelivery.objects.filter(pk=row.pk).update(**changes)
    webhook.refresh_from_db()
    for name in ("not_before", "failing_since", "old_secret_until"):
        if moment := getattr(webhook, name):
            Webhook.objects.filter(pk=webhook.pk).update(**{name: moment - later})
    webhook.refresh_from_db()


def only(webhook: Webhook) -> WebhookDelivery:
    return webhook.deliveries.get()
