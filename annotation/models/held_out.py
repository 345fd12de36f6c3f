"""Items that are kept out of every run: to practise on, to check people with, or to compare prompts on."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models.items import Item
from annotation.models.projects import Project


class HeldOutItem(models.Model):
    """An item that no run covers as long as it is held out. Its known answer certifies nothing."""

    class Purpose(models.TextChoices):
        PRACTICE = "practice", _("Practice")
        GOLD = "gold", _("Gold")
        PROMPTS = "prompts", _("Comparing prompts")

    FOR_PEOPLE = (Purpose.PRACTICE, Purpose.GOLD)

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="held_out")
    item = models.OneToOneField(Item, on_delete=models.RESTRICT, related_name="held_out")
    purpose = models.CharField(max_length=20, choices=Purpose)
    at_random = models.BooleanField(help_text="It was drawn; else somebody named it.")
    answer = models.JSONField(
        null=True, help_text="The known one, canonical as in labels; null: not given yet, so it is not used."
    )
    explanation = models.TextField(
        blank=True, max_length=2000, help_text="Why, shown after the answer to a practice item."
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(purpose__in=["practice", "gold", "prompts"]), name="held_out_purpose_known"
            ),
        ]
        indexes = [models.Index(fields=["project", "purpose"], name="held_out_by_purpose")]

    def __str__(self) -> str:
        return f"Item {self.item_id}, held out: {self.purpose}"


class PracticeAnswer(models.Model):
    """What somebody answered to a practice item, once; no label."""

    held_out = models.ForeignKey(HeldOutItem, on_delete=models.CASCADE, related_name="answers")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    value = models.JSONField(help_text="Canonical, as in labels.")
    is_right = models.BooleanField(help_text="Whether it was the known answer of that moment.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["held_out", "user"], name="practice_answer_once"),
        ]

    def __str__(self) -> str:
        return f"Answer of {self.user_id} to practice item {self.held_out_id}"
