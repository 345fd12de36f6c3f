"""What owners and managers do with the addresses that are told what happens in their project."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.events import EVENTS, TEST, store
from annotation.common.locks import locked_project
from annotation.common.one_line import checked_line
from annotation.common.shapes import SHAPES, STANDARD
from annotation.common.workers import announce_webhooks
from annotation.errors import ConflictError, InputError
from annotation.models import Project, User, Webhook, WebhookDelivery
from annotation.outside.net import check_url
from annotation.outside.secrets import decrypt, encrypt
from annotation.outside.webhooks.sending import new_secret, switch_off

MOST = 20
OLD_SECRET_SIGNS = timedelta(hours=24)
State = WebhookDelivery.State


def create_webhook(
    *,
    project: Project,
    actor: User,
    url: str,
    events: Sequence[str],
    description: str = "",
    shape: str = STANDARD,
) -> tuple[Webhook, str]:
    """Have an address told of these events from now on. Returns its secret, which is shown to nobody again.

    Raises InputError whose `where` names the field, and ConflictError where the project has MOST of them.
    """
    fields = _checked(url=url, events=events, description=description, shape=shape)
    secret = new_secret()
    with transaction.atomic():
        locked_project(project.pk)
        if project.webhooks.count() >= MOST:
            raise ConflictError(
                _("A project has at most %(most)s webhooks. Delete one first.") % {"most": MOST},
                code="too_many_webhooks",
            )
        webhook = Webhook.objects.create(project=project, secret=encrypt(secret), created_by=actor, **fields)
        _record(webhook, actor, "webhook.made", {"host": _host(webhook), "events": webhook.events})
    return webhook, secret


def update_webhook(*, webhook: Webhook, actor: User, is_active: bool | None = None, **fields: Any) -> Webhook:
    """Change url, events, description, shape, or switch it on or off: then what waits for it fails.

    Raises InputError whose `where` names the field.
    """
    fields = _checked(**fields)
    with transaction.atomic():
        _lock(webhook, ends=is_active is False)
        current = Webhook.objects.select_related("project").get(pk=webhook.pk)
        if is_active is False and current.is_active:
            switch_off(current, None)
        elif is_active and not current.is_active:
            fields |= {
                "is_active": True,
                "off_reason": "",
                "off_reason_part": {},
                "failing_since": None,
                "not_before": None,
            }
        elif fields.get("url", current.url) != current.url:
            fields |= {"failing_since": None, "not_before": None}
        changed = [name for name, value in fields.items() if getattr(current, name) != value]
        if changed:
            Webhook.objects.filter(pk=current.pk).update(**fields)
        if changed or is_active is False:
            _record(webhook, actor, "webhook.changed", {"changed": changed or ["is_active"]})
    webhook.refresh_from_db()
    return webhook


def delete_webhook(*, webhook: Webhook, actor: User) -> None:
    """It goes with what was and is to be sent to it."""
    with transaction.atomic():
        _lock(webhook, ends=True)
        _record(webhook, actor, "webhook.deleted", {"host": _host(webhook)})
        # One statement each: there may be many messages.
        messages = WebhookDelivery.objects.filter(webhook=webhook).order_by()
        messages._raw_delete(messages.db)
        Webhook.objects.filter(pk=webhook.pk).delete()


def rotate_secret(*, webhook: Webhook, actor: User) -> str:
    """Make a new secret and return it. The one before signs beside it for OLD_SECRET_SIGNS."""
    secret = new_secret()
    with transaction.atomic():
        _lock(webhook)
        current = Webhook.objects.get(pk=webhook.pk)
        try:
            decrypt(current.secret)
            old, until = current.secret, timezone.now() + OLD_SECRET_SIGNS
        except InputError:  # no key fits any more: it signs nothing
            old, until = "", None
        Webhook.objects.filter(pk=webhook.pk).update(
            secret=encrypt(secret), old_secret=old, old_secret_until=until
        )
        _record(webhook, actor, "webhook.secret_rotated", {})
    webhook.refresh_from_db()
    return secret


def send_test(*, webhook: Webhook, actor: User) -> WebhookDelivery:
    """A message that tells nothing, also to one that is switched off."""
    with transaction.atomic():
        _lock(webhook)
        Webhook.objects.filter(pk=webhook.pk).update(not_before=None)
        store([webhook], project=webhook.project, event=TEST, data={"webhook": webhook.pk})
        _record(webhook, actor, "webhook.tested", {})
        newest = webhook.deliveries.filter(event=TEST).order_by("-pk")[0]  # others store theirs meanwhile
    return newest


def redeliver(*, delivery: WebhookDelivery, actor: User) -> WebhookDelivery:
    """Send a message again, as the same one: under its id, with the attempts of a new one.

    Raises ConflictError where it waits to be sent already.
    """
    webhook = delivery.webhook
    with transaction.atomic():
        _lock(webhook)
        Webhook.objects.filter(pk=webhook.pk).update(not_before=None)
        ended = WebhookDelivery.objects.filter(pk=delivery.pk).exclude(state=State.PENDING)
        if not ended.update(
            state=State.PENDING,
            attempts=0,
            due_since=Now(),
            next_attempt_at=Now(),
            finished_at=None,
            status=None,
            error="",
            duration_ms=None,
        ):
            raise ConflictError(_("This message waits to be sent already."), code="message_waits")
        _record(webhook, actor, "webhook.redelivered", {"message": delivery.message_id})
        transaction.on_commit(lambda: announce_webhooks([webhook.pk]))
    delivery.refresh_from_db()
    return delivery


def _lock(webhook: Webhook, *, ends: bool = False) -> None:
    """Until the transaction ends nobody else changes it; where it `ends`, nobody stores a message to it
    either, and those who have done so are waited for. The project before it, as whoever tells that a project
    was archived has that already: else two could wait for each other.
    """
    project = Project.objects.filter(pk=webhook.project_id)
    list(project.select_for_update(no_key=True).values_list("pk"))
    list(Webhook.objects.filter(pk=webhook.pk).select_for_update(no_key=not ends).values_list("pk"))


def _checked(**fields: Any) -> dict[str, Any]:
    """The same in the form that is stored."""
    if "url" in fields:
        fields["url"] = check_url(str(fields["url"]), where="url")
    if "events" in fields:
        wanted = list(fields["events"])
        if unknown := sorted({str(name)[:60] for name in wanted} - set(EVENTS)):
            raise InputError(
                _("There is no event %(name)r; there are %(names)s.")
                % {"name": unknown[0], "names": ", ".join(EVENTS)},
                where="events",
            )
        if not wanted:
            raise InputError(_("Choose at least one event."), where="events")
        fields["events"] = [name for name in EVENTS if name in wanted]
    if fields.get("shape", STANDARD) not in SHAPES:
        raise InputError(
            _("A message has one of the shapes %(names)s.") % {"names": ", ".join(SHAPES)}, where="shape"
        )
    if len(fields.get("description", "")) > 200:
        raise InputError(_("A description has at most 200 characters."), where="description")
    if "description" in fields:
        fields["description"] = checked_line(fields["description"], where="description")
    return fields


def _host(webhook: Webhook) -> str:
    """What the audit trail says of an address: its path may hold a key."""
    return webhook.url.split("/")[2][:200]


def _record(webhook: Webhook, actor: User, action: str, data: dict[str, Any]) -> None:
    audit.record(
        project=webhook.project, actor=actor, action=action, target=f"webhook:{webhook.pk}", data=data
    )
