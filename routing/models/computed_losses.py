"""Losses that no request computes, as they may be slow: which are wanted, and what they came to."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from annotation.models import Project


class ComputedLoss(models.Model):
    """The loss of one label and one answer by one loss with its parameters (`pair` is the hash of them all):
    wanted until it was computed, and from then on without the two texts.
    """

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="computed_losses", db_index=False
    )
    pair = models.CharField(max_length=64)
    loss = models.CharField(max_length=200)
    params = models.TextField(help_text="JSON, in its one spelling.")
    label = models.TextField(blank=True)
    answer = models.TextField(blank=True)
    asked_at = models.DateTimeField(
        default=timezone.now, help_text="When somebody last wanted it, roughly, while it is not computed."
    )
    value = models.FloatField(null=True, blank=True, help_text="Empty where the two have none.")
    computed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["project", "pair"], name="computed_loss_once"),
            models.CheckConstraint(
                condition=Q(computed_at__isnull=False) | Q(value__isnull=True),
                name="computed_loss_wanted_without_value",
            ),
        ]
        indexes = [
            models.Index(fields=["project", "id"], condition=Q(computed_at__isnull=True), name="wanted_loss"),
            models.Index(fields=["asked_at"], condition=Q(computed_at__isnull=True), name="unasked_loss"),
            models.Index(fields=["computed_at"], name="computed_loss_age"),
        ]

    def __str__(self) -> str:
        return f"Loss {self.loss} of a pair of project {self.project_id}"
