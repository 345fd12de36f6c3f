"""Writing the audit trail."""

import hashlib
from collections.abc import Iterable
from typing import Any

from annotation.common import limits
from annotation.models import AuditEvent, Project, User

# What checks ask the trail for, and what says that something is gone for good: kept, whatever else is kept
# for a while alone. Who had which role decides who may label blind; a run asks in which order it is labelled.
KEPT = (
    *("member.role_changed", "member.removed", "run.work_ordered"),
    *("account.erased", "item.erased", "project.deleted", "project.removed"),
)


def record(
    *,
    project: Project | None,
    actor: User | None,
    action: str,
    target: str = "",
    data: dict[str, Any] | None = None,
) -> AuditEvent:
    """Add an event. Call it inside the transaction of the change that it describes."""
    event = new_event(project=project, actor=actor, action=action, target=target, data=data)
    event.save(force_insert=True)
    return event


def new_event(
    *,
    project: Project | None,
    actor: User | None,
    action: str,
    target: str = "",
    data: dict[str, Any] | None = None,
) -> AuditEvent:
    """An event that is not stored yet, for those who record many with `record_all`."""
    return AuditEvent(project=project, actor=actor, action=action, target=target, data=_bounded(data or {}))


def record_all(events: Iterable[AuditEvent]) -> None:
    """Add events that belong to one change, inside its transaction."""
    AuditEvent.objects.bulk_create(events, batch_size=500)


def _bounded(value: Any) -> Any:
    """The same, whole: what happened is a fact, and lists of it cut what they show. Of a text longer than any
    that a change may hold its beginning, with what tells it from every other.
    """
    if isinstance(value, dict):
        return {name: _bounded(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_bounded(inner) for inner in value]
    if isinstance(value, str) and len(value) > limits.AUDITED:
        digest = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()
        return f"{value[: limits.AUDITED_BEGINNING]}… ({len(value):,} characters, SHA-256 {digest})"
    return value
