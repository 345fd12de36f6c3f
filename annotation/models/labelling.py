from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models.items import Item
from annotation.models.jobs import Job
from annotation.models.projects import Project


class WorkBatch(models.Model):
    """Items that people are asked to label for one purpose.

    Routing makes one for the calibration set of a run and one for the items that its thresholds send to
    people; to those who label they all look the same.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="work_batches")
    blind = models.BooleanField(help_text="Whoever has seen model output of these items may not label them.")
    priority = models.PositiveSmallIntegerField(default=10, help_text="Lower goes first.")
    overlap = models.PositiveSmallIntegerField(
        default=1, help_text="The most people who are asked about one of its items."
    )
    rostered = models.BooleanField(
        default=False, db_default=False, help_text="Each of its work items is for one person alone."
    )
    third_decides = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Two people label an item, and a third decides where they differ, as the roster says.",
    )
    for_round = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Its answers are compared and discussed; they are nobody's labels of record.",
    )
    for_gold = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Its answers are compared with known ones; they are nobody's labels of record.",
    )
    suggests = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whoever labels one of its items is shown what a model answered, where one did.",
    )
    locked_at = models.DateTimeField(
        null=True, blank=True, help_text="From then on a correction makes what rests on these labels invalid."
    )
    withdrawn_at = models.DateTimeField(
        null=True, blank=True, help_text="From then on nobody is asked any more, nor to settle what differs."
    )
    imported_by = models.ForeignKey(
        Job,
        null=True,
        blank=True,
        on_delete=models.RESTRICT,
        related_name="label_batches",
        help_text="The import whose file had these labels: nobody here was asked for them.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "work batches"
        constraints = [
            models.CheckConstraint(
                condition=Q(suggests=False)
                | Q(blind=False, overlap=1, third_decides=False, for_round=False, for_gold=False),
                name="work_batch_suggests_to_nobody_blind",
            ),
        ]

    def __str__(self) -> str:
        return f"Batch {self.pk} of {self.project}"


class WorkItem(models.Model):
    """A request for one label of one item, and its lease. Only annotation.labelling changes these rows."""

    class State(models.TextChoices):
        OPEN = "open", _("Waiting")
        LEASED = "leased", _("With somebody")
        DONE = "done", _("Labelled")
        UNLABELABLE = "unlabelable", _("Nobody can label it")
        WITHDRAWN = "withdrawn", _("Withdrawn")

    UNFINISHED = (State.OPEN, State.LEASED)
    """States in which somebody is still asked."""

    batch = models.ForeignKey(WorkBatch, on_delete=models.CASCADE, related_name="work_items")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="work_items")
    slot = models.PositiveSmallIntegerField(
        default=0, help_text="0 for the first person asked, 1 for the second, ..."
    )
    priority = models.PositiveSmallIntegerField(
        default=10, help_text="Copied from the batch for the queue's index."
    )
    order = models.PositiveBigIntegerField(
        help_text="Place within the priority; random, so that it says nothing."
    )
    state = models.CharField(max_length=20, choices=State, default=State.OPEN)
    assigned_to = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="By the roster: nobody else is asked. Empty: whoever comes first.",
    )
    leased_to = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="leases"
    )
    lease_token = models.CharField(max_length=32, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["batch", "item", "slot"], name="work_item_once"),
            # Two people never hold one item, whichever batches ask for it, unless it has two slots.
            models.UniqueConstraint(
                fields=["item", "slot"], condition=Q(state="leased"), name="work_item_one_lease_per_item"
            ),
            models.CheckConstraint(
                condition=(
                    Q(state="leased", leased_to__isnull=False, lease_expires_at__isnull=False)
                    & ~Q(lease_token="")
                )
                | (
                    ~Q(state="leased")
                    & Q(leased_to__isnull=True, lease_expires_at__isnull=True, lease_token="")
                ),
                name="work_item_lease_whole",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["open", "leased", "done", "unlabelable", "withdrawn"]),
                name="work_item_state_known",
            ),
        ]
        indexes = [
            models.Index(fields=["batch", "state", "priority", "order"], name="work_item_queue"),
            models.Index(
                fields=["batch", "assigned_to", "state", "priority", "order"],
                condition=Q(assigned_to__isnull=False),
                name="work_item_by_person",
            ),
            models.Index(fields=["leased_to"], condition=Q(state="leased"), name="work_item_leases"),
            models.Index(fields=["item", "state"], name="work_item_by_item"),
        ]

    def __str__(self) -> str:
        return f"Work item {self.pk} ({self.state})"


class Skip(models.Model):
    """Somebody could not or would not label a work item. It goes to another person."""

    class Reason(models.TextChoices):
        UNCLEAR = "unclear", _("Cannot tell")
        BROKEN = "broken", _("Cannot be shown or read")
        NO_LABEL_FITS = "no_label_fits", _("No label fits")
        OTHER = "other", _("Something else")

    work_item = models.ForeignKey(WorkItem, on_delete=models.CASCADE, related_name="skips")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.CharField(max_length=20, choices=Reason)
    comment = models.TextField(blank=True, max_length=2000)
    created_at = models.DateTimeField(auto_now_add=True)
    cleared_at = models.DateTimeField(
        null=True, blank=True, help_text="Asked again, or taken back by the person."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["work_item", "user"],
                condition=Q(cleared_at__isnull=True),
                name="skip_once_per_person",
            ),
        ]

    def __str__(self) -> str:
        return f"Skip of work item {self.work_item_id} ({self.reason})"


class Draft(models.Model):
    """An answer that came after its lease had passed to somebody else, kept for its author."""

    work_item = models.ForeignKey(WorkItem, on_delete=models.CASCADE, related_name="drafts")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    value = models.JSONField()
    comment = models.TextField(blank=True, max_length=2000)
    created_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["work_item", "user"], name="draft_once")]

    def __str__(self) -> str:
        return f"Draft for work item {self.work_item_id}"


class ShownSuggestion(models.Model):
    """What a model answered, as somebody was shown it with a work item before they answered."""

    work_item = models.ForeignKey(WorkItem, on_delete=models.CASCADE, related_name="suggestions")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    value = models.JSONField(help_text="Canonical, as in labels.")
    source = models.CharField(max_length=100, help_text="Name of the model.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["work_item", "user"], name="suggestion_shown_once"),
        ]

    def __str__(self) -> str:
        return f"{self.value} by {self.source} for work item {self.work_item_id}"


class Label(models.Model):
    """One answer by one person. A correction is a new row that names the one it replaces."""

    class Suggestion(models.TextChoices):
        """What the answer is beside what a model answered; of most nothing was shown."""

        NONE = "", _("None was shown")
        TAKEN = "taken", _("The same")
        OTHER = "other", _("Another one")

    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="labels")
    work_item = models.ForeignKey(WorkItem, on_delete=models.CASCADE, related_name="labels")
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="labels")
    value = models.JSONField(help_text="Canonical: for a single choice the key of the choice.")
    version = models.PositiveIntegerField(default=1)
    supersedes = models.OneToOneField(
        "self", null=True, blank=True, on_delete=models.RESTRICT, related_name="superseded_by"
    )
    idempotency_key = models.CharField(max_length=64)
    comment = models.TextField(blank=True, max_length=2000)
    lead_time_ms = models.PositiveIntegerField(
        null=True, blank=True, help_text="Time on the item as the page measured it."
    )
    suggestion = models.CharField(
        max_length=10,
        choices=Suggestion,
        blank=True,
        default=Suggestion.NONE,
        db_default="",
        help_text="Whether the person was shown what a model answered, and gave the same answer.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["annotator", "idempotency_key"], name="label_submitted_once"),
            models.UniqueConstraint(
                fields=["work_item"],
                condition=Q(supersedes__isnull=True),
                name="label_first_once_per_work_item",
            ),
            models.UniqueConstraint(fields=["work_item", "version"], name="label_version_once"),
            models.CheckConstraint(
                condition=Q(version=1, supersedes__isnull=True) | Q(version__gt=1, supersedes__isnull=False),
                name="label_version_and_predecessor",
            ),
            models.CheckConstraint(
                condition=Q(suggestion__in=["", "taken", "other"]), name="label_suggestion_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["lead_time_ms", "id"], condition=Q(lead_time_ms__isnull=False), name="label_by_time"
            ),
            models.Index(fields=["item"], condition=~Q(comment=""), name="label_with_comment"),
        ]

    def __str__(self) -> str:
        return f"{self.value} (version {self.version})"


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
