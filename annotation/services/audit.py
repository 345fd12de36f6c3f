"""Writing the audit trail."""

from typing import Any

from annotation.models import AuditEvent, Project, User


def record(
    *,
    project: Project | None,
    actor: User | None,
    action: str,
    target: str = "",
    data: dict[str, Any] | None = None,
) -> AuditEvent:
    """Add an event. Call it inside the transaction of the change that it describes."""
    return AuditEvent.objects.create(
        project=project, actor=actor, action=action, target=target, data=data or {}
    )
