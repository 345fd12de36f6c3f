from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models import Project
from routing.models.runs import Run
from routing.models.sources import Source


class Spend(models.Model):
    """The ledger: what was paid for what. One row per committed chunk of predictions or per label."""

    class Stage(models.TextChoices):
        POOL = "pool", _("First source on the pool")
        PILOT = "pilot", _("Pilot")
        CALIBRATION = "calibration", _("Calibration")
        ROUTED = "routed", _("After routing")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="spends")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="spends")
    source = models.ForeignKey(
        Source, null=True, blank=True, on_delete=models.RESTRICT, related_name="+", help_text="Empty: people."
    )
    stage = models.CharField(max_length=20, choices=Stage)
    quantity = models.PositiveIntegerField(help_text="Labels or predictions.")
    amount = models.DecimalField(max_digits=24, decimal_places=10)
    key = models.CharField(max_length=100, unique=True, help_text="What was paid; paying twice is refused.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(amount__gte=0), name="spend_not_negative"),
            models.CheckConstraint(
                condition=Q(stage__in=["pool", "pilot", "calibration", "routed"]), name="spend_stage_known"
            ),
        ]
        indexes = [models.Index(fields=["run", "stage"], name="spend_by_stage")]

    def __str__(self) -> str:
        return f"{self.amount} for {self.quantity} ({self.stage})"
