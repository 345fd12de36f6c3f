"""Views of the table of items that are kept under a name."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.models import Project


class SavedView(models.Model):
    """Filters, order and columns of the table, as its address has them. What they may tell is asked each time
    that the table is shown: a view lets nobody see more.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="saved_views")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        help_text="Whose view it is; empty: the project's, for all who see items.",
    )
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=4_000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["project", "owner", "name"], name="saved_view_name_once"),
            models.UniqueConstraint(
                fields=["project", "name"], condition=Q(owner__isnull=True), name="shared_view_name_once"
            ),
            models.CheckConstraint(condition=~Q(name=""), name="saved_view_has_a_name"),
        ]

    def __str__(self) -> str:
        return self.name
