"""The administration of people and data. Facts can only be looked at, and leases belong to the queue."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest

from annotation import models

admin.site.register(models.User, UserAdmin)


class AtSize(admin.ModelAdmin):
    """For tables with millions of rows: no count of all rows, no list of all rows to choose from."""

    show_full_result_count = False
    list_per_page = 50
    # What the list does not show and what may be long.
    deferred: tuple[str, ...] = ()

    def get_queryset(self, request: HttpRequest) -> Any:
        queryset = super().get_queryset(request)
        match = request.resolver_match
        is_list = match is not None and (match.url_name or "").endswith("_changelist")
        return queryset.defer(*self.deferred) if is_list and self.deferred else queryset


class ReadOnly(AtSize):
    """Rows that are made, changed and ended by services alone."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ChoiceInline(admin.TabularInline):
    """To be looked at: labels change through the project's settings, which guard what builds on them."""

    model = models.Choice
    extra = 0
    can_delete = False
    readonly_fields = ("key", "name", "hotkey", "color", "position")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(models.Project)
class ProjectAdmin(admin.ModelAdmin):
    list_display = ("name", "slug", "task_type", "created_by", "created_at", "archived_at")
    list_select_related = ("created_by",)
    search_fields = ("name", "slug")
    raw_id_fields = ("created_by",)
    readonly_fields = ("slug", "task_type", "columns", "created_at")
    inlines = (ChoiceInline,)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """A project takes all that is in it along, also what cannot be deleted on its own; too many rows to
        list."""
        return [str(project) for project in objs], {"projects": len(objs)}, set(), []


@admin.register(models.Membership)
class MembershipAdmin(AtSize):
    list_display = ("user", "project", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("user", "project")
    raw_id_fields = ("user", "project")
    search_fields = ("user__username", "project__name")


@admin.register(models.StoredFile)
class StoredFileAdmin(ReadOnly):
    list_display = ("original_name", "project", "media_type", "size", "created_at")
    list_select_related = ("project",)
    search_fields = ("=sha256",)


@admin.register(models.Item)
class ItemAdmin(ReadOnly):
    list_display = ("external_id", "project", "position", "created_at")
    list_select_related = ("project",)
    search_fields = ("=external_id",)
    ordering = ("-id",)
    deferred = ("text", "data")


@admin.register(models.WorkBatch)
class WorkBatchAdmin(ReadOnly):
    list_display = ("id", "project", "priority", "blind", "locked_at", "created_at")
    list_select_related = ("project",)


@admin.register(models.WorkItem)
class WorkItemAdmin(ReadOnly):
    list_display = ("id", "batch_id", "item", "state", "leased_to", "lease_expires_at", "finished_at")
    list_filter = ("state",)
    list_select_related = ("item", "leased_to")
    search_fields = ("=item__external_id",)
    ordering = ("-id",)
    exclude = ("lease_token",)
    deferred = ("item__text", "item__data")


@admin.register(models.Label)
class LabelAdmin(ReadOnly):
    list_display = ("id", "item", "annotator", "value", "version", "created_at")
    list_select_related = ("item", "annotator")
    search_fields = ("=item__external_id", "=annotator__username")
    ordering = ("-id",)
    deferred = ("item__text", "item__data")


@admin.register(models.Skip)
class SkipAdmin(ReadOnly):
    list_display = ("id", "work_item_id", "user", "reason", "created_at", "cleared_at")
    list_filter = ("reason",)
    list_select_related = ("user",)
    ordering = ("-id",)


@admin.register(models.Draft)
class DraftAdmin(ReadOnly):
    list_display = ("id", "work_item_id", "user", "created_at")
    list_select_related = ("user",)
    ordering = ("-id",)


@admin.register(models.Job)
class JobAdmin(ReadOnly):
    list_display = ("id", "kind", "project", "state", "stage", "done", "total", "attempts", "heartbeat_at")
    list_filter = ("state", "kind")
    list_select_related = ("project",)
    exclude = ("claim_token",)


@admin.register(models.JobProblem)
class JobProblemAdmin(ReadOnly):
    list_display = ("job_id", "where", "message")
    search_fields = ("=job__id",)
    ordering = ("-id",)


@admin.register(models.AuditEvent)
class AuditEventAdmin(ReadOnly):
    list_display = ("created_at", "project", "actor", "action", "target")
    list_select_related = ("project", "actor")
    search_fields = ("=action", "=target")
