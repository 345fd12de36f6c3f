from django.db import models

from annotation.models import Job
from routing.models.sources import Source


class SourceTry(models.Model):
    """What a source answered when it was tried on a few items: looked at and forgotten, used by no run.

    It is model output, and shown only where that may be.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="source_try")
    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="tries")
    rows = models.JSONField(
        default=list, help_text="One object per item: what was asked, what was answered, what it cost."
    )
    reasons = models.JSONField(
        default=list,
        blank=True,
        help_text="Beside each row, of why its answer and its score cannot be used: code and quoted text.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-job_id"]
        verbose_name_plural = "source tries"

    def __str__(self) -> str:
        return f"Try {self.job_id} of {self.source}"
