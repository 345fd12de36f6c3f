import hashlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import AbstractUser, UserManager
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from knox.models import AbstractAuthToken, get_digest_token
from knox.settings import CONSTANTS

from annotation.models import usernames
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

    @property
    def is_limited(self) -> bool:
        """Whether it may less than its person."""
        return bool(self.role or self.project_id)


class NameKey(models.CharField):
    """What is unique about a username besides itself: filled in from it whenever a row is written.

    Null for names that nobody can type.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": 600, "unique": True, "null": True, "editable": False, **options})

    def of(self, name: str) -> str:
        return usernames.key_of(name)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        name = model_instance.username  # type: ignore[attr-defined]
        setattr(model_instance, self.attname, self.of(name) if usernames.is_typed(name) else None)
        return super().pre_save(model_instance, add)

    def deconstruct(self) -> Any:
        """For migrations a plain field."""
        name, _path, args, options = super().deconstruct()
        return name, "django.db.models.CharField", args, options


class NameLook(NameKey):
    def of(self, name: str) -> str:
        return usernames.look_of(name)


class Users(UserManager["User"]):
    use_in_migrations = False  # which know the names of today alone

    def create_superuser(
        self, username: str, email: str | None = None, password: str | None = None, **fields: Any
    ) -> "User":
        """Raises ValidationError for a name that nobody may have, which the command tells."""
        self.model(username=username).clean()
        return super().create_superuser(username, email, password, **fields)


class User(AbstractUser):
    """A person who can log in. What somebody may do in a project is said by their Membership."""

    single_key_shortcuts = models.BooleanField(
        default=True,
        help_text=_("Single keys give labels and commands on the page where items are labelled."),
    )
    language = models.CharField(
        max_length=10, blank=True, help_text=_("Of the pages; empty: as the browser asks for.")
    )
    email_confirmed_at = models.DateTimeField(
        null=True, editable=False, help_text="When its holder showed that letters to the address reach them."
    )
    mail_notices = models.BooleanField(
        default=True,
        db_default=True,
        help_text=_("Calibration labels are complete, an audit raised an alarm, a job failed."),
    )
    mail_work = models.BooleanField(
        default=True, db_default=True, help_text=_("Once a day at most, where items wait for you.")
    )
    sign_on = models.CharField(  # noqa: DJ001 - unique
        max_length=600,
        unique=True,
        null=True,
        editable=False,
        help_text="Who they are at the OpenID Connect provider: its issuer and their subject.",
    )
    signed_on_at = models.DateTimeField(
        null=True, editable=False, help_text="When they last logged in there."
    )
    sessions_ended = models.PositiveIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="How often all sessions were ended while the password stayed.",
    )
    username_key = NameKey()
    username_look = NameLook()
    # Not a foreign key: it stays known when that project is gone.
    made_in = models.BigIntegerField(
        null=True, editable=False, help_text="Id of the project whose owner made the account."
    )
    belonged_elsewhere = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="Whether it ever was a member of another project than that.",
    )
    password_chosen_at = models.DateTimeField(
        null=True,
        default=timezone.now,
        editable=False,
        help_text="When its holder last chose the password; null: whoever made the account still knows it.",
    )
    erased_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When all that says who they are was removed; what they did stays, under a number.",
    )
    reset_link_at = models.DateTimeField(
        null=True, editable=False, help_text="When a link for setting the password was last made."
    )
    reset_link_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )

    objects: ClassVar[Users] = Users()

    def clean(self) -> None:
        """A new name has to be told apart from all others; one that is there stays as it is."""
        super().clean()
        if not self.username:  # said by the field
            return
        if not self._state.adding and User.objects.filter(pk=self.pk, username=self.username).exists():
            return
        if words := usernames.objection(self.username):
            raise ValidationError({"username": words})
        others = User.objects.exclude(pk=self.pk)
        if others.filter(username_key=usernames.key_of(self.username)).exists():
            raise ValidationError({"username": _("A user with that username already exists.")})
        if others.filter(username_look=usernames.look_of(self.username)).exists():
            raise ValidationError(
                {"username": _("This name looks like that of another account. Choose one that differs more.")}
            )

    def get_session_auth_hash(self) -> str:
        """What each session has a copy of, and ends with when it changes."""
        return self._since_the_last_end(super().get_session_auth_hash())

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        yield from map(self._since_the_last_end, super().get_session_auth_fallback_hash())

    def _since_the_last_end(self, of_password: str) -> str:
        return f"{of_password}:{self.sessions_ended}" if self.sessions_ended else of_password

    def check_password(self, raw_password: str | None) -> bool:
        """A password that Django hashes anew, and better, at a log-in is the same one: tokens go on."""
        return check_password(raw_password, self.password, self._hash_anew)

    def _hash_anew(self, raw_password: str) -> None:
        before = self.password
        self.set_password(raw_password)
        self._password = None  # it is the same one: nothing is to be told of a change
        # Hashing stays outside: SQLite has one lock for all who write.
        with transaction.atomic():
            self.save(update_fields=["password"])
            ApiToken.objects.keep(user=self, password_hash=before)


class AttemptBucket(models.Model):
    """How many attempts at passwords somebody has made lately, or everybody: a bucket that fills up with each
    and empties by itself. In the database, so that all web processes count together.
    """

    name = models.CharField(primary_key=True, max_length=100)
    empty_at = models.FloatField(
        default=0, db_index=True, help_text="When it is empty, in seconds since 1970."
    )

    def __str__(self) -> str:
        return self.name


class SignOnSession(models.Model):
    """A session that began at the OpenID Connect provider, which can end it there."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    session_key = models.CharField(max_length=40, unique=True)
    sid = models.CharField(
        max_length=255,
        blank=True,
        db_index=True,
        help_text="What the provider calls it; empty: nothing.",
    )
    ends_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"Session of {self.user}"


class Invitation(models.Model):
    """With which people join a project by themselves: a link, of which only the hash is stored, or one that
    is addressed to somebody (`user`), who finds it once they have logged in.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=20, choices=Membership.Role)
    token_hash = models.CharField(  # noqa: DJ001 - unique
        max_length=64, unique=True, null=True, help_text="SHA-256 of the token in the link."
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="invitations",
        help_text=_("To whom it is addressed; empty: whoever has the link."),
    )
    note = models.CharField(max_length=200, blank=True, help_text=_("For whom it is."))
    max_uses = models.PositiveSmallIntegerField(default=1, help_text=_("How many people may join with it."))
    uses = models.PositiveSmallIntegerField(default=0)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    declined_at = models.DateTimeField(null=True, blank=True)
    max_labels = models.PositiveIntegerField(null=True, blank=True, help_text="Limits of the membership.")
    max_per_day = models.PositiveIntegerField(null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(role__in=["owner", "manager", "reviewer", "annotator", "viewer"]),
                name="invitation_role_known",
            ),
            models.CheckConstraint(
                condition=Q(max_uses__gte=1) & Q(uses__lte=F("max_uses")), name="invitation_uses_range"
            ),
            models.CheckConstraint(
                condition=Q(user__isnull=True, token_hash__isnull=False)
                | Q(user__isnull=False, token_hash__isnull=True, max_uses=1),
                name="invitation_link_or_person",
            ),
            models.UniqueConstraint(
                fields=["project", "user"],
                condition=Q(user__isnull=False, uses=0, revoked_at__isnull=True, declined_at__isnull=True),
                name="invitation_pending_once",
            ),
        ]

    def __str__(self) -> str:
        return f"Invitation {self.pk} to {self.project} ({self.role})"
