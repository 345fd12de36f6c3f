from django.db import models
from django.db.models import Q

from annotation.models.projects import Project


class StoredFile(models.Model):
    """A file in `default_storage`, named there by the SHA-256 of its content."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="files")
    sha256 = models.CharField(max_length=64)
    storage_name = models.CharField(
        max_length=200, help_text="Name in the storage, made by us, never by a user."
    )
    original_name = models.CharField(max_length=255)
    media_type = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField(help_text="Bytes.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "sha256"], name="stored_file_once_per_project"),
        ]

    def __str__(self) -> str:
        return self.original_name


class Item(models.Model):
    """One thing to label: a text or an image, with the columns it came with; without either once it was
    erased.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="items")
    external_id = models.CharField(max_length=255, help_text="Its name in the imported data.")
    position = models.PositiveBigIntegerField(help_text="Order of import, from 0.")
    text = models.TextField(blank=True)
    fields = models.JSONField(
        default=list,
        blank=True,
        help_text="Where several columns are shown: [name, value] of each, in their order. `text` has all "
        "of them one below the other.",
    )
    image = models.ForeignKey(StoredFile, null=True, blank=True, on_delete=models.RESTRICT, related_name="+")
    data = models.JSONField(
        default=dict, help_text="The original columns, values as strings; Project.columns has their order."
    )
    typed = models.JSONField(
        null=True,
        blank=True,
        help_text="Of the columns whose cell in the file was no text the value itself: a number, a truth "
        "value, null, a list or an object. Null where all were texts.",
    )
    content_hash = models.CharField(
        max_length=64, help_text="SHA-256 of what people see; equal content is reported."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    erased_at = models.DateTimeField(
        null=True, editable=False, help_text="When its content was erased; name, labels and hash stay."
    )

    class Meta:
        ordering = ["project_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["project", "external_id"], name="item_external_id_once"),
            models.UniqueConstraint(fields=["project", "position"], name="item_position_once"),
            models.CheckConstraint(condition=~Q(external_id=""), name="item_external_id_not_empty"),
            models.CheckConstraint(
                condition=Q(erased_at__isnull=True, image__isnull=False, text="")
                | (Q(erased_at__isnull=True, image__isnull=True) & ~Q(text=""))
                | Q(erased_at__isnull=False, image__isnull=True, text=""),
                name="item_text_or_image",
            ),
        ]
        indexes = [
            models.Index(fields=["project", "content_hash"], name="item_content"),
            models.Index(fields=["project"], condition=Q(erased_at__isnull=False), name="item_erased"),
        ]

    def __str__(self) -> str:
        return self.external_id

    @property
    def short_name(self) -> str:
        """Its name for whoever labels it: without folders, which may say what is in them."""
        return self.external_id.rstrip("/").rsplit("/", 1)[-1] or self.external_id
