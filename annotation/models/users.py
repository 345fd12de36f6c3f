from django.contrib.auth.models import AbstractUser
from django.db import models, transaction
from django.utils.translation import gettext_lazy as _


class User(AbstractUser):
    """A person who can log in. What somebody may do in a project is said by their Membership."""

    single_key_shortcuts = models.BooleanField(
        default=True,
        help_text=_("Single keys give labels and commands on the page where items are labelled."),
    )
    language = models.CharField(
        max_length=10, blank=True, help_text=_("Of the pages; empty: as the browser asks for.")
    )

    def check_password(self, raw_password: str | None) -> bool:
        """A password that Django hashes anew, and better, at a log-in is the same one: tokens go on."""
        from annotation.services.tokens import keep_tokens

        before = self.password
        with transaction.atomic():
            right = super().check_password(raw_password)
            if right and self.password != before and self.pk:
                keep_tokens(user=self, password_hash=before)
        return right
