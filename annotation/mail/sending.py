"""Sending what is stored, never twice: a letter is claimed by a conditional UPDATE, and one of which nobody
can know whether the mail server took it (its worker died, or the connection ended in the middle) is given up.
"""

import logging
import smtplib
import time
from datetime import timedelta

from django.core.cache import cache
from django.core.mail import get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from annotation.common.clock import seconds_ago
from annotation.common.mail import is_on
from annotation.common.workers import announce_mail
from annotation.errors import HypacError
from annotation.mail.letters import as_message, still_wanted
from annotation.models import Mail

log = logging.getLogger(__name__)
State = Mail.State

# Seconds after each failed attempt: within a day.
PAUSES = (60, 5 * 60, 30 * 60, 2 * 3600, 6 * 3600, 12 * 3600)
# Longer than any attempt takes (EMAIL_TIMEOUT, for each answer of the server).
CLAIM_SECONDS = 300
TURN_SECONDS = 20.0
OVERDUE_SECONDS = 30
KEPT_FOR = timedelta(days=30)
UNKNOWN = "Whether the mail server took it cannot be known, and nothing is sent twice."


def send_due(*, seconds: float = TURN_SECONDS) -> int:
    """Send what is due, the oldest first, until nothing is left, the server does not answer, or the time is
    over; then another worker is asked to go on. Returns how many were sent.
    """
    until, sent, server = time.monotonic() + seconds, 0, None
    try:
        while is_on() and (mail := _claim()):
            if not still_wanted(mail):
                _end(mail, State.DROPPED)
                continue
            if server is None:
                server = get_connection()
                try:
                    server.open()
                except (OSError, smtplib.SMTPException) as error:
                    _again(mail, error)
                    break
            sent += _attempt(server, mail)
            if time.monotonic() >= until:
                announce_mail()
                break
    finally:
        if server is not None:
            server.close()
    return sent


def catch_up() -> None:
    """Announce what is overdue, give up what nobody can know of, forget old letters. For the reconciler."""
    if not is_on():
        return
    lost = Mail.objects.filter(state=State.SENDING, next_attempt_at__lte=Now())
    given_up = lost.update(
        state=State.FAILED, next_attempt_at=None, finished_at=timezone.now(), error=UNKNOWN, secret=""
    )
    if given_up:
        log.error("%s letters are given up, as their worker is gone: %s", given_up, UNKNOWN)
    due = Mail.objects.filter(state=State.PENDING, next_attempt_at__lte=seconds_ago(OVERDUE_SECONDS))
    if due.exists():
        announce_mail()
    if cache.add("mail-pruned", 1, 3600):
        ended = Mail.objects.filter(finished_at__lt=timezone.now() - KEPT_FOR)
        ended._raw_delete(ended.db)


def _claim() -> Mail | None:
    """Take the letter that is due first, for one attempt."""
    while True:
        due = Mail.objects.filter(state=State.PENDING, next_attempt_at__lte=Now())
        mail = due.select_related("user").order_by("next_attempt_at", "pk").first()
        if mail is None:
            return None
        mine = due.filter(pk=mail.pk, attempts=mail.attempts)
        if mine.update(
            state=State.SENDING, attempts=F("attempts") + 1, next_attempt_at=seconds_ago(-CLAIM_SECONDS)
        ):
            mail.attempts += 1
            return mail


def _attempt(server: BaseEmailBackend, mail: Mail) -> bool:
    """Whether the server took it."""
    try:
        message = as_message(mail)
    except HypacError as error:  # its secret cannot be read
        _end(mail, State.FAILED, str(error))
        return False
    try:
        server.send_messages([message])
    except smtplib.SMTPRecipientsRefused as error:
        code, said = next(iter(error.recipients.values()), (550, b""))
        refused = smtplib.SMTPResponseException(code, said)
        _again(mail, refused) if 400 <= code < 500 else _end(mail, State.FAILED, _said(refused))
    except smtplib.SMTPResponseException as error:
        # It said no, so it did not take the letter.
        _again(mail, error) if 400 <= error.smtp_code < 500 else _end(mail, State.FAILED, _said(error))
    except (OSError, smtplib.SMTPException) as error:
        log.warning("Letter %s: the connection ended in the middle: %s", mail.pk, type(error).__name__)
        _end(mail, State.FAILED, UNKNOWN)
        server.close()
    else:
        _end(mail, State.SENT)
        return True
    return False


def _again(mail: Mail, error: Exception) -> None:
    if mail.attempts > len(PAUSES):
        _end(mail, State.FAILED, _said(error))
        return
    log.warning("Letter %s (%s) waits after attempt %s: %s", mail.pk, mail.kind, mail.attempts, _said(error))
    _mine(mail).update(
        state=State.PENDING, next_attempt_at=seconds_ago(-PAUSES[mail.attempts - 1]), error=_said(error)
    )


def _end(mail: Mail, state: State, error: str = "") -> None:
    if state == State.FAILED:
        log.error("Letter %s (%s) is given up: %s", mail.pk, mail.kind, error)
    _mine(mail).update(
        state=state, next_attempt_at=None, finished_at=timezone.now(), error=error[:300], secret=""
    )


def _mine(mail: Mail) -> QuerySet[Mail]:
    return Mail.objects.filter(pk=mail.pk, state=State.SENDING, attempts=mail.attempts)


def _said(error: Exception) -> str:
    """What went wrong, without what the server said: that may repeat addresses, or be of somebody else."""
    if isinstance(error, smtplib.SMTPResponseException):
        return f"The mail server answered with {error.smtp_code}."
    return f"The mail server cannot be used: {type(error).__name__}."
