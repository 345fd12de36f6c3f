from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.models import StoredFile
from routing.models.runs import Run


class Delivery(models.Model):
    """The labelled data of a run as files that never change: data, certificate, draw."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="deliveries")
    number = models.PositiveIntegerField()
    rows = models.PositiveIntegerField()
    blanks = models.PositiveIntegerField(help_text="Rows without a label; each names its reason.")
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


class DeliveryFile(models.Model):
    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=100, help_text="For example labels.csv.")
    file = models.ForeignKey(StoredFile, on_delete=models.RESTRICT, related_name="+")

    class Meta:
        ordering = ["delivery_id", "name"]
        constraints = [models.UniqueConstraint(fields=["delivery", "name"], name="delivery_file_once")]

    def __str__(self) -> str:
        return self.name
