from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import AbstractUser, UserManager
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from annotation.models import usernames
from annotation.models.tokens import ApiToken


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
