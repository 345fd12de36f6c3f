"""What breaks a certificate after the fact.

The certificate's bytes stay; everywhere it is shown, this is said.
"""

from django.db import transaction

from annotation.common import audit
from annotation.models import User
from routing.models import Run


def mark_invalid(*, run: Run, reason: str, actor: User | None) -> None:
    """Add a reason why the certificate of `run` no longer holds. The same reason twice has one effect."""
    with transaction.atomic():
        current = Run.objects.select_for_update().get(pk=run.pk)
        if reason in current.invalid_reason.split("\n"):
            return
        current.invalid_reason = "\n".join(filter(None, (current.invalid_reason, reason)))
        current.save(update_fields=["invalid_reason"])
        run.invalid_reason = current.invalid_reason
        audit.record(
            project=run.project,
            actor=actor,
            action="run.marked_invalid",
            target=f"run:{run.number}",
            data={"reason": reason},
        )
