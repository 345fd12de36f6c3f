from django.db import models
from django.db.models import Q

from annotation.models import Project, StoredFile
from routing.models.runs import Run

BEFORE_DRAW, BEFORE_LABELS = 1, 2
"""Numbers of a run's commitments."""


class Commitment(models.Model):
    """What a run fixed before its draw (1) and its first label (2), as the bytes whose hash was shown."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="commitments")
    number = models.PositiveSmallIntegerField()
    document = models.TextField(help_text="Canonical JSON.")
    sha256 = models.CharField(max_length=64)
    items = models.ForeignKey(
        StoredFile,
        null=True,
        blank=True,
        on_delete=models.RESTRICT,
        related_name="+",
        help_text="committed.jsonl, of the first: what models had said of each item of the pool.",
    )
    pilot_lines = models.TextField(
        blank=True, help_text="pilot.jsonl, of the commitment that holds its hash: the same of the pilot."
    )
    draw_lines = models.TextField(blank=True, help_text="Of the second: the draw, without labels.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["run_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="commitment_once"),
            models.CheckConstraint(condition=Q(number__in=[1, 2]), name="commitment_1_or_2"),
        ]

    def __str__(self) -> str:
        return f"Commitment {self.number} of run {self.run_id}"


class LedgerEntry(models.Model):
    """Alpha that a draw, or a final audit, has spent: linked to the entry before by its hash."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="ledger")
    number = models.PositiveIntegerField(help_text="1, 2, ... within the project.")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=20)
    document = models.JSONField(help_text="As certificates hold it (routing.core.ledger).")
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="ledger_number_once"),
            models.UniqueConstraint(fields=["run", "kind"], name="ledger_once_for_each_draw"),
        ]

    def __str__(self) -> str:
        return f"Entry {self.number} of the ledger of project {self.project_id}"
