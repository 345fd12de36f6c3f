from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from annotation.models.projects import Membership, Project


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
