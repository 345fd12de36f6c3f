"""Losses that no request computes, as they may be slow, and those that the team's own program measures: which
are wanted, and what they came to.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from annotation.models import Item, Project
from routing.models.runs import Run


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


class WantedLosses(models.Model):
    """An asked item whose losses are wanted: its label was locked, and a model has answered about it."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="wanted_losses", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+")
    order = models.PositiveIntegerField(help_text="Random order of the draw, from 0.")
    measured = models.CharField(
        max_length=64, help_text="Hash of the label and the answers that they are to be of."
    )

    class Meta:
        ordering = ["run_id", "order"]
        constraints = [
            models.UniqueConstraint(fields=["run", "item"], name="wanted_losses_item_once"),
            models.UniqueConstraint(fields=["run", "order"], name="wanted_losses_order_once"),
        ]

    def __str__(self) -> str:
        return f"Losses wanted of item {self.item_id} in run {self.run_id}"


class GivenLosses(models.Model):
    """What was measured of the models' answers about one asked item; the newest version counts."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="given_losses", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+")
    version = models.PositiveIntegerField(help_text="1, 2, ...: each replaces the one before it.")
    losses = models.JSONField(
        help_text="Of each model's answer, in the order of the run's sources; null where there is none."
    )
    measured = models.CharField(
        max_length=64, help_text="Hash of the label and the answers that they are of."
    )
    given_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["run_id", "item_id", "version"]
        constraints = [
            models.UniqueConstraint(fields=["run", "item", "version"], name="given_losses_version_once"),
            models.CheckConstraint(condition=Q(version__gte=1), name="given_losses_version_from_1"),
        ]

    def __str__(self) -> str:
        return f"Losses of item {self.item_id} in run {self.run_id}"
