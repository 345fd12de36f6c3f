from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.models.items import Item
from annotation.models.work import WorkItem


class Comment(models.Model):
    """What somebody wrote about an item; a flag asks a reviewer to look at it."""

    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="comments")
    work_item = models.ForeignKey(
        WorkItem,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="comments",
        help_text="Written while labelling this: hidden from others for as long as its batch is.",
    )
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    text = models.TextField(blank=True, max_length=2000)
    is_flag = models.BooleanField(default=False)
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(condition=Q(is_flag=True) | ~Q(text=""), name="comment_flag_or_text"),
            models.CheckConstraint(
                condition=Q(resolved_at__isnull=True, resolved_by__isnull=True)
                | Q(is_flag=True, resolved_at__isnull=False, resolved_by__isnull=False),
                name="comment_resolution_whole",
            ),
        ]
        indexes = [
            models.Index(
                fields=["item"],
                condition=Q(is_flag=True, resolved_at__isnull=True),
                name="comment_open_flags",
            )
        ]

    def __str__(self) -> str:
        return f"Comment on {self.item_id}"
