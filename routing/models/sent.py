"""Answers that were sent in from outside, for sources of the backend `uploaded`."""

from django.db import models

from annotation.models import Item
from routing.models.sources import Source


class SourceRevision(models.Model):
    """A model as it is declared: answers sent under one of these are those of one model and one revision."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="revisions", db_index=False)
    model = models.CharField(max_length=200)
    revision = models.CharField(max_length=200)
    fields = models.JSONField(
        default=list, help_text="What of its answers scores can read; fixed once a run rests on it."
    )
    served_model = models.CharField(max_length=200, blank=True, help_text="Model that the answers name.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["source_id", "id"]
        constraints = [
            models.UniqueConstraint(fields=["source", "model", "revision"], name="source_revision_once"),
        ]

    def __str__(self) -> str:
        return f"{self.model} ({self.revision})"


class SentAnswer(models.Model):
    """What a model answered for an item, as it was sent: a prediction once a run asks the source."""

    # The first column of the index of the constraint below.
    revision = models.ForeignKey(
        SourceRevision, on_delete=models.CASCADE, related_name="answers", db_index=False
    )
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="sent_answers")
    answer = models.JSONField(help_text="Label, raw fields of scores, tokens, time and cost.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["revision", "item"], name="sent_answer_once")]

    def __str__(self) -> str:
        return f"Answer for {self.item_id}"
