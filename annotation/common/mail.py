"""Letters to people: stored here in the transaction of what they tell, written by `annotation.mail.letters`
and sent by `annotation.mail.sending`.

They are optional everywhere: where the server has no HYPAC_MAIL_URL nothing is stored, and nothing is missed.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from annotation.common.workers import announce_mail
from annotation.models import Mail, Membership, Project, User

CONFIRM, PASSWORD, INVITATION, WORK = "confirm", "password", "invitation", "work"
# Of what happens in projects (annotation.common.events), what is told to those who lead one.
TOLD = (
    *("run.calibration_done", "run.completed", "run.audit_alarm", "certificate.broken"),
    *("annotator.paused", "job.failed"),
)
MINUTES = 10
LEADERS = (Membership.Role.OWNER, Membership.Role.MANAGER)


def is_on() -> bool:
    return bool(settings.HYPAC_MAIL_URL)


def may_be_written_to() -> Q:
    """Of people: that the address is theirs has been shown, and nobody switched the account off."""
    return Q(is_active=True, email_confirmed_at__isnull=False) & ~Q(email="")


def store_mail(
    *, kind: str, to: str, user: User | None = None, data: Mapping[str, Any], key: str = "", secret: str = ""
) -> None:
    """Store one letter and have it sent once the transaction is committed.

    Parameters
    ----------
    key
        Of one key only the first letter is stored; "" for any number.
    secret
        What the letter's link holds, encrypted; it is forgotten once the letter was sent.
    """
    if not is_on():
        return
    Mail.objects.bulk_create(
        [
            Mail(
                kind=kind,
                to=to,
                user=user,
                language=user.language if user else "",
                data=dict(data),
                key=key or None,
                secret=secret,
                next_attempt_at=Now(),
            )
        ],
        ignore_conflicts=True,
    )
    transaction.on_commit(announce_mail)


def once(kind: str, user: User) -> str:
    """The key of a letter that people ask for: one of an account and address in MINUTES, whoever asks."""
    return f"{kind}:{user.pk}:{user.email}:{int(timezone.now().timestamp()) // (60 * MINUTES)}"[:200]


def ask_to_confirm(user: User) -> None:
    """Write to the address that the account has, unless it was confirmed or there is none."""
    if user.email and user.email_confirmed_at is None:
        store_mail(kind=CONFIRM, to=user.email, user=user, data={}, key=once(CONFIRM, user))


def tell_of_log_in(user: User, event: str, *, key: str = "") -> None:
    """To the person themselves, if letters are known to reach them, whatever they wish; of one `key` once."""
    if user.is_active and user.email and user.email_confirmed_at is not None:
        once = f"{event}:{user.pk}:{key}" if key else ""
        store_mail(kind=event, to=user.email, user=user, data={}, key=once)


def tell_leaders(*, project: Project, event: str, data: Mapping[str, Any], key: str = "") -> None:
    """What happened, to those who lead the project, want to be told, and whose address is known.

    Failed jobs come in swarms: of these one letter an hour and person.
    """
    if event not in TOLD or not is_on():
        return
    if event == "job.failed":
        key = f"{timezone.now():%Y-%m-%d %H}"
    people = User.objects.filter(
        may_be_written_to(),
        mail_notices=True,
        memberships__project=project,
        memberships__is_active=True,
        memberships__role__in=LEADERS,
    )
    said = {"project": project.slug, "name": project.name, **data}
    for user in people:
        once = f"{event}:{project.pk}:{key}:{user.pk}" if key else ""
        store_mail(kind=event, to=user.email, user=user, data=said, key=once)
