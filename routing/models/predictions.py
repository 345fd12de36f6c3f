from django.db import models
from django.db.models import Q

from annotation.models import Item
from routing.models.sources import Source

CODE = "What kind of reason it is, for programs."
QUOTES = "What the reason quotes of the answer or score."
ERASED_REASON = "erased"
"""What is left of a reason once the content of its item was erased: it may quote the answer."""
REMOVED = {"removed": True}
"""What is left of `raw` once it was erased with its item, or was kept as long as the server keeps it."""


class Prediction(models.Model):
    """What a source answered for an item, once per fingerprint. A row without a value names its reason."""

    # Both are the first column of an index below.
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="predictions", db_index=False)
    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="predictions", db_index=False)
    fingerprint = models.CharField(
        max_length=64, help_text="SHA-256 of backend, model, revision, prompt, parameters."
    )
    value = models.JSONField(null=True, blank=True, help_text="Canonical label value; null when not usable.")
    reason = models.CharField(max_length=200, blank=True, help_text="Why there is no usable answer.")
    reason_code = models.CharField(max_length=30, blank=True, default="", db_default="", help_text=CODE)
    reason_quotes = models.CharField(max_length=60, blank=True, default="", db_default="", help_text=QUOTES)
    raw = models.JSONField(default=dict, help_text="What scores are computed from, e.g. class probabilities.")
    tokens_in = models.PositiveIntegerField(null=True, blank=True)
    tokens_out = models.PositiveIntegerField(null=True, blank=True)
    finish_reason = models.CharField(max_length=40, blank=True)
    latency_ms = models.FloatField(null=True, blank=True)
    served_model = models.CharField(max_length=200, blank=True, help_text="Model as its server reported it.")
    served_revision = models.CharField(max_length=200, blank=True, help_text="And its revision, if reported.")
    # A short answer of an API may cost a millionth of the currency; sums are made of many of them.
    cost = models.DecimalField(max_digits=20, decimal_places=10)
    cost_note = models.CharField(
        max_length=200, blank=True, help_text="Why the price per label was charged instead of what was used."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "source", "fingerprint"], name="prediction_once"),
            models.CheckConstraint(condition=Q(cost__gte=0), name="prediction_cost_not_negative"),
            models.CheckConstraint(
                condition=Q(value__isnull=False, reason="") | (Q(value__isnull=True) & ~Q(reason="")),
                name="prediction_value_or_reason",
            ),
        ]
        indexes = [models.Index(fields=["source", "fingerprint", "item"], name="prediction_by_source")]

    def __str__(self) -> str:
        return f"{self.value if self.value is not None else self.reason}"


class ItemScore(models.Model):
    """An uncertainty score computed from a stored prediction: another score needs no model call."""

    # The first column of the index of the constraint below.
    prediction = models.ForeignKey(
        Prediction, on_delete=models.CASCADE, related_name="scores", db_index=False
    )
    name = models.CharField(
        max_length=40, help_text="Name in the registry of scores, and a digest of the parameters if any."
    )
    value = models.FloatField(help_text="Uncertainty in [0, 1].")
    reason = models.CharField(max_length=200, blank=True, help_text="Why the score is 1 by rule.")
    reason_code = models.CharField(max_length=30, blank=True, default="", db_default="", help_text=CODE)
    reason_quotes = models.CharField(max_length=60, blank=True, default="", db_default="", help_text=QUOTES)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["prediction", "name"], name="item_score_once"),
            models.CheckConstraint(
                condition=Q(value__gte=0, value__lte=1), name="item_score_in_unit_interval"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.value:.4f}"


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
