"""Links with which somebody sets a new password, made by an owner: this server sends no mail.

Whoever makes such a link could use it themselves and be the other person from then on. So it is made only
where that gives the owner nothing: for people all of whose projects the owner owns, too, and never for
whoever runs the server. For everybody else there is `manage.py changepassword`.
"""

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db import transaction
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext as _

from annotation.errors import NotAllowedError
from annotation.models import Membership, Project, User
from annotation.services import audit
from annotation.services.members import name_of


class _Tokens(PasswordResetTokenGenerator):
    """Django's: they end with the next password, log-in or e-mail, and after PASSWORD_RESET_TIMEOUT.

    And with any change of what the account may do: a link made for an annotator opens nothing that they got
    since.
    """

    key_salt = "annotation.password_links"

    def _make_hash_value(self, user: User, timestamp: int) -> str:
        memberships = user.memberships.order_by("pk").values_list("pk", "role")
        rights = [user.is_active, user.is_staff, user.is_superuser, *map(str, memberships)]
        return f"{super()._make_hash_value(user, timestamp)}{rights}"


tokens = _Tokens()
HOURS = settings.PASSWORD_RESET_TIMEOUT // 3600


def reset_link(*, project: Project, actor: User, user: User) -> tuple[str, str]:
    """The two parts of a link with which `user` sets a new password: id and token, stored nowhere.

    Raises NotAllowedError where the actor would get more by it than they have (`why_no_link`).
    """
    with transaction.atomic():
        if reason := why_no_link(actor=actor, user=user):
            raise NotAllowedError(reason)
        audit.record(
            project=project,
            actor=actor,
            action="account.reset_link_made",
            target=name_of(user),
            data={"user": user.pk},
        )
    return urlsafe_base64_encode(force_bytes(user.pk)), tokens.make_token(user)


def why_no_link(*, actor: User, user: User) -> str:
    """Why this person's password is not for `actor` to reset, in words; "" where it is."""
    if user == actor:
        return _("Your own password you change on the page of your account.")
    if not user.is_active:
        return _("This account is switched off. The person who runs this server can switch it on.")
    if user.is_staff or user.is_superuser:
        return _("%(name)s helps to run this server. Only there can their password be set.") % {
            "name": user.username
        }
    owned = Membership.objects.filter(user=actor, role=Membership.Role.OWNER, is_active=True)
    if user.memberships.exclude(project__in=owned.values("project")).exists():
        return _(
            "%(name)s takes part in a project that you do not own, and whoever sets their password could "
            "enter it. An owner of all their projects can do it, or the person who runs this server."
        ) % {"name": user.username}
    return ""
