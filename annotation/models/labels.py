from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.models.items import Item
from annotation.models.work import WorkItem


class Label(models.Model):
    """One answer by one person. A correction is a new row that names the one it replaces."""

    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="labels")
    work_item = models.ForeignKey(WorkItem, on_delete=models.CASCADE, related_name="labels")
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="labels")
    value = models.JSONField(help_text="Canonical: for a single choice the key of the choice.")
    version = models.PositiveIntegerField(default=1)
    supersedes = models.OneToOneField(
        "self", null=True, blank=True, on_delete=models.RESTRICT, related_name="superseded_by"
    )
    idempotency_key = models.CharField(max_length=64)
    comment = models.TextField(blank=True, max_length=2000)
    lead_time_ms = models.PositiveIntegerField(
        null=True, blank=True, help_text="Time on the item as the page measured it."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["annotator", "idempotency_key"], name="label_submitted_once"),
            models.UniqueConstraint(
                fields=["work_item"],
                condition=Q(supersedes__isnull=True),
                name="label_first_once_per_work_item",
            ),
            models.UniqueConstraint(fields=["work_item", "version"], name="label_version_once"),
            models.CheckConstraint(
                condition=Q(version=1, supersedes__isnull=True) | Q(version__gt=1, supersedes__isnull=False),
                name="label_version_and_predecessor",
            ),
        ]
        indexes = [
            models.Index(
                fields=["lead_time_ms", "id"], condition=Q(lead_time_ms__isnull=False), name="label_by_time"
            ),
            models.Index(fields=["item"], condition=~Q(comment=""), name="label_with_comment"),
        ]

    def __str__(self) -> str:
        return f"{self.value} (version {self.version})"
