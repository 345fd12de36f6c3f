from django.db import models
from django.db.models import Q

from annotation.models import Item
from routing.models.runs import Run


class PilotItem(models.Model):
    """An item on which the models run so that the chain can be built. Nobody labels it for that."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="pilot_items")
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+")
    order = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "item"], name="pilot_item_once"),
            models.UniqueConstraint(fields=["run", "order"], name="pilot_order_once"),
        ]

    def __str__(self) -> str:
        return f"Pilot item {self.order} of run {self.run_id}"


class Draw(models.Model):
    """The calibration set of a run: drawn once, before any label exists, and never again."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="draw")
    m = models.PositiveIntegerField()
    n = models.PositiveIntegerField(help_text="How many people are asked for.")
    randomness = models.JSONField(
        null=True,
        blank=True,
        help_text="Where the number came from that it follows from, and its value (routing.core.commitment); "
        "null of draws from before there were commitments.",
    )
    critical = models.JSONField(
        null=True,
        blank=True,
        help_text="Where an expert is the reference: n_B and the critical values, which follow from n.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(m__gte=1, n__lte=models.F("m")), name="draw_n_within_m")
        ]

    def __str__(self) -> str:
        return f"Draw of run {self.run_id}"


class DrawItem(models.Model):
    draw = models.ForeignKey(Draw, on_delete=models.CASCADE, related_name="items")
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+")
    order = models.PositiveIntegerField(help_text="Random order of the draw, from 0.")
    asked = models.BooleanField(help_text="Z: whether people are asked.")
    probability = models.DecimalField(
        max_digits=9, decimal_places=8, help_text="p_i of being asked, given drawn."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["draw", "item"], name="draw_item_once"),
            models.UniqueConstraint(fields=["draw", "order"], name="draw_order_once"),
            models.CheckConstraint(
                condition=Q(probability__gt=0, probability__lte=1), name="draw_probability_in_0_1"
            ),
        ]

    def __str__(self) -> str:
        return f"Draw item {self.order} of draw {self.draw_id}"


class Certificate(models.Model):
    """The outcome of the analysis of a run, as the bytes that are handed out."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="certificate")
    certified = models.BooleanField()
    shape = models.CharField(
        max_length=20,
        default="first_score",
        help_text="How the thresholds are read: all on the score of the first source (first_score), one on "
        "that of one source (own), or three on those of two (cascade); of slices of the first one's score, "
        "each with its own source (slices).",
    )
    model_positions = models.JSONField(
        default=list, help_text="Places, from 1, of the sources whose labels a policy of this shape keeps."
    )
    thresholds = models.JSONField(
        help_text='Each {"u": ..., "v": ...} or null: nothing goes there. Of first_score one a source; of '
        "slices the upper end of each, rising, with the place of its source."
    )
    document = models.TextField(help_text="Canonical JSON.")
    draw_lines = models.TextField(help_text="draw.jsonl.")
    figures = models.JSONField(
        default=dict, help_text="What pages show beside it: comparisons, region, risk along the chain."
    )
    messages = models.JSONField(
        default=dict,
        help_text="What its sentences say, by code and parameters, of which pages make them in a language: "
        '"sentence", "reason" and, beside the figures, "comparisons".',
    )
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"Certificate {self.sha256[:12]}"

    @property
    def holds(self) -> bool:
        """Whether something was certified, and nothing broke it since."""
        return self.certified and not self.run.invalid_reasons


class Route(models.Model):
    """Which source the thresholds give an item to, before unusable answers are passed on."""

    # Routes are made of the rows of the pool, in one statement, and deleted with their run. The keys of those
    # rows hold run and item; to check them again, item by item, took two thirds of the time of the routing.
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="routes", db_index=False, db_constraint=False
    )
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+", db_constraint=False)
    position = models.PositiveSmallIntegerField(
        help_text="1 to S; S is people. With an expert, S + 1 is person and model together, S + 2 the expert."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "item"], name="route_once"),
            models.CheckConstraint(condition=Q(position__gte=1), name="route_position_from_1"),
        ]
        indexes = [models.Index(fields=["run", "position", "item"], name="route_by_position")]

    def __str__(self) -> str:
        return f"Item {self.item_id} to source {self.position}"
