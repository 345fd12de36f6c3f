from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation import failures
from annotation.models.projects import Project


class Webhook(models.Model):
    """An address that is told what happens in a project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=2000)
    description = models.CharField(max_length=200, blank=True)
    events = models.JSONField(default=list, help_text="Names of annotation.common.events.EVENTS.")
    shape = models.CharField(
        max_length=20, default="standard", db_default="standard", help_text="Of annotation.common.shapes."
    )
    secret = models.TextField(
        help_text="Encrypted (annotation.outside.secrets); shown when it is made, and never again."
    )
    old_secret = models.TextField(
        blank=True, help_text="The one before, encrypted; it signs, too, for a while."
    )
    old_secret_until = models.DateTimeField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    off_reason = models.CharField(
        max_length=300, blank=True, help_text="Why it was switched off by itself, in English."
    )
    off_reason_part = models.JSONField(
        default=dict, db_default={}, blank=True, help_text="What to say so in other languages."
    )
    failing_since = models.DateTimeField(
        null=True, blank=True, help_text="Since then no message has been taken, and one was refused."
    )
    not_before = models.DateTimeField(
        null=True, blank=True, help_text="An address that does not answer is left in peace until then."
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project_id", "id"]

    def __str__(self) -> str:
        return self.url

    @property
    def off_reason_in_words(self) -> str:
        """In the language of the reader."""
        return failures.part_in_words(self.off_reason_part, self.off_reason)


class WebhookDelivery(models.Model):
    """One message to one address: what is to be sent, and what became of it. Stored in the transaction of
    what it tells; only annotation.outside.webhooks.sending changes it afterwards.
    """

    class State(models.TextChoices):
        PENDING = "pending", _("Waiting")
        DELIVERED = "delivered", _("Delivered")
        FAILED = "failed", _("Failed")

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    message_id = models.CharField(max_length=64, help_text="The same for every attempt, and every address.")
    event = models.CharField(max_length=60)
    payload = models.TextField(help_text="JSON, byte by byte as it is sent and signed.")
    state = models.CharField(max_length=20, choices=State, default=State.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    due_since = models.DateTimeField(help_text="When it happened, or was asked for again.")
    next_attempt_at = models.DateTimeField(
        null=True, blank=True, help_text="During an attempt: when the worker that makes it is given up."
    )
    status = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Of the last answer.")
    error = models.CharField(
        max_length=300, blank=True, help_text="Of the last attempt; never what was sent back. In English."
    )
    error_part = models.JSONField(
        default=dict, db_default={}, blank=True, help_text="What to say so in other languages."
    )
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "webhook deliveries"
        constraints = [
            models.UniqueConstraint(fields=["webhook", "message_id"], name="webhook_message_once"),
            models.CheckConstraint(
                condition=Q(state__in=["pending", "delivered", "failed"]), name="webhook_delivery_state_known"
            ),
            models.CheckConstraint(
                condition=Q(state="pending", next_attempt_at__isnull=False)
                | (~Q(state="pending") & Q(next_attempt_at__isnull=True)),
                name="webhook_delivery_waits_for_a_time",
            ),
        ]
        indexes = [
            models.Index(
                fields=["webhook", "next_attempt_at"],
                condition=Q(state="pending"),
                name="webhook_delivery_due",
            ),
            models.Index(fields=["created_at"], name="webhook_delivery_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.event} ({self.state})"

    @property
    def error_in_words(self) -> str:
        """In the language of the reader; "" where there is none."""
        return failures.part_in_words(self.error_part, self.error)


class Connection(models.Model):
    """A bucket of an S3-compatible store, or a data set on the Hugging Face Hub, from which a project takes
    files, or to which it delivers them. The files of the site itself lie elsewhere
    (annotation.outside.object_store).

    Of a data set `bucket` is its name, owner/name, `region` its branch, `secret` a token, if any; the Hub is
    that of the site (HYPAC_HUB_ENDPOINT), and the other columns are empty.
    """

    class Kind(models.TextChoices):
        S3 = "s3", _("Bucket")
        HUB = "hub", _("Data set on the Hugging Face Hub")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="connections")
    name = models.CharField(_("Name"), max_length=100)
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.S3, db_default=Kind.S3)
    endpoint = models.CharField(_("Address of the store"), max_length=500, blank=True)
    bucket = models.CharField(_("Bucket"), max_length=200)
    prefix = models.CharField(_("Folder"), max_length=500, blank=True, help_text="Ends with / or is empty.")
    region = models.CharField(_("Region"), max_length=60, default="us-east-1")
    path_style = models.BooleanField(
        default=True, help_text="The bucket in the path of addresses, not in the name of their host."
    )
    access_key = models.CharField(_("Access key"), max_length=200, blank=True)
    secret = models.TextField(
        blank=True, help_text="Secret key, encrypted (annotation.outside.secrets); it is never shown."
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project_id", "name"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="connection_name_once"),
            models.CheckConstraint(condition=Q(kind__in=["s3", "hub"]), name="connection_kind_known"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_hub(self) -> bool:
        return self.kind == self.Kind.HUB


class BucketSync(models.Model):
    """What is done with a connection's bucket by itself: new files of a folder are imported every so often,
    and deliveries are written into another folder. The services are annotation.imports.bucket_sync.
    """

    class Every(models.IntegerChoices):
        FIVE_MINUTES = 5, _("5 minutes")
        QUARTER = 15, _("15 minutes")
        HOUR = 60, _("hour")
        SIX_HOURS = 360, _("6 hours")
        DAY = 1440, _("day")

    connection = models.OneToOneField(Connection, on_delete=models.CASCADE, related_name="sync")
    takes = models.BooleanField(default=False, help_text="Whether new files are imported.")
    take_from = models.CharField(
        max_length=500, blank=True, help_text="Below the connection's folder; ends with / or is empty."
    )
    every_minutes = models.PositiveIntegerField(choices=Every, default=Every.HOUR)
    columns = models.JSONField(
        default=dict, help_text="How each file is imported (annotation.imports.bucket_sync.HowToImport)."
    )
    next_at = models.DateTimeField(null=True, blank=True, help_text="When it is looked for new files next.")
    looked_at = models.DateTimeField(null=True, blank=True, help_text="When that was last done to its end.")
    writes_since = models.DateTimeField(
        null=True, blank=True, help_text="Deliveries made from then on are written; null for none."
    )
    write_to = models.CharField(
        max_length=500, blank=True, help_text="Below the connection's folder; ends with / or is empty."
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="In whose name it is done: who saved it last.",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(takes=True, next_at__isnull=False) | Q(takes=False, next_at__isnull=True),
                name="bucket_sync_waits_for_a_time",
            )
        ]
        indexes = [
            models.Index(fields=["next_at"], condition=Q(next_at__isnull=False), name="bucket_sync_due")
        ]

    def __str__(self) -> str:
        return f"Synchronisation of {self.connection_id}"


class BucketFile(models.Model):
    """A file that was found in a bucket which is synchronised, as it was then: each is imported once."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waits for its import")
        TAKEN = "taken", _("Imported")
        REFUSED = "refused", _("Cannot be imported")

    sync = models.ForeignKey(BucketSync, on_delete=models.CASCADE, related_name="files")
    key = models.CharField(max_length=1024, help_text="The whole name of the object.")
    etag = models.CharField(max_length=200, blank=True, help_text="As the store tells contents apart.")
    size = models.PositiveBigIntegerField()
    state = models.CharField(max_length=20, choices=State, default=State.WAITING)
    job = models.ForeignKey(
        "annotation.Job",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The import of its content.",
    )
    error = models.TextField(blank=True, help_text="Why it cannot be imported, in English.")
    error_part = models.JSONField(default=dict, blank=True, help_text="What to say so in other languages.")
    changed_at = models.DateTimeField(help_text="When it was found, or got its state.")

    class Meta:
        ordering = ["-changed_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["sync", "key"], name="bucket_file_once"),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "taken", "refused"]), name="bucket_file_state_known"
            ),
        ]
        indexes = [
            models.Index(fields=["sync", "state"], name="bucket_file_by_state"),
            models.Index(fields=["sync", "-changed_at", "-id"], name="bucket_file_newest"),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def error_in_words(self) -> str:
        """In the language of the reader; "" where there is none."""
        return failures.part_in_words(self.error_part, self.error)


class Mail(models.Model):
    """One letter to one person, stored in the transaction of what it tells, or asked for by them; its words
    are made when it is sent (annotation.mail.letters). Only annotation.mail.sending changes it afterwards.
    """

    class State(models.TextChoices):
        PENDING = "pending", _("Waiting")
        SENDING = "sending", _("Being sent")
        SENT = "sent", _("Sent")
        FAILED = "failed", _("Failed")
        DROPPED = "dropped", _("Not wanted any more")

    kind = models.CharField(max_length=60)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="letters"
    )
    to = models.EmailField()
    language = models.CharField(max_length=10, blank=True)
    data = models.JSONField(default=dict)
    secret = models.TextField(blank=True, help_text="Encrypted; emptied once it was sent, or given up.")
    key = models.CharField(  # noqa: DJ001 - unique
        max_length=200, unique=True, null=True, help_text="Of one key there is one letter."
    )
    state = models.CharField(max_length=20, choices=State, default=State.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(
        null=True, blank=True, help_text="While it is being sent: when its worker is given up."
    )
    error = models.CharField(max_length=300, blank=True, help_text="Of the last attempt, in English.")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "mail"
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["pending", "sending"], next_attempt_at__isnull=False)
                | Q(state__in=["sent", "failed", "dropped"], next_attempt_at__isnull=True),
                name="mail_waits_for_a_time",
            )
        ]
        indexes = [
            models.Index(
                fields=["next_attempt_at"], condition=Q(state__in=["pending", "sending"]), name="mail_due"
            ),
            models.Index(fields=["created_at"], name="mail_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} ({self.state})"
