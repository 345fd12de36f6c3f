from django.conf import settings
from django.db import models
from django.db.models import Q

from routing.models.sources import Source


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
