from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from annotation.models.projects import Membership, Project


class Invitation(models.Model):
    """A link with which people join a project by themselves. Only its hash is stored."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=20, choices=Membership.Role)
    token_hash = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token in the link.")
    note = models.CharField(max_length=200, blank=True, help_text=_("For whom it is."))
    max_uses = models.PositiveSmallIntegerField(default=1, help_text=_("How many people may join with it."))
    uses = models.PositiveSmallIntegerField(default=0)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
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
        ]

    def __str__(self) -> str:
        return f"Invitation {self.pk} to {self.project} ({self.role})"
