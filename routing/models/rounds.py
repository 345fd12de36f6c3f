"""Guideline rounds: items that all annotators answer before a run, and what is said of their differences."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.models import Item, Project, WorkBatch


class GuidelineRound(models.Model):
    """One round. Its answers are compared; none is a label of record, and its items are in no draw."""

    FIXED_COLUMNS = ("project_id", "number", "batch_id", "by_name", "guidelines", "created_by_id")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="rounds")
    number = models.PositiveIntegerField(help_text="1, 2, ... within the project.")
    batch = models.OneToOneField(WorkBatch, on_delete=models.CASCADE, related_name="round")
    by_name = models.BooleanField(help_text="Somebody named the items; else they were drawn at random.")
    guidelines = models.TextField(blank=True, help_text="Those of the project when it began.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    closed_at = models.DateTimeField(
        null=True, blank=True, help_text="From then on everybody sees who said what."
    )

    class Meta:
        ordering = ["project_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="round_number_once"),
            models.UniqueConstraint(
                fields=["project"], condition=Q(closed_at__isnull=True), name="round_open_once"
            ),
            models.CheckConstraint(
                condition=Q(closed_at__isnull=True, closed_by__isnull=True)
                | Q(closed_at__isnull=False, closed_by__isnull=False),
                name="round_closing_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"Round {self.number} of {self.project}"


class RoundItem(models.Model):
    """An item of a round. Whichever round it was in, no run draws or covers it any more."""

    round = models.ForeignKey(GuidelineRound, on_delete=models.CASCADE, related_name="items")
    item = models.OneToOneField(Item, on_delete=models.RESTRICT, related_name="round_item")

    def __str__(self) -> str:
        return f"Item {self.item_id} of round {self.round_id}"


class RoundNote(models.Model):
    """What somebody says of an item on which a round's answers differ; with a label it decides the item."""

    round = models.ForeignKey(GuidelineRound, on_delete=models.CASCADE, related_name="notes")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="+")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    text = models.TextField(blank=True, max_length=2000)
    value = models.JSONField(null=True, help_text="Canonical, as in labels; null: a comment alone.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(condition=~Q(text="") | Q(value__isnull=False), name="round_note_says"),
        ]
        indexes = [models.Index(fields=["round", "item"], name="round_note_by_item")]

    def __str__(self) -> str:
        return f"Note {self.pk} on item {self.item_id}"
