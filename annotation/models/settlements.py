from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models.items import Item
from annotation.models.work import WorkBatch


class Settlement(models.Model):
    """The label of record of an item that a batch asks several people about (statistics: "truth").

    Items that one person is asked about have none: that person's label is the one of record. A change is a
    new row that names the one it replaces.
    """

    class Method(models.TextChoices):
        MAJORITY = "majority", _("More than half gave it")
        ADJUDICATED = "adjudicated", _("A reviewer decided")
        DAWID_SKENE = "dawid_skene", _("Dawid-Skene")

    batch = models.ForeignKey(WorkBatch, on_delete=models.CASCADE, related_name="settlements")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="settlements")
    value = models.JSONField(
        null=True, help_text="Canonical, as in labels; null: the reasons for it are gone, open again."
    )
    method = models.CharField(max_length=20, choices=Method)
    version = models.PositiveIntegerField(default=1)
    supersedes = models.OneToOneField(
        "self", null=True, blank=True, on_delete=models.RESTRICT, related_name="superseded_by"
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    comment = models.TextField(blank=True, max_length=2000)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["batch", "item", "version"], name="settlement_version_once"),
            models.CheckConstraint(
                condition=Q(version=1, supersedes__isnull=True) | Q(version__gt=1, supersedes__isnull=False),
                name="settlement_version_and_predecessor",
            ),
            models.CheckConstraint(
                condition=Q(method="adjudicated", decided_by__isnull=False)
                | Q(method__in=["majority", "dawid_skene"]),
                name="settlement_method_and_person",
            ),
        ]
        indexes = [models.Index(fields=["item"], name="settlement_by_item")]

    def __str__(self) -> str:
        return f"{self.value} (version {self.version})"
