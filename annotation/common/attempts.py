"""How often passwords may be tried and set: counted before any is hashed, which is what takes the time.

Each count is a bucket (generic cell rate algorithm): "20/min" takes 20 at once, and then one more every three
seconds. An attempt is only made where none of its buckets is full. What is refused writes nothing, so that
whoever goes on all the same holds up nobody else's writes.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Greatest
from django.utils.translation import gettext as _

from annotation.errors import HypacError
from annotation.models import AttemptBucket

# A bucket is forgotten once it has been empty for so long: by then it says nothing.
FORGOTTEN_AFTER = 60.0
FORGOTTEN_AT_ONCE = 10_000
# Who comes at once reads the clock first and waits for the others' writes then: so much is the same moment.
AT_ONCE = 0.5
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class TooManyAttemptsError(HypacError):
    """Try again in `wait` seconds, at least 1. Says nothing about whether there is such an account."""

    def __init__(self, wait: float) -> None:
        self.wait = max(1, math.ceil(wait))
        words = _("There were too many attempts. Try again in %(seconds)s seconds.") % {"seconds": self.wait}
        super().__init__(words, permanent=False, code="too_many_attempts")


class ServerBusyError(Exception):
    """So many passwords are being hashed that this one was not looked at: it is nobody's attempt.

    Not one of the errors that views tell in a form: `annotation.people.attempt_limits` answers, wherever it
    happens.
    """

    wait = 1


@dataclass(frozen=True)
class Limit:
    """So many attempts (`rate` as "20/min"; "": any number) in the bucket `name`."""

    name: str
    rate: str

    @property
    def seconds(self) -> int:
        return SECONDS[self.rate.partition("/")[2][0]]

    @property
    def spacing(self) -> float:
        """Seconds after which a full bucket takes one more."""
        return self.seconds / int(self.rate.partition("/")[0])

    def room(self, now: float) -> float:
        """The latest `empty_at` with which it takes one more at `now`."""
        return now + self.seconds - self.spacing + min(AT_ONCE, self.spacing / 2)

    def wait(self, empty_at: float, now: float) -> float:
        """Seconds until it takes one more; 0 or less: it does now."""
        return empty_at - self.room(now)


def take(limits: Sequence[Limit], *, unless_full: Sequence[Limit] = ()) -> None:
    """Count an attempt in each bucket, or raise TooManyAttemptsError and count it in none: also where one of
    `unless_full` takes none, in which it is not counted.
    """
    limits = [limit for limit in limits if limit.rate]
    now = time.time()
    _refuse_full([*limits, *(limit for limit in unless_full if limit.rate)], now)
    with transaction.atomic():
        for limit in limits:
            if not _fill(limit, now):  # others were quicker
                raise TooManyAttemptsError(limit.spacing)


def give_back(limits: Sequence[Limit]) -> None:
    """Not to have counted the last one."""
    for limit in limits:
        if limit.rate:
            AttemptBucket.objects.filter(name=limit.name).update(empty_at=F("empty_at") - limit.spacing)


def note(limit: Limit) -> None:
    """Count what was let through; where others were quicker, it is full already."""
    if limit.rate:
        _fill(limit, time.time())


def forget_old() -> None:
    empty = AttemptBucket.objects.filter(empty_at__lt=time.time() - FORGOTTEN_AFTER)
    if not empty.exists():  # then without a write, for which SQLite has one lock
        return
    with transaction.atomic():
        # Whoever counts an attempt has locked one bucket and comes to the next: not to wait for each other.
        names = empty.select_for_update(skip_locked=True).values_list("name", flat=True)
        AttemptBucket.objects.filter(name__in=list(names[:FORGOTTEN_AT_ONCE])).delete()


def _refuse_full(limits: Sequence[Limit], now: float) -> None:
    kept = AttemptBucket.objects.filter(name__in=[limit.name for limit in limits])
    known = dict(kept.values_list("name", "empty_at"))
    longest = max((limit.wait(known.get(limit.name, 0), now) for limit in limits), default=0)
    if longest > 0:
        raise TooManyAttemptsError(longest)


def _fill(limit: Limit, now: float) -> bool:
    """Whether there was room. One conditional UPDATE, so that two at once are two."""
    return _filled(limit, now) or _filled(limit, now)  # once more: between the two it may be forgotten


def _filled(limit: Limit, now: float) -> bool:
    AttemptBucket.objects.bulk_create([AttemptBucket(name=limit.name)], ignore_conflicts=True)
    with_room = AttemptBucket.objects.filter(name=limit.name, empty_at__lte=limit.room(now))
    return with_room.update(empty_at=Greatest(F("empty_at"), Value(now)) + Value(limit.spacing)) == 1
