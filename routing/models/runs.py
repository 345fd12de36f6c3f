from decimal import Decimal

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from annotation import failures
from annotation.models import MAX_OVERLAP, Item, Project, WorkBatch
from routing.models.measurements import Measurement
from routing.models.sources import FrozenSource


def price_per_item(human_cost: Decimal, overlap: int, overlap_share: Decimal) -> Decimal:
    """What people cost per item, on average, where a label costs `human_cost`: exact."""
    return human_cost if overlap == 1 else human_cost * people_per_item(overlap, overlap_share)


def people_per_item(overlap: int, overlap_share: Decimal) -> Decimal:
    """How many people are asked about an item, on average."""
    return 1 + overlap_share.normalize() * (overlap - 1)


class Run(models.Model):
    """One plan with its frozen pool, pilot, draw, chains, certificate and routes."""

    class State(models.TextChoices):
        PREPARING = "preparing", _("Models at work")
        CALIBRATING = "calibrating", _("Calibration labelling")
        ANALYSING = "analysing", _("Being analysed")
        ANALYSED = "analysed", _("Analysed")
        ROUTING = "routing", _("Being routed")
        LABELLING = "labelling", _("People label the rest")
        COMPLETE = "complete", _("Complete")
        CANCELLED = "cancelled", _("Cancelled")

    class Target(models.TextChoices):
        DATASET = "dataset", _("This data set, labels by people counted as right")
        POOL = "pool", _("This data set, as if no one had labelled the asked items")
        POPULATION = "population", _("Everything from the same source, later items too")

    # What the database refuses to change once the run is there (routing.apps).
    PLAN_COLUMNS = (
        *(
            "project_id",
            "number",
            "epsilon",
            "alpha",
            "target",
            "m",
            "p",
            "p_column",
            "p_min",
            "whole_size",
        ),
        *("bound", "rule", "split_share", "score", "score_params", "loss", "loss_params", "measurement_id"),
        *("human_cost", "overlap", "overlap_share", "consensus"),
        *("pool_size", "entropy", "salt", "created_by_id", "created_at"),
    )

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="runs")
    number = models.PositiveIntegerField(help_text="1, 2, ... within the project.")
    state = models.CharField(max_length=20, choices=State, default=State.PREPARING)
    # The plan, never changed.
    epsilon = models.DecimalField(max_digits=9, decimal_places=8)
    alpha = models.DecimalField(max_digits=9, decimal_places=8)
    target = models.CharField(max_length=20, choices=Target, default=Target.DATASET)
    m = models.PositiveIntegerField()
    p = models.DecimalField(
        max_digits=9, decimal_places=8, help_text="Where it varies from item to item, its mean over the pool."
    )
    p_column = models.CharField(
        max_length=255, blank=True, help_text="Imported column with the p of each item; empty: one p for all."
    )
    p_min = models.DecimalField(
        max_digits=9, decimal_places=8, null=True, blank=True, help_text="The smallest p, where it varies."
    )
    whole_size = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Items of the delivered data set, where people labelled others before this run.",
    )
    bound = models.CharField(max_length=40)
    rule = models.CharField(max_length=40, default="fixed_sequence")
    split_share = models.DecimalField(
        max_digits=9,
        decimal_places=8,
        default=Decimal("0.3"),
        help_text="Part of the asked items that a rule learns its chain from, if it learns one.",
    )
    score = models.CharField(max_length=40, default="max_softmax")
    score_params = models.JSONField(
        default=dict,
        blank=True,
        help_text="Parameters of the score of the first source, fitted ones included.",
    )
    loss = models.CharField(max_length=200, default="zero_one")
    loss_params = models.JSONField(default=dict, blank=True)
    measurement = models.ForeignKey(
        Measurement,
        null=True,
        blank=True,
        on_delete=models.RESTRICT,
        related_name="runs",
        help_text="What the plan was chosen by, whose items are the pilot of the run.",
    )
    human_cost = models.DecimalField(max_digits=14, decimal_places=6)
    overlap = models.PositiveSmallIntegerField(
        default=1, help_text="How many people label an item of which several are asked."
    )
    overlap_share = models.DecimalField(
        max_digits=5,
        decimal_places=4,
        default=Decimal(1),
        help_text="With which probability so many people are asked about an item; else one is.",
    )
    consensus = models.CharField(
        max_length=20,
        choices=Project.Consensus,
        default=Project.Consensus.MAJORITY,
        help_text="What settles a routed item on which people differ.",
    )
    budget = models.DecimalField(
        max_digits=20,
        decimal_places=6,
        null=True,
        blank=True,
        help_text="The most that the models of this run may cost; empty: no limit. May be changed later.",
    )
    accepts_unusable = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Somebody has said that the run may go on though many answers of a model cannot be used.",
    )
    pool_size = models.PositiveIntegerField()
    pool_hash = models.CharField(max_length=64)
    entropy = models.CharField(
        max_length=40, help_text="Seed of pilot, draw and salt: a whole number, as text."
    )
    salt = models.CharField(max_length=64)
    # The chain of policies, fixed before any label exists (null until the models have run on the pilot).
    chains = models.JSONField(null=True, blank=True)
    # Slices of the pool, for a rule that learns its chain from the first labels; fixed at the same moment.
    slices = models.JSONField(null=True, blank=True)
    calibration_batch = models.OneToOneField(
        WorkBatch, null=True, blank=True, on_delete=models.RESTRICT, related_name="calibrates"
    )
    routed_batch = models.OneToOneField(
        WorkBatch, null=True, blank=True, on_delete=models.RESTRICT, related_name="completes"
    )
    tally = models.JSONField(
        null=True,
        blank=True,
        help_text="What the routing came to.",
    )
    invalid_reasons = models.JSONField(
        default=list,
        blank=True,
        help_text="What broke the certificate, if anything did: code, params and the English words of each.",
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    analysed_at = models.DateTimeField(null=True, blank=True)
    routed_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["project_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="run_number_once"),
            models.UniqueConstraint(
                fields=["project"],
                condition=Q(state__in=["preparing", "calibrating", "analysing"]),
                name="run_one_open_per_project",
            ),
            models.CheckConstraint(
                condition=Q(
                    state__in=[
                        "preparing",
                        "calibrating",
                        "analysing",
                        "analysed",
                        "routing",
                        "labelling",
                        "complete",
                        "cancelled",
                    ]
                ),
                name="run_state_known",
            ),
            models.CheckConstraint(
                condition=Q(target__in=["dataset", "pool", "population"]), name="run_target_known"
            ),
            models.CheckConstraint(condition=Q(human_cost__gt=0), name="run_human_cost_above_0"),
            models.CheckConstraint(
                condition=Q(overlap__gte=1, overlap__lte=MAX_OVERLAP), name="run_overlap_range"
            ),
            models.CheckConstraint(
                condition=Q(overlap_share__gt=0, overlap_share__lte=1), name="run_overlap_share_range"
            ),
            models.CheckConstraint(
                condition=Q(budget__isnull=True) | Q(budget__gte=0), name="run_budget_not_negative"
            ),
            models.CheckConstraint(condition=Q(epsilon__gt=0, epsilon__lt=1), name="run_epsilon_in_0_1"),
            models.CheckConstraint(condition=Q(alpha__gt=0, alpha__lt=1), name="run_alpha_in_0_1"),
            models.CheckConstraint(condition=Q(p__gt=0, p__lte=1), name="run_p_in_0_1"),
            models.CheckConstraint(
                condition=Q(p_min__isnull=True) | Q(p_min__gt=0, p_min__lte=F("p")), name="run_p_min_in_0_p"
            ),
            models.CheckConstraint(
                condition=Q(p_min__isnull=True, p_column="") | (Q(p_min__isnull=False) & ~Q(p_column="")),
                name="run_p_min_with_its_column",
            ),
            models.CheckConstraint(
                condition=Q(split_share__gt=0, split_share__lt=1), name="run_split_share_in_0_1"
            ),
            models.CheckConstraint(condition=Q(m__gte=1, m__lte=F("pool_size")), name="run_m_in_pool"),
        ]

    def __str__(self) -> str:
        return f"Run {self.number} of {self.project}"

    @property
    def broken_by(self) -> list[str]:
        """What broke the certificate, in sentences in the language of the reader."""
        return [
            failures.in_words(reason["code"], reason["params"]) or reason["words"]
            for reason in self.invalid_reasons
        ]

    @property
    def cost_per_item(self) -> Decimal:
        """What people cost per item, on average: `human_cost` is the price of one label."""
        return price_per_item(self.human_cost, self.overlap, self.overlap_share)


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
