"""The administration of models and runs, to be looked at: services alone change them.

Whoever can open this site may also label. So nothing of a project with an open run is listed that would tell
what its models predict or which items were drawn.
"""

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef
from django.http import HttpRequest

from annotation.admin import ReadOnly
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
    list_select_related = ("project",)
    list_filter = ("backend", "cost_function")
    search_fields = ("name", "project__slug")
    exclude = ("api_key",)


class RunSourceInline(admin.TabularInline):
    model = models.RunSource
    extra = 0
    can_delete = False
    fields = ("position", "source", "fingerprint", "cost_per_label", "cost_function", "prices")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(models.Run)
class RunAdmin(ReadOnly):
    list_display = (
        "number",
        "project",
        "state",
        "target",
        "epsilon",
        "alpha",
        "m",
        "pool_size",
        "created_at",
    )
    list_select_related = ("project",)
    list_filter = ("state", "target")
    search_fields = ("project__slug",)
    # The seed would give the draw away, chains and slices the scores.
    exclude = ("entropy", "salt", "chains", "slices")
    deferred = ("chains", "slices")
    inlines = (RunSourceInline,)


@admin.register(models.Certificate)
class CertificateAdmin(Blind):
    project_path = "run__project_id"
    list_display = ("sha256", "run", "certified", "created_at")
    list_select_related = ("run__project",)
    fields = ("run", "certified", "thresholds", "sha256", "document", "created_at")
    deferred = ("document", "draw_lines", "figures")


@admin.register(models.Prediction)
class PredictionAdmin(Blind):
    project_path = "source__project_id"
    list_display = ("item", "source", "value", "reason", "cost", "cost_note", "created_at")
    list_select_related = ("item", "source")
    search_fields = ("=item__external_id",)
    deferred = ("raw",)


@admin.register(models.ItemScore)
class ItemScoreAdmin(Blind):
    project_path = "prediction__source__project_id"
    list_display = ("prediction", "name", "value", "reason")
    list_select_related = ("prediction",)


@admin.register(models.SourceRevision)
class SourceRevisionAdmin(ReadOnly):
    list_display = ("source", "model", "revision", "created_at")
    list_select_related = ("source",)


@admin.register(models.SentAnswer)
class SentAnswerAdmin(Blind):
    project_path = "revision__source__project_id"
    list_display = ("item", "revision", "created_at")
    list_select_related = ("item", "revision")
    search_fields = ("=item__external_id",)
    # It is there before any run is, and whoever looks may label in the next one.
    exclude = ("answer",)
    deferred = ("answer",)


@admin.register(models.PoolItem)
class PoolItemAdmin(Blind):
    project_path = "run__project_id"
    list_display = ("run", "position", "item", "u", "v")
    list_select_related = ("run__project", "item")
    search_fields = ("=item__external_id",)


@admin.register(models.PilotItem)
class PilotItemAdmin(Blind):
    project_path = "run__project_id"
    list_display = ("run", "order", "item")
    list_select_related = ("run__project", "item")


@admin.register(models.Draw)
class DrawAdmin(ReadOnly):
    list_display = ("run", "m", "n", "created_at")
    list_select_related = ("run__project",)


@admin.register(models.DrawItem)
class DrawItemAdmin(Blind):
    project_path = "draw__run__project_id"
    list_display = ("draw", "order", "item", "asked", "probability")
    list_select_related = ("draw", "item")


@admin.register(models.Route)
class RouteAdmin(Blind):
    project_path = "run__project_id"
    list_display = ("run", "item", "position")
    list_select_related = ("run__project", "item")
    search_fields = ("=item__external_id",)


@admin.register(models.Spend)
class SpendAdmin(ReadOnly):
    list_display = ("project", "run", "source", "stage", "quantity", "amount", "created_at")
    list_select_related = ("project", "run__project", "source")
    list_filter = ("stage",)


class DeliveryFileInline(admin.TabularInline):
    model = models.DeliveryFile
    extra = 0
    can_delete = False
    fields = ("name", "file")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(models.Delivery)
class DeliveryAdmin(ReadOnly):
    list_display = ("run", "number", "rows", "blanks", "items", "since", "created_by", "created_at")
    list_select_related = ("run__project", "created_by")
    inlines = (DeliveryFileInline,)
