from django.conf import settings
from django.db import models

from annotation.models.projects import Project


class AuditEvent(models.Model):
    """Who did what to what, and when. Rows are never changed, but for names of people who were erased."""

    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="audit_events"
    )
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    action = models.CharField(max_length=60)
    target = models.CharField(max_length=120, blank=True, help_text="For example run:3 or item:17.")
    data = models.JSONField(default=dict)
    redactions = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="How often a name in it gave way to a number, as that person was erased.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["project", "-id"], name="audit_by_project")]

    def __str__(self) -> str:
        return f"{self.action} {self.target}"


class KeyedRequest(models.Model):
    """A request that came with an Idempotency-Key, and what was answered to it.

    While `status` is null the request is being worked on. It is kept for a day.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    address = models.TextField(help_text="Method, path, query, and headers that count.")
    content = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the body.")
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    headers = models.JSONField(default=dict)
    body = models.BinaryField(null=True, help_text="Null where the answer held a secret or was too large.")
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="keyed_request_once")]

    def __str__(self) -> str:
        return f"{self.address} ({self.status or 'under way'})"


class UsedOnce(models.Model):
    """What somebody showed and nobody may show again, until it would be refused anyway."""

    name = models.CharField(max_length=100, primary_key=True, help_text="Its kind and its SHA-256.")
    until = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.name


class AgreedSettings(models.Model):
    """The one row of what all hosts are to have alike (annotation.common.agreed_settings)."""

    fingerprints = models.JSONField(default=dict, help_text="By the name of a setting.")
    noted_at = models.DateTimeField(auto_now=True, help_text="When migrate last ran.")

    class Meta:
        verbose_name_plural = "agreed settings"

    def __str__(self) -> str:
        return f"as of {self.noted_at:%Y-%m-%d %H:%M}"
