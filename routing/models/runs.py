from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from annotation import failures
from annotation.models import MAX_OVERLAP, Project, WorkBatch
from routing.core.losses import make_loss, measured_elsewhere, sorts_labels
from routing.core.messages import CoreError
from routing.core.reference.words import settled_cost
from routing.models.measurements import Measurement


def price_per_item(human_cost: Decimal, overlap: int, overlap_share: Decimal) -> Decimal:
    """What people cost per item, on average, where a label costs `human_cost`: exact."""
    return human_cost if overlap == 1 else human_cost * people_per_item(overlap, overlap_share)


ASSUMED_DIFFERENCE = Decimal("0.1")
"""Share of the items on which two people are taken to differ, so that a third decides."""


def cost_of_people(reference: str, human_cost: Decimal, overlap: int, overlap_share: Decimal) -> Decimal:
    """As `price_per_item`, where a third person may decide."""
    if reference == "settled":
        return settled_cost(human_cost, ASSUMED_DIFFERENCE)
    return price_per_item(human_cost, overlap, overlap_share)


def people_per_item(overlap: int, overlap_share: Decimal) -> Decimal:
    """How many people are asked about an item, on average."""
    return 1 + overlap_share.normalize() * (overlap - 1)


def share_or_none(help_text: str) -> "models.DecimalField[Decimal | None, Decimal | None]":
    """A column for a number from 0 to 1, empty where there is none."""
    return models.DecimalField(max_digits=9, decimal_places=8, null=True, blank=True, help_text=help_text)


def of_a_plan() -> "models.DecimalField[Decimal, Decimal]":
    """A column for a number that every plan has. Null of a run `by_people`, which has no plan: code that asks
    for it has a plan.
    """
    return models.DecimalField(  # type: ignore[misc]  # as said above
        max_digits=9, decimal_places=8, null=True, blank=True
    )


class Run(models.Model):
    """One plan with its frozen pool, pilot, draw, chains, certificate and routes.

    A run `by_people` has of these the pool alone: people label all of it, and nothing is certified.
    """

    class State(models.TextChoices):
        PREPARING = "preparing", _("Models at work")
        CALIBRATING = "calibrating", _("Calibration labelling")
        CHECKING = "checking", _("The expert labels")
        LOSSES = "losses", _("Losses are measured")
        ANALYSING = "analysing", _("Being analysed")
        ANALYSED = "analysed", _("Analysed")
        ROUTING = "routing", _("Being routed")
        LABELLING = "labelling", _("People label the rest")
        COMPLETE = "complete", _("Complete")
        CANCELLED = "cancelled", _("Cancelled")

    class DrawFrom(models.TextChoices):
        """Where the number that the calibration set is drawn from comes from (routing.core.commitment)."""

        SYSTEM = "system", _("This server, on trust")
        NONCE = "nonce", _("A text that somebody else chooses once the run has shown what it commits to")
        DRAND = "drand", _("A later round of the public beacon drand")
        NIST = "nist", _("A later pulse of NIST's public beacon")

    class Reference(models.TextChoices):
        """Whose label is right: a blind procedure that could be run on any item (routing.core.reference)."""

        PERSON = "person", _("One person's label")
        SETTLED = "settled", _("What two people give, and a third where they differ")
        EXPERT = "expert", _("An expert's label")

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
        *("by_people", "chosen"),
        *("reference", "expert_name", "expert_cost", "recheck_share", "audit_share", "accepted_error"),
        *("final_sample", "final_models_error", "final_models_alpha", "final_people_alpha"),
        *("later_audit_share", "draw_from", "suggestions"),
        *("pool_size", "entropy", "salt", "created_by_id", "created_at"),
    )

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="runs")
    number = models.PositiveIntegerField(help_text="1, 2, ... within the project.")
    state = models.CharField(max_length=20, choices=State, default=State.PREPARING)
    by_people = models.BooleanField(
        default=False, db_default=False, help_text="People label all its items; no model does."
    )
    chosen = models.JSONField(
        null=True,
        blank=True,
        help_text="Of a run by people how its items were chosen: `filters` of the items table, `found`, how "
        "many without a label these found, `sample`, how many of them were drawn at random, null for all, "
        "and `last`, the position in the project of the last item that was there.",
    )
    # The plan, never changed.
    epsilon = of_a_plan()
    alpha = of_a_plan()
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
    reference = models.CharField(
        max_length=20, choices=Reference, default=Reference.PERSON, db_default="person"
    )
    expert_name = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="As the certificate names the expert.",
    )
    expert_cost = models.DecimalField(
        max_digits=14, decimal_places=6, null=True, blank=True, help_text="What a label by the expert costs."
    )
    recheck_share = share_or_none(
        "r: the expert labels the first r n asked items, whatever people and models say."
    )
    audit_share = share_or_none(
        "Of the routed items that people label, the share that the expert labels too."
    )
    accepted_error = share_or_none(
        "eta: the share of people's labels on routed items that may differ from the expert's."
    )
    final_sample = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Labels by people that the expert labels, too, once all are there; empty: no final audit.",
    )
    final_models_error = share_or_none(
        "Of all items, the share that models may get wrong in its certificate."
    )
    final_models_alpha = share_or_none("How often its test of what models get wrong may be missed.")
    final_people_alpha = share_or_none("How often its test of what people get wrong may be missed.")
    later_audit_share = share_or_none(
        "Of the items that come later and are taken in, the share that people label, too, to see whether "
        "models get worse; empty for another target than the population."
    )
    draw_from = models.CharField(
        max_length=20, choices=DrawFrom, default=DrawFrom.SYSTEM, db_default="system"
    )
    suggestions = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whoever labels a routed item is shown what the last model answered that it went through.",
    )
    randomness = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",
        help_text="What somebody else chose, or a beacon gave, after the first commitment.",
    )
    alpha_spent = models.DecimalField(
        max_digits=12,
        decimal_places=8,
        null=True,
        blank=True,
        help_text="What earlier draws on these items had spent of alpha before this one; fixed with the "
        "first commitment.",
    )
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
    later_size = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Items that were taken in after the pool was frozen."
    )
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
    expert_batch = models.OneToOneField(
        WorkBatch,
        null=True,
        blank=True,
        on_delete=models.RESTRICT,
        related_name="checks",
        help_text="What the expert labels of the calibration set.",
    )
    expert_routed_batch = models.OneToOneField(
        WorkBatch,
        null=True,
        blank=True,
        on_delete=models.RESTRICT,
        related_name="decides",
        help_text="What the expert labels once the items are routed.",
    )
    later_audit_batch = models.OneToOneField(
        WorkBatch,
        null=True,
        blank=True,
        on_delete=models.RESTRICT,
        related_name="audits_later",
        help_text="What people label of the later items that models label.",
    )
    audit_alarm_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When the audit found more errors than were accepted: of people, or of models on later "
        "items.",
    )
    audit_found = models.JSONField(
        null=True,
        blank=True,
        help_text="How far the audit has counted, and what it found; null: nothing.",
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
                condition=Q(state__in=["preparing", "calibrating", "checking", "losses", "analysing"]),
                name="run_one_open_per_project",
            ),
            models.CheckConstraint(
                condition=Q(
                    state__in=[
                        "preparing",
                        "calibrating",
                        "checking",
                        "losses",
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
                condition=Q(by_people=False, epsilon__isnull=False, alpha__isnull=False, chosen__isnull=True)
                | Q(by_people=True, epsilon__isnull=True, alpha__isnull=True, chosen__isnull=False),
                name="run_by_people_or_plan",
            ),
            models.CheckConstraint(
                condition=(
                    Q(reference="expert", expert_cost__gt=0, recheck_share__gt=0, recheck_share__lte=1)
                    & Q(audit_share__gte=0, audit_share__lte=1, accepted_error__gt=0)
                    & ~Q(expert_name="")
                )
                | (
                    Q(reference__in=["person", "settled"], expert_cost__isnull=True, expert_name="")
                    & Q(recheck_share__isnull=True, audit_share__isnull=True, accepted_error__isnull=True)
                ),
                name="run_reference_whole",
            ),
            models.CheckConstraint(
                condition=Q(
                    reference="expert",
                    final_sample__gte=1,
                    final_models_error__gte=0,
                    final_models_alpha__gt=0,
                    final_people_alpha__gt=0,
                )
                | Q(
                    final_sample__isnull=True,
                    final_models_error__isnull=True,
                    final_models_alpha__isnull=True,
                    final_people_alpha__isnull=True,
                ),
                name="run_final_audit_whole",
            ),
            models.CheckConstraint(
                condition=Q(suggestions=False) | Q(reference="person", overlap=1, by_people=False),
                name="run_suggestions_to_one_person",
            ),
            models.CheckConstraint(
                condition=Q(later_audit_share__isnull=True)
                | Q(target="population", later_audit_share__gte=0, later_audit_share__lte=1),
                name="run_later_audit_of_a_population",
            ),
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

    def get_state_display(self) -> str:  # type: ignore[no-redef]  # what Django would make of the choices
        """Of a run by people in the words of people's work: there is no rest, and nothing is routed."""
        state = self.State(self.state)
        return str(_STATES_BY_PEOPLE.get(state, state.label) if self.by_people else state.label)

    @property
    def how_chosen(self) -> dict[str, Any]:
        """`chosen`, of a run by people."""
        return dict(self.chosen or {})

    @property
    def by_expert(self) -> bool:
        """Whether an expert's label is right."""
        return self.reference == self.Reference.EXPERT

    @property
    def covered_size(self) -> int:
        """How many items it covers: the pool, and what was taken in later."""
        return self.pool_size + self.later_size

    @property
    def own_batches(self) -> dict[int, int]:
        """Ids of the run's batches -> rank of their labels: those of a higher one are delivered."""
        people = (self.calibration_batch_id, self.routed_batch_id, self.later_audit_batch_id)
        return dict.fromkeys(filter(None, people), 1) | dict.fromkeys(self.expert_batches, 2)

    @property
    def expert_batches(self) -> list[int]:
        """Ids of the batches that the expert labels, as far as there are any."""
        return [pk for pk in (self.expert_batch_id, self.expert_routed_batch_id) if pk is not None]

    @property
    def only_batches(self) -> list[int] | None:
        """Ids of the batches whose labels alone count for items of the pool; None where any does.

        With the references `settled` and `expert` a label that somebody gave for another purpose is not right
        by definition, so that it takes the place of nothing that was certified.
        """
        return None if self.reference == self.Reference.PERSON else list(self.own_batches)

    @property
    def measured_elsewhere(self) -> bool:
        """Whether the team's own program measures the losses."""
        return self.loss == measured_elsewhere.NAME

    @property
    def binary(self) -> bool:
        """Whether the loss counts errors; else epsilon is a mean loss."""
        try:
            return make_loss(self.loss, self.loss_params, allow_import=False).binary
        except CoreError:
            return True  # of a run by people, and a loss of one's own: its certificate says what it is

    @property
    def sorts_labels(self) -> bool:
        """Whether labels between which the loss finds no difference are one label, as it is not with numbers
        within a tolerance.
        """
        try:
            # Nothing is imported to show a page: a loss of one's own counts as one that declares nothing.
            return sorts_labels(make_loss(self.loss, self.loss_params, allow_import=False))
        except CoreError:
            return False

    @property
    def cost_of_right(self) -> Decimal:
        """What it costs to have an item labelled by whose label is right."""
        return self.cost_per_item if self.expert_cost is None else self.expert_cost

    @property
    def alpha_with_earlier(self) -> Decimal:
        """How often its certificate, or one that earlier draws on these items led to, may be false."""
        return (self.alpha or Decimal(0)) + (self.alpha_spent or Decimal(0))

    @property
    def final_alpha(self) -> Decimal:
        """How often the certificate of its final audit may be false; 0 where none is planned."""
        if self.final_models_alpha is None or self.final_people_alpha is None:
            return Decimal(0)
        return self.final_models_alpha + self.final_people_alpha

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
        return cost_of_people(self.reference, self.human_cost, self.overlap, self.overlap_share)


_STATES_BY_PEOPLE = {
    Run.State.ROUTING: _("Being given to people"),
    Run.State.LABELLING: _("People label"),
}
