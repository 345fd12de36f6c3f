"""Who may log in by password, and who by the OpenID Connect provider alone. The settings name the backends
here.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils import timezone

from annotation.models import User

PASSWORD_BACKEND = "annotation.people.log_in.PasswordBackend"  # noqa: S105
SIGN_ON_BACKEND = "annotation.people.log_in.SignOnBackend"


def has_sign_on() -> bool:
    """Whether people can log in by a provider."""
    return bool(settings.HYPAC_OIDC_ISSUER)


def has_passwords() -> bool:
    """Whether everybody may have a password here."""
    return bool(settings.HYPAC_LOCAL_LOGIN == "everybody")


def may_use_password(user: User) -> bool:
    """Whom the provider vouches for, it alone lets in: who is gone there could come by a password else."""
    allowed = settings.HYPAC_LOCAL_LOGIN
    runs_server = user.is_staff or user.is_superuser
    return user.sign_on is None and (allowed == "everybody" or (allowed == "staff" and runs_server))


def may_use_tokens(user: User) -> bool:
    """Whether tokens of `user` are good: those of whom the provider vouches for end after a while without a
    log-in there.
    """
    if user.sign_on is None:
        return True
    if not has_sign_on() or user.signed_on_at is None:
        return False
    return user.signed_on_at > timezone.now() - timedelta(days=settings.HYPAC_OIDC_TOKEN_DAYS)


class PasswordBackend(ModelBackend):
    """Django's. It is asked at each request, too: sessions end with the right to log in so."""

    def user_can_authenticate(self, user: User | AnonymousUser | None) -> bool:
        return super().user_can_authenticate(user) and isinstance(user, User) and may_use_password(user)


class SignOnBackend(ModelBackend):
    """Of sessions that began at the provider. It looks at no password."""

    def authenticate(self, request: HttpRequest | None, *_args: Any, **_kwargs: Any) -> None:
        return None

    def user_can_authenticate(self, user: User | AnonymousUser | None) -> bool:
        return super().user_can_authenticate(user) and has_sign_on()
