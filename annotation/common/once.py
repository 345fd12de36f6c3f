"""What may be used once: challenges, and tokens of others that carry a number."""

import hashlib
from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from annotation.models import UsedOnce


def use(kind: str, what: str, *, until: datetime) -> bool:
    """Whether nobody has used it before; of two at once one is told so. After `until` it may be forgotten: by
    then it has to be refused for its age.
    """
    row = UsedOnce(name=_name(kind, what), until=until)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return False
    return True


def note(kind: str, what: str, *, until: datetime) -> None:
    """Remember it until then, or for longer where that was noted before."""
    if not use(kind, what, until=until):
        UsedOnce.objects.filter(name=_name(kind, what), until__lt=until).update(until=until)


def noted(kind: str, what: str) -> datetime | None:
    """Until when it is remembered; None where it is not, or has been forgotten."""
    row = UsedOnce.objects.filter(name=_name(kind, what), until__gt=timezone.now()).first()
    return None if row is None else row.until


def _name(kind: str, what: str) -> str:
    return f"{kind}:{hashlib.sha256(what.encode(errors='surrogatepass')).hexdigest()}"


def forget_old() -> None:
    old = UsedOnce.objects.filter(until__lt=timezone.now())
    if old.exists():  # else without a write, for which SQLite has one lock
        old.delete()
