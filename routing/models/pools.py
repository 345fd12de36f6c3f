"""What a run froze beside its plan: its sources, and the items that it covers."""

from django.db import models
from django.db.models import Q

from annotation.models import Item
from routing.models.runs import Run
from routing.models.sources import FrozenSource


class RunSource(FrozenSource):
    """A source as the run's plan froze it. Its answers under another fingerprint are not this run's."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="run_sources")

    class Meta:
        ordering = ["run_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["run", "position"], name="run_source_position_once"),
            models.UniqueConstraint(fields=["run", "source"], name="run_source_once"),
            models.CheckConstraint(condition=Q(position__gte=1), name="run_source_position_from_1"),
            models.CheckConstraint(condition=Q(cost_per_label__gte=0), name="run_source_cost_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.source} in run {self.run_id}"

    @property
    def budget_owner(self) -> Run:
        return self.run


class PoolItem(models.Model):
    """An item of the frozen pool with its routing key (u, v); u is known once source 1 has run."""

    # The first column of indexes below.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="pool_items", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+")
    position = models.PositiveIntegerField(help_text="Place in the pool, from 0; draws name positions.")
    u = models.FloatField(null=True, blank=True, help_text="Uncertainty score in [0, 1].")
    v = models.BigIntegerField(help_text="53-bit tie-break from the run's salt and the item's id.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "item"], name="pool_item_once"),
            models.UniqueConstraint(fields=["run", "position"], name="pool_position_once"),
            models.CheckConstraint(condition=Q(v__gte=0, v__lt=2**53), name="pool_v_of_53_bits"),
            models.CheckConstraint(
                condition=Q(u__isnull=True) | Q(u__gte=0, u__lte=1), name="pool_u_in_unit_interval"
            ),
        ]
        indexes = [models.Index(fields=["run", "u", "v"], name="pool_by_key")]

    def __str__(self) -> str:
        return f"Position {self.position} of run {self.run_id}"
