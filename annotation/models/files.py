from django.db import models

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
