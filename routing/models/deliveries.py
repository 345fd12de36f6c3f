from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.models import StoredFile
from routing.models.runs import Run

MEDIA_TYPES = {
    "arrow": "application/vnd.apache.arrow.stream",
    "csv": "text/csv",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "manifest": "application/x-ndjson",
    "md": "text/markdown",
    "parquet": "application/vnd.apache.parquet",
    "tsv": "text/tab-separated-values",
    "xml": "application/xml",
}
"""What the files of a delivery are, by the ends of their names."""


class Delivery(models.Model):
    """The labelled data of a run as files that never change: data, certificate, draw.

    All items of the project; or a part of them: what has changed `since` another delivery, or what `filters`
    find.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="deliveries")
    number = models.PositiveIntegerField()
    rows = models.PositiveIntegerField()
    blanks = models.PositiveIntegerField(help_text="Rows without a label; each names its reason.")
    items = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of the project, then; null of earlier versions, which gave out all."
    )
    # Without a constraint: the rows of a deleted project are removed in no order among themselves.
    since = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, db_constraint=False, related_name="+"
    )
    filters = models.JSONField(
        default=dict, db_default={}, blank=True, help_text="Of the items table, by name."
    )
    given = models.ForeignKey(
        StoredFile,
        null=True,
        blank=True,
        on_delete=models.RESTRICT,
        related_name="+",
        help_text="What was given out of each item (routing.delivery.parts); null of earlier versions.",
    )
    two_people = models.JSONField(
        null=True,
        blank=True,
        help_text="Of a run by people how far two of them differ, as it was then "
        "(routing.runs.people_agreement).",
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["run_id", "-number"]
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="delivery_number_once"),
            models.CheckConstraint(condition=Q(blanks__lte=models.F("rows")), name="delivery_blanks_in_rows"),
        ]

    def __str__(self) -> str:
        return f"Delivery {self.number} of run {self.run_id}"

    @property
    def is_part(self) -> bool:
        return self.since_id is not None or bool(self.filters)


class DeliveryFile(models.Model):
    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=100, help_text="For example labels.csv.")
    file = models.ForeignKey(StoredFile, on_delete=models.RESTRICT, related_name="+")

    class Meta:
        ordering = ["delivery_id", "name"]
        constraints = [models.UniqueConstraint(fields=["delivery", "name"], name="delivery_file_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def media_type(self) -> str:
        """By its name: the stored file has the one of whatever had the same bytes first, as all without rows
        have.
        """
        return MEDIA_TYPES.get(self.name.rpartition(".")[2], self.file.media_type)
