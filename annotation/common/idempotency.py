"""Requests that come with a key of their own (Idempotency-Key), so that one which is sent again, because its
answer was lost, is done once. The unique constraint on person and key decides between two at once.
"""

from datetime import datetime, timedelta

from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.db.models import Min, QuerySet, Sum
from django.db.models.functions import Length
from django.utils import timezone

from annotation.models import KeyedRequest, User

KEPT = timedelta(hours=24)
# After so long a request that never came to an end is taken to have died with its process. Whether that was
# before or after it took effect, nobody knows, so it is not done again under its key.
GIVEN_UP = timedelta(hours=1)
# Of one person. Of the oldest answers beyond the bytes it stays known that they were given.
MOST_KEYS = 100_000
MOST_BYTES = 50 * 2**20
# One answer has at most a MiB, so this is looked after now and then.
LOOKED_AFTER_EVERY = 20
# Seconds. Between them new keys are added up in the cache, where other processes may not see all of them.
COUNTED_EVERY = 600


def begin(*, user: User, key: str, address: str, content: str) -> tuple[KeyedRequest, bool]:
    """The request of this key, and whether it is new. `content` is "" while its body has not been read."""
    while True:
        _over().filter(user=user, key=key).delete()
        try:
            with transaction.atomic():
                new = KeyedRequest.objects.create(
                    user=user, key=key, address=address, content=content, created_at=timezone.now()
                )
            return new, True
        except IntegrityError:
            if known := KeyedRequest.objects.filter(user=user, key=key).first():
                return known, False


def finish(
    request: KeyedRequest, *, content: str, status: int, headers: dict[str, str], body: bytes | None
) -> None:
    """Keep what was answered; without a body only that it was done."""
    KeyedRequest.objects.filter(pk=request.pk).update(
        content=content, status=status, headers=headers, body=body
    )
    if request.pk % LOOKED_AFTER_EVERY == 0:
        make_room(user_id=request.user_id)


def make_room(*, user_id: int) -> None:
    """Keep of a person's oldest answers only that they were given, where all together are too large."""
    size = Length("body")
    kept = KeyedRequest.objects.filter(user=user_id, body__isnull=False)
    over = (kept.order_by().aggregate(total=Sum(size))["total"] or 0) - MOST_BYTES
    if over <= 0:
        return
    for pk, length in kept.order_by("pk").values_list("pk", size).iterator():
        over -= length
        if over <= 0:
            kept.filter(pk__lte=pk).order_by().update(body=None)
            return


def full_for(user: User) -> timedelta | None:
    """How long until the person may use a new key again; None where they may now."""
    now = timezone.now()
    mine = KeyedRequest.objects.filter(user=user).order_by()
    # Counting many keys takes longer than most requests do: in the cache is how many there are, or until when
    # there are too many.
    name = f"keyed-requests:{user.pk}:{int(now.timestamp()) // COUNTED_EVERY}"
    known: int | datetime | None = cache.get(name)
    if isinstance(known, datetime) and known > now:
        return known - now
    kept = known + 1 if isinstance(known, int) else MOST_KEYS + 1
    if kept > MOST_KEYS:
        kept = mine.count()
    if kept <= MOST_KEYS:
        cache.set(name, kept, COUNTED_EVERY)
        return None
    oldest = mine.aggregate(oldest=Min("created_at"))["oldest"] or now
    until = max(oldest + KEPT, now + timedelta(seconds=1))
    cache.set(name, until, COUNTED_EVERY)
    return until - now


def forget(request: KeyedRequest) -> None:
    """As if it had not been sent: what may go better next time is not kept."""
    KeyedRequest.objects.filter(pk=request.pk).delete()


def died(request: KeyedRequest) -> bool:
    """Whether its process ended before there was an answer."""
    return request.status is None and request.created_at < timezone.now() - GIVEN_UP


def forget_old() -> None:
    if _over().exists():  # else without a write, for which SQLite has one lock
        _over().delete()


def _over() -> QuerySet[KeyedRequest]:
    return KeyedRequest.objects.filter(created_at__lt=timezone.now() - KEPT)
