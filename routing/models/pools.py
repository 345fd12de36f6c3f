"""What a run froze beside its plan, its sources and the items that it covers; and what it took in later."""

from django.conf import settings
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


class Intake(models.Model):
    """Items that came after the pool of a run was frozen and that its thresholds route, too, as its target is
    everything from the same source. The pool and what was certified with it stay as they were.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="intakes")
    number = models.PositiveIntegerField(help_text="1, 2, ... within the run.")
    last = models.PositiveBigIntegerField(
        help_text="Position in the project of the last item that was there: what comes later is not taken in."
    )
    items = models.PositiveIntegerField(
        null=True, blank=True, help_text="How many were taken in; empty until they are."
    )
    people = models.PositiveIntegerField(
        null=True, blank=True, help_text="How many of them the policy sends to people."
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(
        null=True, blank=True, help_text="From then on the run covers these items."
    )
    abandoned_at = models.DateTimeField(
        null=True, blank=True, help_text="When another run began before it was finished: it never will be."
    )

    class Meta:
        ordering = ["run_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="intake_number_once"),
            models.UniqueConstraint(
                fields=["run"],
                condition=Q(finished_at__isnull=True, abandoned_at__isnull=True),
                name="intake_one_open_per_run",
            ),
            models.CheckConstraint(
                condition=Q(finished_at__isnull=True) | Q(abandoned_at__isnull=True), name="intake_one_end"
            ),
            models.CheckConstraint(
                condition=Q(finished_at__isnull=True, items__isnull=True, people__isnull=True)
                | Q(finished_at__isnull=False, items__isnull=False, people__isnull=False),
                name="intake_counted_once_finished",
            ),
        ]

    def __str__(self) -> str:
        return f"Intake {self.number} of run {self.run_id}"


class PoolItem(models.Model):
    """An item of the frozen pool, or one that was taken in later, with its routing key (u, v); u is known
    once source 1 has run.
    """

    # The first column of indexes below.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="pool_items", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+")
    intake = models.ForeignKey(
        Intake,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="pool_items",
        # A partial one is below: most items are of a frozen pool.
        db_index=False,
        help_text="With which it was taken in; empty: it is of the frozen pool.",
    )
    position = models.PositiveIntegerField(
        help_text="Place in the pool, from 0; draws name positions. What is taken in later comes behind."
    )
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
        indexes = [
            models.Index(fields=["run", "u", "v"], name="pool_by_key"),
            models.Index(
                fields=["intake", "item"], condition=Q(intake__isnull=False), name="pool_item_by_intake"
            ),
        ]

    def __str__(self) -> str:
        return f"Position {self.position} of run {self.run_id}"
