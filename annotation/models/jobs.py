from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation import failures, words
from annotation.models.projects import Project


class Job(models.Model):
    """A piece of background work: what there is to do, and how far it is."""

    class State(models.TextChoices):
        QUEUED = "queued", _("Waiting")
        RUNNING = "running", _("Running")
        PAUSED = "paused", _("Paused")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="jobs")
    kind = models.CharField(max_length=40, help_text="Name in the registry annotation.jobs.jobs.")
    params = models.JSONField(default=dict, help_text="Ids and plain values only; never secrets.")
    unique_key = models.CharField(
        max_length=100, blank=True, help_text="At most one unfinished job has this key."
    )
    state = models.CharField(max_length=20, choices=State, default=State.QUEUED)
    stage = models.CharField(max_length=100, blank=True, help_text="What it is doing, in English.")
    stage_params = models.JSONField(
        default=dict, db_default={}, blank=True, help_text="What to say so in other languages."
    )
    done = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    claim_token = models.CharField(max_length=32, blank=True, help_text="Of the worker that has it now.")
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    pause_asked = models.BooleanField(
        default=False, help_text="It is to stop once what is under way has been stored."
    )
    error = models.TextField(blank=True, help_text="Why the last attempt failed, in English.")
    error_code = models.CharField(
        max_length=40, blank=True, default="", db_default="", help_text="Name in annotation.failures."
    )
    error_params = models.JSONField(
        default=dict, db_default={}, blank=True, help_text="What its sentence names."
    )
    result = models.JSONField(default=dict)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "unique_key"],
                condition=Q(state__in=["queued", "running", "paused"]) & ~Q(unique_key=""),
                name="job_unfinished_once",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running", "paused", "done", "failed", "cancelled"]),
                name="job_state_known",
            ),
        ]
        indexes = [
            models.Index(
                fields=["state", "heartbeat_at"],
                condition=Q(state__in=["queued", "running"]),
                name="job_unfinished",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} ({self.state})"

    @property
    def error_in_words(self) -> str:
        """Why the last attempt failed, in the language of the reader where that is known; "" if none did."""
        return self.error and (failures.in_words(self.error_code, self.error_params) or self.error)

    @property
    def stage_in_words(self) -> str:
        """What it is doing, in the language of the reader; "" if it says nothing."""
        return words.in_words(self.stage_params, self.stage)


class JobProblem(models.Model):
    """One line or item that a job could not use, with what to do about it. The rest of the job went on."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="problems")
    where = models.CharField(max_length=300, help_text="Line, file or item.")
    line = models.PositiveBigIntegerField(null=True, blank=True, help_text="Of a file of lines.")
    column = models.CharField(max_length=100, blank=True, default="", help_text="Of a table.")
    message = models.TextField(help_text="In English.")
    message_params = models.JSONField(
        default=dict, db_default={}, blank=True, help_text="What to say so in other languages."
    )
    where_params = models.JSONField(default=dict, db_default={}, blank=True, help_text="The same of `where`.")

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["job", "where"], name="job_problem_once")]

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"

    @property
    def message_in_words(self) -> str:
        """In the language of the reader."""
        return words.in_words(self.message_params, self.message)

    @property
    def part(self) -> failures.Part:
        """Place and message as a parameter of a failure."""
        named = {"where": self.where_params or self.where, "message": self.message_params or self.message}
        return {"template": "%(where)s: %(message)s", "named": named}

    @property
    def where_in_words(self) -> str:
        return words.in_words(self.where_params, self.where)
