"""What is kept for a while alone, where whoever runs the server says so (HYPAC_RETAIN_*_DAYS): what is older
goes, a batch whenever the server looks after itself. Not set, everything is kept.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache
from django.db.models import QuerySet
from django.utils import timezone

from annotation.common.audit import KEPT
from annotation.models import AuditEvent, Draft
from annotation.ports import routing_port

AT_ONCE = 1000
REST_SECONDS = 3600
"""Once nothing is left that is older, it is looked for again after so long: looking may take long."""


def forget_old() -> None:
    """Any number of processes may do so at the same time."""
    for what, (days, forget) in _kinds().items():
        resting = f"retention:{what}:{days}"
        if days is None or cache.get(resting):
            continue
        if not forget(timezone.now() - timedelta(days=days)):
            cache.set(resting, True, REST_SECONDS)


def _kinds() -> dict[str, tuple[int | None, Callable[[datetime], bool]]]:
    """Of each for how many days it is kept, and what removes a batch of what is older: whether there may be
    more.
    """
    return {
        "raw-output": (settings.HYPAC_RETAIN_RAW_OUTPUT_DAYS, _raw_output),
        "drafts": (settings.HYPAC_RETAIN_DRAFTS_DAYS, _drafts),
        "audit": (settings.HYPAC_RETAIN_AUDIT_DAYS, _events),
    }


def _raw_output(before: datetime) -> bool:
    return routing_port().forget_raw_output(before=before, most=AT_ONCE)


def _drafts(before: datetime) -> bool:
    return _delete(Draft.objects.filter(created_at__lt=before))


def _events(before: datetime) -> bool:
    return _delete(AuditEvent.objects.filter(created_at__lt=before).exclude(action__in=KEPT))


def _delete(rows: QuerySet[AuditEvent] | QuerySet[Draft]) -> bool:
    ids = list(rows.order_by("pk").values_list("pk", flat=True)[:AT_ONCE])
    if ids:
        rows.model._default_manager.filter(pk__in=ids).delete()
    return len(ids) == AT_ONCE
