from django.conf import settings
from django.db import models

from annotation.models.projects import Project


class AuditEvent(models.Model):
    """Who did what to what, and when. Rows are never changed."""

    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="audit_events"
    )
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    action = models.CharField(max_length=60)
    target = models.CharField(max_length=120, blank=True, help_text="For example run:3 or item:17.")
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["project", "-id"], name="audit_by_project")]

    def __str__(self) -> str:
        return f"{self.action} {self.target}"
