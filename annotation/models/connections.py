from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from annotation.models.projects import Project


class Connection(models.Model):
    """A bucket of an S3-compatible store from which a project takes files, or to which it delivers them. The
    files of the site itself lie elsewhere (annotation.outside.object_store).
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="connections")
    name = models.CharField(_("Name"), max_length=100)
    endpoint = models.CharField(_("Address of the store"), max_length=500)
    bucket = models.CharField(_("Bucket"), max_length=63)
    prefix = models.CharField(_("Folder"), max_length=500, blank=True, help_text="Ends with / or is empty.")
    region = models.CharField(_("Region"), max_length=60, default="us-east-1")
    path_style = models.BooleanField(
        default=True, help_text="The bucket in the path of addresses, not in the name of their host."
    )
    access_key = models.CharField(_("Access key"), max_length=200)
    secret = models.TextField(
        help_text="Secret key, encrypted (annotation.outside.secrets); it is never shown."
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project_id", "name"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="connection_name_once")]

    def __str__(self) -> str:
        return self.name
