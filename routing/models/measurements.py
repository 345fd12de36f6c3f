from django.conf import settings
from django.db import models
from django.db.models import F, Q

from annotation.models import Item, Project
from routing.models.sources import FrozenSource


class Measurement(models.Model):
    """What all models of a project are asked before a plan is made: a pilot that nobody labels.

    A run whose plan was chosen by it takes it as its pilot, the same items with the same answers.
    """

    # What the database refuses to change once it is there (routing.apps).
    FIXED_COLUMNS = ("project_id", "outside", "pool_size", "last", "size", "entropy", "created_at")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="measurements")
    outside = models.BooleanField(
        help_text="Of a plan about everything from the same source: its items stay outside the pool of a run."
    )
    pool_size = models.PositiveIntegerField(help_text="Items that it was drawn from.")
    last = models.PositiveIntegerField(help_text="Position of the last item of the project then.")
    pool_hash = models.CharField(
        max_length=64, blank=True, help_text="Of the pool of a run that takes it; empty before it is drawn."
    )
    size = models.PositiveIntegerField(help_text="Items that the models answer.")
    entropy = models.CharField(max_length=40, help_text="Seed of its draw: a whole number, as text.")
    budget = models.DecimalField(
        max_digits=20,
        decimal_places=6,
        null=True,
        blank=True,
        help_text="The most that the models may cost; empty: no limit.",
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True, help_text="When every model had answered.")
    discarded_at = models.DateTimeField(
        null=True, blank=True, help_text="When somebody said that no run is to take it."
    )

    class Meta:
        ordering = ["project_id", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(size__gte=1, size__lte=F("pool_size")), name="measurement_size_in_pool"
            ),
            models.CheckConstraint(
                condition=Q(budget__isnull=True) | Q(budget__gte=0), name="measurement_budget_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return f"Measurement {self.pk} of {self.project}"


class MeasuredSource(FrozenSource):
    """A source as it was when it was measured."""

    measurement = models.ForeignKey(Measurement, on_delete=models.CASCADE, related_name="sources")
    asked_as = models.CharField(
        max_length=64, help_text="Of how the project asks the source, to compare without asking its server."
    )

    class Meta:
        ordering = ["measurement_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["measurement", "source"], name="measured_source_once"),
        ]

    def __str__(self) -> str:
        return f"{self.source} in measurement {self.measurement_id}"

    @property
    def budget_owner(self) -> Measurement:
        return self.measurement


class MeasuredItem(models.Model):
    """An item of the pilot of a measurement."""

    measurement = models.ForeignKey(Measurement, on_delete=models.CASCADE, related_name="items")
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+")
    order = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["measurement", "item"], name="measured_item_once"),
            models.UniqueConstraint(fields=["measurement", "order"], name="measured_order_once"),
        ]

    def __str__(self) -> str:
        return f"Item {self.order} of measurement {self.measurement_id}"
