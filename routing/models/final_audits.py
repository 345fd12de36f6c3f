"""The final audit of a run with an expert: what was drawn of people's labels, and its certificate."""

import json

from django.db import models
from django.db.models import F, Q

from annotation import failures
from annotation.models import Item
from routing.models.runs import Run


class FinalAudit(models.Model):
    """The sample of a run's delivered labels by people that its expert had not given, drawn once."""

    FIXED_COLUMNS = ("run_id", "size", "frame_hash", "sampled", "entropy", "drawn_at")

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="final_audit")
    size = models.PositiveIntegerField(help_text="Labels that could be drawn.")
    frame_hash = models.CharField(max_length=64, help_text="Of their items' ids, in the order of the pool.")
    sampled = models.PositiveIntegerField()
    entropy = models.CharField(max_length=40, help_text="Seed of the draw: a whole number, as text.")
    drawn_at = models.DateTimeField(auto_now_add=True)
    invalid_reasons = models.JSONField(
        default=list, blank=True, help_text="What broke it, if anything did, as of a run."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(sampled__gte=1, sampled__lte=F("size")), name="final_audit_sample_in_size"
            ),
        ]

    def __str__(self) -> str:
        return f"Final audit of run {self.run_id}"


class FinalSample(models.Model):
    """A drawn label, as it was then; the expert labels its item, too."""

    audit = models.ForeignKey(FinalAudit, on_delete=models.CASCADE, related_name="sample", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+")
    order = models.PositiveIntegerField(help_text="Place in the draw, from 0.")
    place = models.PositiveIntegerField(help_text="Place among all labels that could be drawn, from 0.")
    label = models.JSONField()

    class Meta:
        ordering = ["audit_id", "order"]
        constraints = [
            models.UniqueConstraint(fields=["audit", "order"], name="final_sample_order_once"),
            models.UniqueConstraint(fields=["audit", "item"], name="final_sample_item_once"),
        ]

    def __str__(self) -> str:
        return f"Item {self.item_id} of final audit {self.audit_id}"


class FinalCertificate(models.Model):
    """The outcome of a final audit, as the bytes that are handed out."""

    audit = models.OneToOneField(FinalAudit, on_delete=models.CASCADE, related_name="certificate")
    certified = models.BooleanField()
    document = models.TextField(help_text="Canonical JSON: final_audit.json.")
    messages = models.JSONField(
        default=list, help_text="What its sentence says, by code and parameters, for other languages."
    )
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"Final certificate {self.sha256[:12]}"

    @property
    def sentence(self) -> str:
        """What is certified, or not and why, in English."""
        return str(json.loads(self.document)["result"]["sentence"])

    @property
    def broken_by(self) -> list[str]:
        """What broke it, in sentences in the language of the reader: what broke the run's own certificate
        but for an alarm, which speaks of what this one assumes nothing of.
        """
        audit = self.audit
        reasons = [one for one in audit.run.invalid_reasons if one["code"] != "audit_alarm"]
        return [
            failures.in_words(reason["code"], reason["params"]) or reason["words"]
            for reason in (*audit.invalid_reasons, *reasons)
        ]

    @property
    def holds(self) -> bool:
        """Whether something was certified, and nothing broke it since."""
        return self.certified and not self.broken_by
