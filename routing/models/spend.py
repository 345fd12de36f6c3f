from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models import Project
from routing.models.candidates import PromptCandidate
from routing.models.measurements import Measurement
from routing.models.runs import Run
from routing.models.sources import Source


class Spend(models.Model):
    """The ledger: what was paid for what. One row per committed chunk of predictions or per label."""

    class Stage(models.TextChoices):
        POOL = "pool", _("First source on the pool")
        PILOT = "pilot", _("Pilot")
        CALIBRATION = "calibration", _("Calibration")
        ROUTED = "routed", _("After routing")
        AUDIT = "audit", _("Audit")
        PROMPTS = "prompts", _("Comparing prompts")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="spends")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="spends")
    measurement = models.ForeignKey(
        Measurement, null=True, blank=True, on_delete=models.CASCADE, related_name="spends"
    )
    candidate = models.ForeignKey(
        PromptCandidate, null=True, blank=True, on_delete=models.CASCADE, related_name="spends"
    )
    source = models.ForeignKey(
        Source, null=True, blank=True, on_delete=models.RESTRICT, related_name="+", help_text="Empty: people."
    )
    by_expert = models.BooleanField(
        default=False, db_default=False, help_text="A label by the expert of the run."
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
                condition=Q(stage__in=["pool", "pilot", "calibration", "routed", "audit", "prompts"]),
                name="spend_stage_known",
            ),
            models.CheckConstraint(
                condition=Q(run__isnull=True, measurement__isnull=True)
                | Q(run__isnull=True, candidate__isnull=True)
                | Q(measurement__isnull=True, candidate__isnull=True),
                name="spend_of_one_payer",
            ),
        ]
        indexes = [models.Index(fields=["run", "stage"], name="spend_by_stage")]

    def __str__(self) -> str:
        return f"{self.amount} for {self.quantity} ({self.stage})"


class Reservation(models.Model):
    """Money set aside for calls of a model before they are made: the most that they can cost.

    It is settled together with the answers that it was for. What a worker leaves behind when it dies is
    counted as lost: those calls may have been charged, and nobody can tell.
    """

    class State(models.TextChoices):
        OPEN = "open", _("Calls under way")
        SETTLED = "settled", _("Settled")
        LOST = "lost", _("Calls lost with their worker")

    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="reservations")
    measurement = models.ForeignKey(
        Measurement, null=True, blank=True, on_delete=models.CASCADE, related_name="reservations"
    )
    candidate = models.ForeignKey(
        PromptCandidate, null=True, blank=True, on_delete=models.CASCADE, related_name="reservations"
    )
    source = models.ForeignKey(Source, on_delete=models.RESTRICT, related_name="+")
    stage = models.CharField(max_length=20, choices=Spend.Stage)
    claim_token = models.CharField(max_length=32, help_text="Of the job's worker that makes the calls.")
    state = models.CharField(max_length=20, choices=State, default=State.OPEN)
    calls = models.PositiveIntegerField(help_text="Items that are being asked for.")
    amount = models.DecimalField(max_digits=24, decimal_places=10)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "source", "stage", "claim_token"], name="reservation_once_per_worker"
            ),
            models.UniqueConstraint(
                fields=["measurement", "source", "stage", "claim_token"],
                name="reservation_once_per_measurer",
            ),
            models.UniqueConstraint(
                fields=["candidate", "source", "stage", "claim_token"],
                name="reservation_once_per_candidate",
            ),
            models.CheckConstraint(
                condition=Q(run__isnull=False, measurement__isnull=True, candidate__isnull=True)
                | Q(run__isnull=True, measurement__isnull=False, candidate__isnull=True)
                | Q(run__isnull=True, measurement__isnull=True, candidate__isnull=False),
                name="reservation_of_one_payer",
            ),
            models.CheckConstraint(condition=Q(amount__gte=0), name="reservation_not_negative"),
            models.CheckConstraint(
                condition=Q(state__in=["open", "settled", "lost"]), name="reservation_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} for {self.calls} calls ({self.state})"
