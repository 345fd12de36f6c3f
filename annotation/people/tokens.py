"""Tokens with which programs use the API in the name of a person.

A token holds until its last day, until it is revoked, and until the person's password changes, by whatever
way. It is given out once; the database has its hash.
"""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.one_line import checked_line
from annotation.errors import InputError
from annotation.models import ApiToken, Membership, Project, User
from annotation.models.people import stamp
from annotation.people.log_in import may_use_tokens
from annotation.people.members import check_role

MOST_TOKENS = 100
# Reading shall not write each time: this is how exactly "last used" is known.
USED_EVERY = timedelta(minutes=10)
# How long a token that has ended is still listed.
KEPT = timedelta(days=30)


def make_token(
    *, user: User, name: str, days: int | None = None, role: str = "", project: Project | None = None
) -> tuple[ApiToken, str]:
    """A token of this person and the secret itself, which is stored nowhere. Without `days` it holds for
    HYPAC_TOKEN_DAYS.

    Raises InputError whose `where` names the field.
    """
    name = checked_line(name, where="name")
    if not name or len(name) > 100:
        raise InputError(_("Say what it is for, in 1 to 100 characters."), where="name")
    days = settings.HYPAC_TOKEN_DAYS if days is None else days
    if not 1 <= days <= settings.HYPAC_TOKEN_MAX_DAYS:
        raise InputError(
            _("A token holds for 1 to %(most)s days.") % {"most": settings.HYPAC_TOKEN_MAX_DAYS}, where="days"
        )
    if role:
        check_role(role)
    if project is not None and not _takes_part(user, project):
        raise InputError(_("You take no part in this project."), where="project")
    with transaction.atomic():
        # The person's row is the lock: two requests at once do not make one token too many.
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if ApiToken.objects.filter(user=user, expiry__gt=timezone.now()).count() >= MOST_TOKENS:
            raise InputError(
                _("You have %(most)s tokens. Revoke those that nothing uses.") % {"most": MOST_TOKENS}
            )
        token, secret = ApiToken.objects.issue(
            user=user,
            lasts=timedelta(days=days),
            name=name,
            role=role,
            project=project,
            password_stamp=stamp(user.password),
        )
        audit.record(
            project=project,
            actor=user,
            action="token.made",
            target=f"token:{token.pk}",
            data={"user": user.pk, "days": days, "role": role},
        )
    return token, secret


def revoke_token(*, token: ApiToken, actor: User) -> None:
    """End a token now. Twice has one effect."""
    with transaction.atomic():
        if ApiToken.objects.filter(pk=token.pk).delete()[0]:
            audit.record(
                project=token.project,
                actor=actor,
                action="token.revoked",
                target=f"token:{token.pk}",
                data={"user": token.user_id},
            )


def is_valid(token: ApiToken) -> bool:
    return (
        token.expiry > timezone.now()
        and token.user.is_active
        and token.password_stamp == stamp(token.user.password)
        and may_use_tokens(token.user)
    )


def note_use(token: ApiToken) -> None:
    now = timezone.now()
    if token.last_used_at is None or token.last_used_at < now - USED_EVERY:
        unnoted = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - USED_EVERY)
        ApiToken.objects.filter(unnoted, pk=token.pk).update(last_used_at=now)


def forget_ended() -> None:
    ended = ApiToken.objects.filter(expiry__lt=timezone.now() - KEPT)
    if ended.exists():  # else without a write, for which SQLite has one lock
        ended.delete()


def _takes_part(user: User, project: Project) -> bool:
    return Membership.objects.filter(user=user, project=project, is_active=True).exists()
