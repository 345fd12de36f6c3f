from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.models import Project
from routing.models.sources import FrozenSource


class PromptCandidate(FrozenSource):
    """A way to ask a source, compared with others on the development items before one is put in force.

    It pays for its answers from a budget of its own.
    """

    # What the database refuses to change once it is there (routing.apps).
    FIXED_COLUMNS = (
        *("project_id", "source_id", "number", "system", "template", "examples", "params"),
        *("created_by_id", "created_at"),
    )

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="prompt_candidates")
    number = models.PositiveIntegerField(help_text="1, 2, ... within the source.")
    system = models.TextField(blank=True, help_text="System message; empty for none.")
    template = models.TextField(help_text="User message with placeholders such as {{ text }}.")
    examples = models.JSONField(
        default=list, help_text="Solved examples, each {'fields': {name: text}, 'answer': text}."
    )
    params = models.JSONField(
        default=dict, help_text="How the model writes; all other params are those of the source."
    )
    fingerprint = models.CharField(
        max_length=64, blank=True, default="", help_text="Of its answers; empty before it was run."
    )
    asked_as = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="Of how it was asked when it was run, to compare without asking its server.",
    )
    budget = models.DecimalField(
        max_digits=20,
        decimal_places=6,
        null=True,
        blank=True,
        help_text="The most that its answers may cost; empty: no limit.",
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["source_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["source", "number"], name="prompt_candidate_once"),
            models.CheckConstraint(condition=Q(number__gte=1), name="prompt_candidate_from_1"),
            models.CheckConstraint(
                condition=Q(budget__isnull=True) | Q(budget__gte=0),
                name="prompt_candidate_budget_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"Candidate {self.number} of {self.source}"

    @property
    def budget_owner(self) -> "PromptCandidate":
        return self
