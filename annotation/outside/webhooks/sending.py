"""Sending what is stored. The row is the truth: it is claimed for an attempt by a conditional UPDATE, sent
outside of any transaction, and what came of it is stored under the same condition. A worker that dies in
between leaves a row that is due again, and is sent again under the same id: at least once, in no order.
"""

import base64
import hashlib
import hmac
import logging
import random
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.core.cache import cache
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.common.clock import seconds_ago
from annotation.common.workers import announce_webhooks
from annotation.errors import HypacError, InputError
from annotation.models import Webhook, WebhookDelivery
from annotation.outside.net import GuardedClient, NetError
from annotation.outside.secrets import decrypt
from annotation.words import Words

log = logging.getLogger(__name__)
State = WebhookDelivery.State

# Seconds after each failed attempt: ten in all, within a day.
PAUSES = (5, 60, 5 * 60, 30 * 60, 2 * 3600, 3 * 3600, 4 * 3600, 6 * 3600, 8 * 3600)
JITTER = 0.1
# What an address has not taken after so long is given up, also where its turn did not come.
GIVEN_UP_AFTER = timedelta(hours=30)
# So many messages wait for one address at most; the oldest beyond that are given up.
MOST_WAITING = 50_000
WAITING_LOOK_SECONDS = 60
# An address that is away is asked about one message at a time, so many seconds apart.
GAP_SECONDS = (5, 30)
LONGEST_RETRY_AFTER = 3600
SWITCHED_OFF_AFTER = timedelta(days=3)
# An attempt may take so long; nobody else makes one of the same message meanwhile.
ATTEMPT_SECONDS = 15.0
CLAIM_SECONDS = 60
# One task sends for so long, so that no address keeps a worker from its jobs.
TURN_SECONDS = 20.0
# What is due for so long was announced to nobody, or nobody has a hand free.
OVERDUE_SECONDS = 15
MOST_OVERDUE = 100
# The status line decides. A longer answer costs the connection.
MOST_SKIPPED_BYTES = 64 * 2**10
KEPT_FOR = timedelta(days=30)
# So many messages that have ended are kept of one address at most: the newest.
MOST_ENDED = 10_000
PRUNE_SECONDS = 3600
CHUNK = 5_000
GONE = 410


@dataclass(frozen=True)
class Outcome:
    """Of one attempt. `status` is None where no answer came; `error` is "" where the message was taken.
    `away`: the address takes nothing now, and that is not for this message alone.
    """

    status: int | None
    error: str
    duration_ms: int
    away: bool = False
    wait: int = 0
    error_part: failures.Part = field(default_factory=dict)


def send_due(webhook_id: int, *, seconds: float = TURN_SECONDS) -> int:
    """Send what is due of one address, the oldest first, until nothing is left, an attempt fails because the
    address is away, or the time is over; then another worker is asked to go on. Returns how many were sent.
    """
    until = time.monotonic() + seconds
    client = GuardedClient(
        connect_timeout=5.0,
        read_timeout=ATTEMPT_SECONDS,
        total_timeout=ATTEMPT_SECONDS,
        max_bytes=MOST_SKIPPED_BYTES,
        max_connections=1,
    )
    sent = 0
    try:
        while delivery := _claim(webhook_id):
            outcome = _attempt(client, delivery)
            store_outcome(delivery, outcome)
            sent += not outcome.error
            if outcome.away:
                break
            if time.monotonic() >= until:
                announce_webhooks([webhook_id])
                break
    finally:
        client.close()
    return sent


def catch_up() -> int:
    """Announce again what is overdue, give up what is too old, and forget old messages now and then. For the
    reconciler; returns how many addresses were announced.
    """
    overdue = overdue_webhooks()
    announce_webhooks(overdue)
    if cache.add("webhooks-counted", 1, WAITING_LOOK_SECONDS):
        give_up_too_many()
    if cache.add("webhooks-pruned", 1, PRUNE_SECONDS):
        give_up_old()
        prune()
    return len(overdue)


def send_overdue(*, seconds: float = TURN_SECONDS) -> None:
    """Send here and now what nobody has sent. For workers that are busy: it may be that all of them are."""
    until = time.monotonic() + seconds
    for webhook_id in overdue_webhooks():
        left = until - time.monotonic()
        if left <= 0:
            return
        send_due(webhook_id, seconds=left)


def overdue_webhooks() -> list[int]:
    rows = WebhookDelivery.objects.filter(
        _willing(), state=State.PENDING, next_attempt_at__lte=seconds_ago(OVERDUE_SECONDS)
    )
    return list(rows.order_by().values_list("webhook", flat=True).distinct()[:MOST_OVERDUE])


def give_up_old() -> int:
    """Messages whose turn did not come in time, because their address was away."""
    old = WebhookDelivery.objects.filter(state=State.PENDING, due_since__lt=timezone.now() - GIVEN_UP_AFTER)
    hours = int(GIVEN_UP_AFTER.total_seconds() // 3600)
    return _fail(old, Words(gettext_noop("It could not be delivered within %(hours)s hours."), hours=hours))


def give_up_too_many() -> int:
    """The oldest messages of addresses for which more wait than MOST_WAITING."""
    waiting = WebhookDelivery.objects.filter(state=State.PENDING).order_by()
    many = waiting.values("webhook").annotate(count=Count("pk")).filter(count__gt=MOST_WAITING)
    words = gettext_noop("It was given up: more than %(most)s messages waited for this address.")
    error = Words(words, most=MOST_WAITING)
    total = 0
    for webhook_id in many.values_list("webhook", flat=True):
        newest = waiting.filter(webhook=webhook_id).order_by("-due_since", "-pk").values_list("pk", flat=True)
        # Asked anew for each chunk: whoever does the same beside this one gives up no others.
        while ids := list(newest[MOST_WAITING : MOST_WAITING + CHUNK]):
            total += _fail(waiting.filter(pk__in=ids), error)
    return total


def prune() -> int:
    """Forget messages that ended long ago, and of each address all but the MOST_ENDED that ended last.
    Returns how many.
    """
    ended = WebhookDelivery.objects.exclude(state=State.PENDING).order_by()
    long_ago = timezone.now() - KEPT_FOR
    total = _forget(ended, ended.filter(created_at__lt=long_ago, finished_at__lt=long_ago))
    many = ended.values("webhook").annotate(count=Count("pk")).filter(count__gt=MOST_ENDED)
    for webhook_id in list(many.values_list("webhook", flat=True)):
        newest = ended.filter(webhook=webhook_id).order_by("-finished_at", "-pk")
        total += _forget(ended, newest, beyond=MOST_ENDED)
    return total


def _forget(ended: QuerySet[WebhookDelivery], rows: QuerySet[WebhookDelivery], *, beyond: int = 0) -> int:
    """Of `rows` those after the first `beyond`, a chunk at a time."""
    total = 0
    while ids := list(rows.values_list("pk", flat=True)[beyond : beyond + CHUNK]):
        # Not one that somebody has sent again meanwhile.
        total += ended.filter(pk__in=ids)._raw_delete(ended.db)
    return total


def switch_off(webhook: Webhook, reason: Words | None) -> None:
    """Send nothing more to an address; what waits for it fails. Twice has one effect. `reason` is said where
    nobody asked for it. Call it with its row locked for update: nobody may be storing a message to it
    meanwhile.
    """
    with transaction.atomic():
        active = Webhook.objects.filter(pk=webhook.pk, is_active=True)
        off = {"off_reason": reason[:300], "off_reason_part": reason.params} if reason else {}
        if active.update(is_active=False, not_before=None, **off):
            waiting = WebhookDelivery.objects.filter(webhook=webhook, state=State.PENDING)
            _fail(waiting, Words(gettext_noop("The webhook was switched off.")))


def store_outcome(delivery: WebhookDelivery, outcome: Outcome) -> None:
    """What came of an attempt, unless another worker has taken the message over meanwhile. The address before
    the message, as whoever deletes it or switches it off locks them: else two could wait for each other.
    """
    webhook = delivery.webhook
    row = WebhookDelivery.objects.filter(pk=delivery.pk, state=State.PENDING, attempts=delivery.attempts)
    said = {
        "status": outcome.status,
        "error": outcome.error[:300],
        "error_part": outcome.error_part,
        "duration_ms": outcome.duration_ms,
    }
    if not outcome.error:
        with transaction.atomic():
            failing = Q(failing_since__isnull=False) | Q(not_before__isnull=False)
            Webhook.objects.filter(failing, pk=webhook.pk).update(failing_since=None, not_before=None)
            row.update(state=State.DELIVERED, next_attempt_at=None, finished_at=timezone.now(), **said)
        return
    now = timezone.now()
    since = webhook.failing_since or now
    last = delivery.attempts > len(PAUSES)
    mine = Webhook.objects.filter(pk=webhook.pk)
    off: Words | None = None
    if outcome.status == GONE:
        off = Words(gettext_noop("It answered that it is gone for good (status 410)."))
    elif now - since > SWITCHED_OFF_AFTER:
        words = gettext_noop("It has taken no message for more than %(days)s days.")
        off = Words(words, days=SWITCHED_OFF_AFTER.days)
    with transaction.atomic():
        # Whoever stores a message to it is waited for only where it is to be switched off.
        list(mine.select_for_update(no_key=not off).values_list("pk"))
        if last:
            row.update(state=State.FAILED, next_attempt_at=None, finished_at=now, **said)
        else:
            pause = PAUSES[delivery.attempts - 1] * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311
            row.update(next_attempt_at=_later(max(pause, outcome.wait)), **said)
        mine.filter(failing_since__isnull=True).update(failing_since=now)
        if outcome.away:
            gap = GAP_SECONDS[webhook.failing_since is not None]
            mine.update(not_before=_later(max(gap, outcome.wait)))
        if off:
            switch_off(webhook, off)


def _claim(webhook_id: int) -> WebhookDelivery | None:
    """Take the message that is due first, for one attempt."""
    while True:
        due = WebhookDelivery.objects.filter(
            _willing(), webhook=webhook_id, state=State.PENDING, next_attempt_at__lte=Now()
        )
        delivery = due.select_related("webhook").order_by("next_attempt_at", "pk").first()
        if delivery is None:
            return None
        mine = WebhookDelivery.objects.filter(
            pk=delivery.pk, state=State.PENDING, attempts=delivery.attempts, next_attempt_at__lte=Now()
        )
        if mine.update(attempts=F("attempts") + 1, next_attempt_at=_later(CLAIM_SECONDS)):
            delivery.attempts += 1
            return delivery


def _attempt(client: GuardedClient, delivery: WebhookDelivery) -> Outcome:
    began = time.monotonic()

    def outcome(
        status: int | None, error: Words | HypacError | None = None, *, away: bool = False, wait: int = 0
    ) -> Outcome:
        spent = round((time.monotonic() - began) * 1000)
        if isinstance(error, HypacError):
            part = failures.part_of_error(error)
            return Outcome(status, part["words"], spent, away, wait, part if error.code else {})
        return Outcome(status, error or "", spent, away, wait, error.params if error else {})

    webhook, body = delivery.webhook, delivery.payload.encode()
    try:
        signed = headers(delivery.message_id, int(time.time()), body, keys_of(webhook))
        answer = client.request(
            "POST",
            webhook.url,
            content=body,
            headers={"Content-Type": "application/json", "User-Agent": "HyPAC-Webhooks", **signed},
            read_content=False,
        )
    except InputError as error:  # the secret cannot be read
        return outcome(None, error)
    except NetError as error:
        return outcome(None, error, away=not error.permanent)
    if 200 <= answer.status < 300:
        return outcome(answer.status)
    # What it says besides is the word of somebody else, and may be of a server that nobody should ask.
    words = gettext_noop("It answered with status %(status)s.")
    if 300 <= answer.status < 400:
        words = gettext_noop(
            "It leads on to another address (status %(status)s), which is not followed. Enter that one."
        )
    away = answer.status == 429 or answer.status >= 500
    wait = _retry_after(answer.headers.get("retry-after", "")) if away else 0
    return outcome(answer.status, Words(words, status=answer.status), away=away, wait=wait)


def keys_of(webhook: Webhook) -> list[str]:
    """The secrets that sign now, the newest first. Raises InputError where none can be read."""
    keys = [decrypt(webhook.secret)]
    if webhook.old_secret and webhook.old_secret_until and webhook.old_secret_until > timezone.now():
        keys.append(decrypt(webhook.old_secret))
    return keys


def _retry_after(given: str) -> int:
    """Seconds; a date is not read."""
    return (
        min(int(given), LONGEST_RETRY_AFTER) if given.isascii() and given.isdigit() and len(given) < 9 else 0
    )


def _willing() -> Q:
    waits_not = Q(webhook__not_before__isnull=True) | Q(webhook__not_before__lte=Now())
    return waits_not & Q(webhook__project__deleting_at__isnull=True)


def _fail(rows: QuerySet[WebhookDelivery], error: Words) -> int:
    return rows.order_by().update(
        state=State.FAILED,
        next_attempt_at=None,
        finished_at=timezone.now(),
        error=error[:300],
        error_part=error.params,
    )


def _later(seconds: float) -> Combinable:
    return seconds_ago(-seconds)


# --- Secrets and signatures, as Standard Webhooks has them (https://www.standardwebhooks.com) ---------------

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    """`whsec_` and 256 random bits in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def headers(message_id: str, timestamp: int, body: bytes, keys: Sequence[str]) -> dict[str, str]:
    """Who sent it, when (in seconds since 1970), and a signature by each of `keys`, the newest first."""
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_signature(message_id, timestamp, body, key) for key in keys),
    }


def _signature(message_id: str, timestamp: int, body: bytes, secret: str) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
