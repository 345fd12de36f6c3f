"""Links with which somebody sets a new password: made by an owner, or sent to a confirmed address by mail.

Whoever makes such a link could use it themselves and be the other person from then on. So an owner makes it
only where that gives them nothing: for an account that was made in a project of theirs, never belonged to
another one, and whose holder never chose a password. The links of whoever runs the server are for everybody
else; `manage.py changepassword` and the administration do the same.
"""

from datetime import datetime, timedelta
from typing import cast

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db import transaction
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.formats import date_format
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.errors import NotAllowedError
from annotation.models import Membership, Project, User
from annotation.people.log_in import may_use_password
from annotation.people.members import audit_name
from annotation.people.second_factor.change import note


class _Tokens(PasswordResetTokenGenerator):
    """Django's: they end with the next password, log-in or e-mail, and after PASSWORD_RESET_TIMEOUT.

    And with any change of what the account may do, and of whose password it has: a link made for an annotator
    opens nothing that they got since.
    """

    key_salt = "annotation.password_links"

    def _make_hash_value(self, user: User, timestamp: int) -> str:
        memberships = user.memberships.order_by("pk").values_list("pk", "role")
        rights = [user.is_active, user.is_staff, user.is_superuser, *map(str, memberships)]
        rights += [user.password_chosen_at, user.belonged_elsewhere]
        return f"{super()._make_hash_value(user, timestamp)}{rights}"


tokens = _Tokens()
HOURS = settings.PASSWORD_RESET_TIMEOUT // 3600


def reset_link(*, project: Project, actor: User, user: User) -> tuple[str, str]:
    """The two parts of a link with which `user` sets a new password: id and token, stored nowhere.

    Raises NotAllowedError where the actor would get more by it than they have (`why_no_link`). The account's
    holder is told, at the next log-in and on the page of the account.
    """
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if reason := why_no_link(actor=actor, user=user):
            raise NotAllowedError(reason)
        User.objects.filter(pk=user.pk).update(reset_link_at=timezone.now(), reset_link_by=actor)
        audit.record(
            project=project,
            actor=actor,
            action="account.reset_link_made",
            target=audit_name(user),
            data={"user": user.pk},
        )
    return urlsafe_base64_encode(force_bytes(user.pk)), tokens.make_token(user)


def note_set_by(*, user: User, actor: User) -> None:
    """Remember that `actor` knows the password, and tell the holder (`annotation.people.accounts_views`)."""
    now, told = timezone.now(), User.objects.filter(pk=user.pk)
    with transaction.atomic():
        if user == actor:
            told.update(password_chosen_at=now)
            note(user, "account.password_changed", by=user)
        else:
            told.update(password_chosen_at=None, reset_link_at=now, reset_link_by=actor)
            note(user, "account.password_set", by=actor)


def chose_before_link(user: User) -> bool:
    """Whether a link was made for the password that is in use, as far as its holder knows."""
    chosen, made = user.password_chosen_at, user.reset_link_at
    return made is not None and (chosen is None or chosen < made)


def should_hear_of_link(user: User, *, last_login: datetime | None) -> bool:
    """Whether they have not been told at a log-in yet."""
    made = user.reset_link_at
    return made is not None and (last_login is None or last_login < made) and chose_before_link(user)


def link_in_words(user: User) -> str:
    by = user.reset_link_by
    if user.password_chosen_at is None and by is not None and (by.is_staff or by.is_superuser):
        words = _(
            "On %(when)s %(name)s set your password, or made a link with which it can be set. Choose a new "
            "one, and ask them about it if you did not want that."
        )
    elif _is_open(user):
        words = _(
            "On %(when)s %(name)s made a link with which your password can be set. If you did not ask for "
            "it, choose a new password."
        )
    else:
        words = _(
            "On %(when)s %(name)s made a link for setting your password. It has ended. If you did not ask "
            "for it, choose a new password."
        )
    return words % {
        "when": date_format(timezone.localtime(user.reset_link_at), "j M Y, H:i T"),
        "name": by.username if by else _("somebody whose account is gone"),
    }


def why_no_link(*, actor: User, user: User) -> str:
    """Why this person's password is not for `actor` to reset, in words; "" where it is."""
    if user == actor:
        return _("Your own password you change on the page of your account.")
    if not user.is_active:
        return _("This account is switched off. The person who runs this server can switch it on.")
    if not may_use_password(user):
        return _("%(name)s logs in by %(provider)s, without a password here.") % {
            "name": user.username,
            "provider": settings.HYPAC_OIDC_NAME,
        }
    if user.is_staff or user.is_superuser:
        return _("%(name)s helps to run this server. Only there can their password be set.") % {
            "name": user.username
        }
    if actor.is_superuser or _is_the_actors(user, actor):
        return ""
    return _(
        "An owner makes links for new passwords only for an account that was made in a project of theirs, "
        "never belonged to another one, and whose holder never chose a password. The password of %(name)s "
        "is for an administrator of this server to set: in the administration, or with "
        "manage.py changepassword."
    ) % {"name": user.username}


def _is_the_actors(user: User, actor: User) -> bool:
    """Whether whoever is this account from now on gets nothing that the actor does not have already."""
    if user.made_in is None or user.password_chosen_at is not None or user.belonged_elsewhere:
        return False
    owned = Membership.objects.filter(
        user=actor, role=Membership.Role.OWNER, is_active=True, project=user.made_in
    )
    return owned.exists() and not user.memberships.exclude(project=user.made_in).exists()


def _is_open(user: User) -> bool:
    """Whether the link may hold still: it ends with time, and with the next log-in."""
    made = cast(datetime, user.reset_link_at)
    ended = timezone.now() > made + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)
    return not ended and (user.last_login is None or user.last_login < made)
