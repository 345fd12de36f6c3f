from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from annotation.models import Job, Project

if TYPE_CHECKING:
    from routing.models import BudgetOwner


class ModelPrice(models.Model):
    """A line of the project's price list. Sources that name it are charged by it; runs freeze a copy."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="model_prices")
    name = models.CharField(max_length=100, help_text="The model or machine that it is the price of.")
    cost_function = models.CharField(max_length=40, help_text="Name in the registry routing.core.costs.")
    prices = models.JSONField(default=dict, help_text="What the cost function needs; decimals, as text.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project_id", "name"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="model_price_name_once")]

    def __str__(self) -> str:
        return self.name


class Source(models.Model):
    """A model that can label items of a project. People are the last source of every run and have no row."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="sources")
    position = models.PositiveSmallIntegerField(help_text="1 is the cheapest.")
    name = models.CharField(max_length=100)
    backend = models.CharField(max_length=40, help_text="Name in the registry routing.sources.backends.")
    params = models.JSONField(default=dict, help_text="What the backend needs; checked by the backend.")
    cost_per_label = models.DecimalField(
        max_digits=14,
        decimal_places=6,
        default=Decimal(0),
        validators=[MinValueValidator(Decimal(0))],
        help_text="What a label costs on average: what plans reckon with, and the price of a flat cost.",
    )
    cost_function = models.CharField(
        max_length=40, default="flat", help_text="Name in the registry routing.core.costs."
    )
    prices = models.JSONField(
        default=dict, blank=True, help_text="What the cost function needs; decimals, as text."
    )
    price = models.ForeignKey(
        ModelPrice,
        null=True,
        blank=True,
        on_delete=models.RESTRICT,
        related_name="sources",
        help_text="Line of the price list that cost function and prices are taken from, if any.",
    )
    api_key = models.TextField(
        blank=True, help_text="Encrypted (annotation.outside.secrets); never shown again."
    )
    served = models.JSONField(
        default=dict,
        blank=True,
        help_text="Model and revision as the server reported them when it was saved.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["project", "position"], name="source_position_once"),
            models.UniqueConstraint(fields=["project", "name"], name="source_name_once"),
            models.CheckConstraint(condition=Q(position__gte=1), name="source_position_from_1"),
            models.CheckConstraint(condition=Q(cost_per_label__gte=0), name="source_cost_not_negative"),
        ]

    def __str__(self) -> str:
        return self.name


class FrozenSource(models.Model):
    """A source as something that rests on its answers froze it: what it answers as, and what that costs."""

    position = models.PositiveSmallIntegerField(help_text="1 is the cheapest.")
    source = models.ForeignKey(Source, on_delete=models.RESTRICT, related_name="+")
    fingerprint = models.CharField(max_length=64)
    cost_per_label = models.DecimalField(max_digits=14, decimal_places=6)
    cost_function = models.CharField(max_length=40, default="flat")
    prices = models.JSONField(default=dict, blank=True)

    class Meta:
        abstract = True

    @classmethod
    def of(cls, source: Source, **fields: Any) -> Self:
        """``source`` as it is charged now, not saved yet; ``fields`` are the others of the row."""
        return cls(
            source=source,
            cost_per_label=source.cost_per_label,
            cost_function=source.cost_function,
            prices=source.prices,
            **fields,
        )

    @property
    def budget_owner(self) -> "BudgetOwner":
        """Whose budget pays for its answers."""
        raise NotImplementedError


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


class MendVersion(models.Model):
    """Which spellings of labels a source may use. Append-only: a change is a new version, and the newest one
    is in force; the fingerprint of the source covers it.
    """

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="mend_versions")
    number = models.PositiveIntegerField(help_text="1, 2, ... within the source.")
    blanks = models.BooleanField(default=False, help_text="Repeated blanks count as one.")
    capitals = models.BooleanField(default=False, help_text="Capitals do not matter.")
    labels = models.JSONField(
        default=dict, help_text="What an answer says instead of a label -> the label's key."
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["source_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["source", "number"], name="mend_version_once"),
            models.CheckConstraint(condition=Q(number__gte=1), name="mend_version_from_1"),
        ]

    def __str__(self) -> str:
        return f"Mends {self.number} of {self.source}"


class PromptVersion(models.Model):
    """How a source is asked. Append-only: a change is a new version, and the newest one is in force."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="prompt_versions")
    number = models.PositiveIntegerField(help_text="1, 2, ... within the source.")
    system = models.TextField(blank=True, help_text="System message; empty for none.")
    template = models.TextField(help_text="User message with placeholders such as {{ text }}.")
    examples = models.JSONField(
        default=list, help_text="Solved examples, each {'fields': {name: text}, 'answer': text}."
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["source_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["source", "number"], name="prompt_version_once"),
            models.CheckConstraint(condition=Q(number__gte=1), name="prompt_version_from_1"),
        ]

    def __str__(self) -> str:
        return f"Prompt {self.number} of {self.source}"
