"""Setting up a second step, and ending it: audited, and told by mail where the server sends any. Each such
change ends all sessions of the person, as a new password does: whoever was in before it came by less.
"""

from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.mail import tell_of_log_in
from annotation.common.one_line import checked_line
from annotation.errors import InputError
from annotation.models import AuthenticatorApp, Passkey, RecoveryCode, User
from annotation.outside.secrets import encrypt
from annotation.people.members import audit_name
from annotation.people.second_factor import codes
from annotation.people.second_factor.passkeys import NewPasskey
from annotation.people.second_factor.policy import has_second_factor
from annotation.people.sessions import end_all

MOST_PASSKEYS = 20
PASSKEY_ACTIONS = (ADDED, REMOVED) = ("account.passkey_added", "account.passkey_removed")


def set_up_app(*, user: User, secret: str, code: str) -> list[str]:
    """An app that shows `code` by now. Returns recovery codes where there were none, each shown this once.

    Raises InputError where the code is not that of the secret, or the account has an app.
    """
    step = codes.step_of(secret, code)
    if step is None:
        raise InputError(_("This is not the code that the app should show by now."), where="code")
    with transaction.atomic():
        _lock(user)
        if AuthenticatorApp.objects.filter(user=user).exists():
            raise InputError(_("Your account has an authenticator app. Remove it first."))
        AuthenticatorApp.objects.create(user=user, secret=encrypt(secret), last_step=step)
        _note_change(user, "account.app_set_up", by=user)
        return _first_codes(user)


def remove_app(*, user: User) -> None:
    with transaction.atomic():
        _lock(user)
        if AuthenticatorApp.objects.filter(user=user).delete()[0]:
            _note_change(user, "account.app_removed", by=user)
        _forget_codes(user)


def add_passkey(*, user: User, name: str, handle: str, made: NewPasskey) -> list[str]:
    """Returns recovery codes where there were none, each shown this once.

    Raises InputError where the passkey is known already, or there are too many.
    """
    name = checked_line(name, where="name")
    try:
        with transaction.atomic():
            _lock(user)
            check_room(user)
            passkey = Passkey.objects.create(
                user=user,
                name=name,
                handle=handle,
                credential_id=made.credential_id,
                credential=made.credential,
                sign_count=made.sign_count,
            )
            _note_change(user, ADDED, by=user, passkey=passkey.pk, name=name)
            return _first_codes(user)
    except IntegrityError:
        raise InputError(_("This passkey is known already.")) from None


def check_room(user: User) -> None:
    """Raises InputError where the account takes no more passkeys."""
    if Passkey.objects.filter(user=user).count() >= MOST_PASSKEYS:
        raise InputError(
            _("You have %(most)s passkeys. Remove those that you do not use.") % {"most": MOST_PASSKEYS}
        )


def remove_passkey(*, user: User, passkey: Passkey) -> None:
    with transaction.atomic():
        _lock(user)
        if Passkey.objects.filter(pk=passkey.pk, user=user).delete()[0]:
            _note_change(user, REMOVED, by=user, passkey=passkey.pk, name=passkey.name)
        _forget_codes(user)


def new_recovery_codes(*, user: User) -> list[str]:
    """In place of those of before. Raises InputError for an account without a second step."""
    with transaction.atomic():
        _lock(user)
        if not has_second_factor(user):
            raise InputError(_("Set up an authenticator app or a passkey first."))
        _note_change(user, "account.recovery_codes_made", by=user)
        return codes.make_recovery_codes(user)


def reset(*, user: User, actor: User | None) -> bool:
    """End all of it, for somebody who lost everything; False where there was nothing."""
    with transaction.atomic():
        _lock(user)
        if not has_second_factor(user):
            return False
        forget(user)
        _note_change(user, "account.second_factor_reset", by=actor)
    return True


def forget(user: User) -> None:
    for model in (AuthenticatorApp, Passkey, RecoveryCode):
        model._default_manager.filter(user=user).delete()


def note_failure(user: User) -> None:
    """That somebody knew the password and failed at the second step; told at most once a day."""
    note(user, "account.second_step_failed", by=None, told_once=f"{timezone.now():%Y-%m-%d}")


def note(user: User, action: str, *, by: User | None, told_once: str = "", **data: Any) -> None:
    """Audit what happened to how `user` logs in, and write to them."""
    about = {"user": user.pk, **data}
    with transaction.atomic():
        audit.record(project=None, actor=by, action=action, target=audit_name(user), data=about)
        tell_of_log_in(user, action, key=told_once)


def _note_change(user: User, action: str, *, by: User | None, **data: Any) -> None:
    end_all(user)
    note(user, action, by=by, **data)


def _first_codes(user: User) -> list[str]:
    if RecoveryCode.objects.filter(user=user).exists():
        return []
    return codes.make_recovery_codes(user)


def _forget_codes(user: User) -> None:
    """They open nothing where there is no second step."""
    if not has_second_factor(user):
        RecoveryCode.objects.filter(user=user).delete()


def _lock(user: User) -> None:
    """The person's row: what two requests do at once they do one after the other. Raises InputError where the
    account was erased meanwhile: nothing is stored of it any more.
    """
    if User.objects.select_for_update(no_key=True).get(pk=user.pk).erased_at is not None:
        raise InputError(_("This account was erased."))
