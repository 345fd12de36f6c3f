"""Losses that the team's own program measures: which are wanted, and as they came."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.models import Item
from routing.models.runs import Run


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
