import hashlib
from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from knox.models import AbstractAuthToken, get_digest_token
from knox.settings import CONSTANTS

from annotation.models.projects import Membership, Project


def stamp(password_hash: str) -> str:
    """What changes with the password. The hash of a password is no secret to whoever can read this."""
    return hashlib.sha256(password_hash.encode()).hexdigest()


class Tokens(models.Manager["ApiToken"]):
    """knox's own, with types."""

    def issue(self, *, lasts: timedelta, **fields: Any) -> tuple["ApiToken", str]:
        """A new token, and its secret."""
        digest, secret = get_digest_token()
        start = secret[: CONSTANTS.TOKEN_KEY_LENGTH]
        token = self.create(digest=digest, token_key=start, expiry=timezone.now() + lasts, **fields)
        return token, secret

    def keep(self, *, user: AbstractBaseUser, password_hash: str) -> None:
        """Carry over what was made under another hash of the same password."""
        made_so = self.filter(user=user, password_stamp=stamp(password_hash))
        made_so.update(password_stamp=stamp(user.password))


class ApiToken(AbstractAuthToken):
    """What a program shows in place of a password. Of the token itself its SHA-512 is stored.

    What it may do is what its person may do at that moment, and less where it has a `role` or a `project`.
    """

    objects: ClassVar[Tokens] = Tokens()

    digest = models.CharField(max_length=128, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=100, help_text=_("What it is for."))
    role = models.CharField(
        max_length=20,
        choices=Membership.Role,
        blank=True,
        help_text=_("It may do what this role may, of what you may; empty: all that you may."),
    )
    project = models.ForeignKey(
        Project,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text=_("It opens this project only; empty: all of yours."),
    )
    password_stamp = models.CharField(max_length=64, help_text="SHA-256 of the password's hash by then.")
    expiry = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(role__in=["", "owner", "manager", "reviewer", "annotator", "viewer"]),
                name="api_token_role_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.token_key}...)"
