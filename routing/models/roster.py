"""Who labels in a run, where that is fixed beforehand, and what its expert is asked."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models import Item
from routing.models.runs import Run


class RosterEntry(models.Model):
    """Somebody who labels in a run, with their share of the work: fixed before anything is labelled.

    Which items are whose, `routing.core.reference.roster` says from the run's salt.
    """

    class Role(models.TextChoices):
        ANNOTATOR = "annotator", _("Annotator")
        EXPERT = "expert", _("Expert")

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="roster")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    role = models.CharField(max_length=20, choices=Role, default=Role.ANNOTATOR)
    name = models.CharField(
        max_length=200,
        help_text="In certificates and files: annotator-1, annotator-2, ...; of an expert hers.",
    )
    share = models.CharField(max_length=40, help_text="Of the work of their role: a fraction such as 1/3.")
    left_at = models.DateTimeField(
        null=True, blank=True, help_text="From then on the open items of this person go to the expert."
    )

    class Meta:
        ordering = ["run_id", "role", "name"]
        verbose_name_plural = "roster entries"
        constraints = [
            models.UniqueConstraint(fields=["run", "user"], name="roster_person_once"),
            models.UniqueConstraint(fields=["run", "name"], name="roster_name_once"),
            models.CheckConstraint(condition=Q(role__in=["annotator", "expert"]), name="roster_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of run {self.run_id}"


class ExpertRequest(models.Model):
    """An item that the expert of a run is asked to label, and why: which nobody who labels is told. Or one of
    which it is not decided yet whether she is asked, as the loss that decides it is not computed.
    """

    class Why(models.TextChoices):
        """As `routing.core.reference.sources` calls them."""

        ASKED = "asked", _("People and models differ")
        RECHECK = "recheck", _("Rechecked in any case")
        ROUTED = "routed", _("Sent to the expert")
        SECOND_LOOK = "second_look", _("Person and model differ")
        NO_ANSWER = "no_answer", _("Its person did not answer")
        AUDIT = "audit", _("Audit")
        ALARM = "alarm", _("After an alarm of the audit")
        FINAL = "final", _("Final audit")
        UNDECIDED = "undecided", _("Not decided yet")

    LOOKS = (Why.AUDIT, Why.FINAL)
    """She looks at a label that is delivered, and that stays where she cannot label the item."""

    STILL_OPEN = "('audit', 'undecided')"
    """As SQL: a correction may make another reason of these."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="expert_requests", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+")
    why = models.CharField(max_length=20, choices=Why)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "item"], name="expert_request_once"),
            models.CheckConstraint(
                condition=Q(
                    why__in=[
                        "asked",
                        "recheck",
                        "routed",
                        "second_look",
                        "no_answer",
                        "audit",
                        "alarm",
                        "final",
                        "undecided",
                    ]
                ),
                name="expert_request_why_known",
            ),
        ]
        indexes = [
            models.Index(fields=["run", "item"], condition=Q(why="undecided"), name="undecided_request")
        ]

    def __str__(self) -> str:
        return f"Item {self.item_id} of run {self.run_id} ({self.why})"


class AuditedItem(models.Model):
    """A routed item of a person that the expert labels too if that person's label is to be delivered: marked
    by a hash when the items are routed, and counted in the order of the queue.

    Of a run whose target is the population, an item that was taken in later and that people label too where a
    model's label is to be delivered.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="audited_items", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+")
    place = models.PositiveBigIntegerField(
        help_text="In which order they count: that of its work item, which is random; of later items 0, 1, "
        "..., by a hash within each intake."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "item"], name="audited_item_once"),
        ]
        indexes = [models.Index(fields=["run", "place"], name="audited_item_by_place")]

    def __str__(self) -> str:
        return f"Item {self.item_id} of run {self.run_id}, place {self.place}"
