"""The administration of models and runs, to be looked at: services alone change them.

Whoever can open this site may also label. So nothing of a project with an open run is listed that would tell
what its models predict or which items were drawn.
"""

from typing import Any

from django.contrib import admin
from django.db.models import BigIntegerField, Exists, F, OuterRef, Q
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast
from django.http import HttpRequest

from annotation.common.read_only_admin import ReadOnly, ReadOnlyInline
from routing import models
from routing.common.states import OPEN


class Blind(ReadOnly):
    """Rows of projects in which no run is open and nothing measured waits for its run. `project_path` leads
    from the row to the id of its project.
    """

    project_path = ""

    def get_queryset(self, request: HttpRequest) -> Any:
        project = OuterRef(self.project_path)
        open_runs = models.Run.objects.filter(state__in=OPEN, project=project)
        measured = models.Measurement.objects.filter(
            discarded_at__isnull=True, runs__isnull=True, project=project
        )
        return super().get_queryset(request).filter(~Exists(open_runs), ~Exists(measured))


@admin.register(models.Source)
class SourceAdmin(ReadOnly):
    list_display = ("name", "project", "position", "backend", "cost_per_label", "cost_function")
    list_filter = ("backend", "cost_function")
    search_fields = ("name", "project__slug")
    exclude = ("api_key",)


class RunSourceInline(ReadOnlyInline):
    model = models.RunSource
    fields = ("position", "source", "fingerprint", "cost_per_label", "cost_function", "prices")


class RosterInline(ReadOnlyInline):
    model = models.RosterEntry
    fields = ("name", "role", "user", "share", "left_at")


@admin.register(models.Run)
class RunAdmin(ReadOnly):
    list_display = (
        *("number", "project", "state", "target", "epsilon", "alpha", "m", "pool_size"),
        "created_at",
    )
    list_filter = ("state", "target")
    search_fields = ("project__slug",)
    # The seed would give the draw away, chains and slices the scores.
    exclude = ("entropy", "salt", "chains", "slices")
    inlines = (RunSourceInline, RosterInline)


@admin.register(models.Certificate)
class CertificateAdmin(Blind):
    project_path = "run__project_id"
    list_display = ("sha256", "run", "certified", "created_at")
    through = ("run__project",)
    fields = ("run", "certified", "thresholds", "sha256", "document", "created_at")


@admin.register(models.Prediction)
class PredictionAdmin(Blind):
    project_path = "source__project_id"
    list_display = ("item", "source", "value", "reason", "cost", "cost_note", "created_at")
    search_fields = ("=item__external_id",)


@admin.register(models.ItemScore)
class ItemScoreAdmin(Blind):
    project_path = "prediction__source__project_id"
    list_display = ("prediction", "name", "value", "reason")
    in_names = ("prediction__value",)


@admin.register(models.SourceRevision)
class SourceRevisionAdmin(ReadOnly):
    list_display = ("source", "model", "revision", "created_at")


@admin.register(models.SentAnswer)
class SentAnswerAdmin(Blind):
    project_path = "revision__source__project_id"
    list_display = ("item", "revision", "created_at")
    search_fields = ("=item__external_id",)
    # It is there before any run is, and whoever looks may label in the next one.
    exclude = ("answer",)


@admin.register(models.PoolItem)
class PoolItemAdmin(Blind):
    project_path = "run__project_id"
    list_display = ("run", "position", "item", "u", "v")
    through = ("run__project",)
    search_fields = ("=item__external_id",)


@admin.register(models.Intake)
class IntakeAdmin(ReadOnly):
    list_display = ("run", "number", "items", "people", "created_at", "finished_at", "abandoned_at")
    through = ("run__project",)


@admin.register(models.PilotItem)
class PilotItemAdmin(Blind):
    project_path = "run__project_id"
    list_display = ("run", "order", "item")
    through = ("run__project",)


@admin.register(models.Draw)
class DrawAdmin(ReadOnly):
    list_display = ("run", "m", "n", "created_at")
    through = ("run__project",)


@admin.register(models.DrawItem)
class DrawItemAdmin(Blind):
    project_path = "draw__run__project_id"
    list_display = ("draw", "order", "item", "asked", "probability")


@admin.register(models.Route)
class RouteAdmin(Blind):
    project_path = "run__project_id"
    list_display = ("run", "item", "position")
    through = ("run__project",)
    search_fields = ("=item__external_id",)


@admin.register(models.ExpertRequest)
class ExpertRequestAdmin(Blind):
    project_path = "run__project_id"
    list_display = ("run", "item", "why")
    through = ("run__project",)
    search_fields = ("=item__external_id",)


@admin.register(models.AuditedItem)
class AuditedItemAdmin(Blind):
    """Those that count: of the others nobody may know that they are looked at."""

    project_path = "run__project_id"
    list_display = ("run", "item", "place")
    through = ("run__project",)

    def get_queryset(self, request: HttpRequest) -> Any:
        place, item = (
            Cast(KeyTransform(name, "run__audit_found"), BigIntegerField()) for name in ("place", "item")
        )
        rows = super().get_queryset(request).alias(last_place=place, last_item=item)
        return rows.filter(
            Q(place__lt=F("last_place")) | Q(place=F("last_place"), item_id__lte=F("last_item"))
        )


@admin.register(models.FinalAudit)
class FinalAuditAdmin(ReadOnly):
    list_display = ("run", "size", "sampled", "drawn_at")
    through = ("run__project",)


@admin.register(models.FinalSample)
class FinalSampleAdmin(Blind):
    project_path = "audit__run__project_id"
    list_display = ("audit", "order", "item")
    through = ("audit__run__project",)


@admin.register(models.FinalCertificate)
class FinalCertificateAdmin(ReadOnly):
    list_display = ("audit", "certified", "sha256", "created_at")
    through = ("audit__run__project",)


@admin.register(models.Spend)
class SpendAdmin(ReadOnly):
    list_display = ("project", "run", "source", "by_expert", "stage", "quantity", "amount", "created_at")
    through = ("run__project",)
    list_filter = ("stage",)


class DeliveryFileInline(ReadOnlyInline):
    model = models.DeliveryFile
    fields = ("name", "file")


@admin.register(models.Delivery)
class DeliveryAdmin(ReadOnly):
    list_display = ("run", "number", "rows", "blanks", "items", "since", "created_by", "created_at")
    through = ("run__project",)
    inlines = (DeliveryFileInline,)
