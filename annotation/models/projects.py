from decimal import Decimal

from django.conf import settings
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

HEX_COLOR = RegexValidator(r"^#[0-9a-fA-F]{6}\Z", _("A colour is written as # and six hexadecimal digits."))
CHOICE_KEY = RegexValidator(
    r"^[^\x00-\x1f\x7f]{1,100}\Z",
    _("A key is 1 to 100 characters, without line breaks or control characters."),
)

MAX_OVERLAP = 9
# What may be long. Lists of rows that each bring their project along leave it out.
LONG_COLUMNS = ("guidelines", "guidelines_html", "label_config", "columns")


class Project(models.Model):
    """One labelling task with its items, people, sources and runs."""

    class TextFormat(models.TextChoices):
        PLAIN = "plain", _("Plain text")
        MARKDOWN = "markdown", _("Markdown")

    class Consensus(models.TextChoices):
        MAJORITY = "majority", _("More than half, else a reviewer decides")
        DAWID_SKENE = "dawid_skene", _("Dawid-Skene where more than half do not agree")

    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=80, unique=True)
    task_type = models.CharField(
        max_length=30,
        default="single_choice",
        help_text="A name in annotation.task_types, whatever that has: no migration for a new one.",
    )
    question = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text=_("What is asked about each item, as the heading of the page on which people label."),
    )
    guidelines = models.TextField(blank=True, help_text=_("Markdown, shown beside every item."))
    # Here and below: a process of the version before goes on making projects beside a migrated database.
    guidelines_html = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="What pages show of them, made when they are stored; empty: the text itself.",
    )
    guidelines_version = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="annotation.common.markdown.VERSION by which that was made.",
    )
    currency = models.CharField(max_length=12, default="USD")
    loss = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="What counts as an error where a plan says nothing else; empty: what suits the task type.",
    )
    loss_params = models.JSONField(default=dict, db_default={}, blank=True)
    human_cost = models.DecimalField(
        max_digits=14,
        decimal_places=6,
        default=Decimal(1),
        validators=[MinValueValidator(Decimal(0))],
        help_text=_("What one label by a person costs."),
    )
    lease_seconds = models.PositiveIntegerField(
        default=900, help_text=_("How long an item stays with the person who opened it.")
    )
    practice_first = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Annotators answer the practice items before they are given any other.",
    )
    gold_share = models.FloatField(
        default=0.0,
        db_default=0.0,
        help_text="Of what annotators are given, the share of gold items; 0: none.",
    )
    gold_bar = models.FloatField(
        default=0.8, db_default=0.8, help_text="Whoever has a smaller share of them right is paused."
    )
    gold_last = models.PositiveSmallIntegerField(
        default=20, db_default=20, help_text="Of so many of their latest answers to gold items."
    )
    text_format = models.CharField(
        max_length=20,
        choices=TextFormat,
        default=TextFormat.PLAIN,
        help_text=_("How the texts of the items are shown."),
    )
    overlap = models.PositiveSmallIntegerField(
        default=1, help_text=_("How many people label an item of which several are asked.")
    )
    overlap_share = models.DecimalField(
        max_digits=5,
        decimal_places=4,
        default=Decimal(1),
        help_text=_("On which share of the items so many people are asked; on the others one is."),
    )
    consensus = models.CharField(
        max_length=20,
        choices=Consensus,
        default=Consensus.MAJORITY,
        help_text=_("What settles an item outside the calibration set on which people differ."),
    )
    columns = models.JSONField(
        default=list,
        blank=True,
        help_text=_("Names of all imported columns, in their order; a JSON object in a database has none."),
    )
    label_config = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text=_("The Label Studio configuration that the project was made from."),
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    deleting_at = models.DateTimeField(
        null=True, editable=False, help_text=_("From then on it is there for nobody, and a job removes it.")
    )

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(human_cost__gte=0), name="project_human_cost_not_negative"),
            models.CheckConstraint(condition=Q(lease_seconds__gte=30), name="project_lease_at_least_30_s"),
            models.CheckConstraint(
                condition=Q(overlap__gte=1, overlap__lte=MAX_OVERLAP), name="project_overlap_range"
            ),
            models.CheckConstraint(
                condition=Q(overlap_share__gt=0, overlap_share__lte=1), name="project_overlap_share_range"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """What one person may do in one project; annotation.permissions has the table role x action."""

    class Role(models.TextChoices):
        OWNER = "owner", _("Owner")
        MANAGER = "manager", _("Manager")
        REVIEWER = "reviewer", _("Reviewer")
        ANNOTATOR = "annotator", _("Annotator")
        VIEWER = "viewer", _("Viewer")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=20, choices=Role)
    is_active = models.BooleanField(
        default=True, help_text=_("Somebody who is not active may do nothing here; what they did stays.")
    )
    max_labels = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("The most items that this person may label in all.")
    )
    max_per_day = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("The most items that this person may label in a day.")
    )
    paused_at = models.DateTimeField(
        null=True, blank=True, help_text="From then on they are given no more items: too few gold ones right."
    )
    checked_since = models.DateTimeField(
        null=True, blank=True, help_text="Their answers to gold items count from then on; empty: all do."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project_id", "user_id"]
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="membership_once"),
            models.CheckConstraint(
                condition=Q(role__in=["owner", "manager", "reviewer", "annotator", "viewer"]),
                name="membership_role_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.project} ({self.role})"


class Choice(models.Model):
    """One label that can be given. The key is what is stored in labels and never changes; the name may."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="choices")
    key = models.CharField(max_length=100, validators=[CHOICE_KEY])
    name = models.CharField(max_length=100)
    hotkey = models.CharField(max_length=1, blank=True)
    color = models.CharField(max_length=7, default="#5b6b7b", validators=[HEX_COLOR])
    position = models.PositiveIntegerField()

    class Meta:
        ordering = ["project_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["project", "key"], name="choice_key_once"),
            models.UniqueConstraint(fields=["project", "position"], name="choice_position_once"),
            models.UniqueConstraint(
                fields=["project", "hotkey"], condition=~Q(hotkey=""), name="choice_hotkey_once"
            ),
            models.CheckConstraint(condition=~Q(key=""), name="choice_key_not_empty"),
        ]

    def __str__(self) -> str:
        return self.name


class ReplacedChoice(models.Model):
    """A label that is given no more: merged into another one, or split into several. Labels, answers and
    certificates keep its key; what it means now is read from here (annotation.labelling.replaced_labels).
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="replaced_choices")
    key = models.CharField(max_length=100, validators=[CHOICE_KEY])
    name = models.CharField(max_length=100)
    into = models.JSONField(
        help_text="Keys: of one that it was merged into, of several that it was split into."
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project_id", "id"]
        constraints = [
            models.UniqueConstraint(fields=["project", "key"], name="replaced_choice_key_once"),
            models.CheckConstraint(condition=~Q(key=""), name="replaced_choice_key_not_empty"),
        ]

    def __str__(self) -> str:
        return self.name
