"""What people say about letters: that an address is theirs, which they want, that a password is lost."""

from datetime import timedelta

from django.core import signing
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.mail import PASSWORD, may_be_written_to, once, store_mail
from annotation.errors import ConflictError, InputError
from annotation.mail.letters import CONFIRM_DAYS, CONFIRMS, ENDS, NOTICES, WORK
from annotation.models import User
from annotation.people.log_in import may_use_password
from annotation.people.members import audit_name
from annotation.people.own_passwords import has_to_choose

WISHES = {NOTICES: "mail_notices", WORK: "mail_work"}


def confirm(*, user: User, token: str, password: str) -> None:
    """Remember that letters reach the holder of the account: whoever has the link and knows the password.

    Raises ConflictError where the link does not hold, or the password may still be known to whoever made the
    account; InputError for a wrong password.
    """
    try:
        who, email = signing.loads(token, salt=CONFIRMS, max_age=timedelta(days=CONFIRM_DAYS))
    except signing.BadSignature:
        who, email = None, None
    if who != user.pk or email != user.email:
        raise ConflictError(
            _("This link is for another account or address, or too old. Ask for a new one on this page."),
            code="link_not_valid",
        )
    if has_to_choose(user):
        # They could confirm an address of their own, and set the password by letter ever after.
        raise ConflictError(
            _("Whoever made your account may know its password. Choose a new one first."),
            code="choose_password_first",
        )
    if not user.check_password(password):
        raise InputError(_("That is not your password."), where="password")
    stored = User.objects.filter(pk=user.pk, email=email, email_confirmed_at__isnull=True)
    if stored.update(email_confirmed_at=timezone.now()):
        audit.record(project=None, actor=user, action="account.email_confirmed", target=audit_name(user))


def forgotten(named: str) -> None:
    """Send whoever lost a password a link with which it is set, if there is such an account and its address
    is known to be its holder's. What is answered is the same in any case.
    """
    mine = User.objects.filter(may_be_written_to(), Q(username=named) | Q(email__iexact=named))
    # Of the accounts that share an address.
    for user in filter(may_use_password, mine[:5]):
        store_mail(kind=PASSWORD, to=user.email, user=user, data={}, key=once(PASSWORD, user))


def person_and_wish(token: str) -> tuple[int, str] | None:
    """Whose letters, and which, the link in one of them ends; None where it is no such link. It holds for
    ever, as letters are kept.
    """
    try:
        who, wish = signing.loads(token, salt=ENDS)
    except signing.BadSignature:
        return None
    return int(who), str(wish)


def end_letters(user_id: int, wish: str) -> None:
    """Send this person no such letters from now on."""
    User.objects.filter(pk=user_id).update(**{WISHES[wish]: False})
