"""The administration of people and data. Facts can only be looked at, and leases belong to the queue.

Whoever can open this site may also label. So neither imported columns are shown, which may hold what a model
said, nor anything of a calibration set that nobody may see yet.
"""

from typing import Any, cast

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from annotation import models
from annotation.common.read_only_admin import ReadOnly, ReadOnlyInline
from annotation.errors import HypacError
from annotation.people import accounts_views, attempt_limits
from annotation.people.members import add_member
from annotation.people.own_passwords import require_chosen
from annotation.people.password_links import note_set_by
from annotation.people.second_factor.change import note
from annotation.ports import routing_port
from annotation.projects.lifecycle import delete_project
from annotation.task_types import TASK_TYPES


class PersonAdmin(UserAdmin):
    """Passwords are counted before they are hashed, and those set for somebody else are not their own."""

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.method == "POST":
            attempt_limits.count(request)
        return super().add_view(request, *args, **kwargs)

    def user_change_password(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.method == "POST":
            attempt_limits.count(request)
        return super().user_change_password(request, *args, **kwargs)

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """Called once the form is saved, before the session is told of a new password."""
        if isinstance(form, AdminPasswordChangeForm):
            note_set_by(user=cast(models.User, form.user), actor=cast(models.User, request.user))
        return super().construct_change_message(request, form, formsets, add)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """The first password is known to whoever makes the account."""
        if not change:
            obj.password_chosen_at = None
        elif "email" in form.changed_data:
            note(
                models.User.objects.get(pk=obj.pk),
                "account.email_changed",
                by=cast(models.User, request.user),
            )
        super().save_model(request, obj, form, change)


admin.site.register(models.User, PersonAdmin)


def _own_password(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    """On the page of one's account, which counts attempts and knows whose choice a password is."""
    return redirect("password")


admin.site.login = accounts_views.admin_login  # type: ignore[assignment, method-assign]
admin.site.password_change = _own_password  # type: ignore[assignment, method-assign]


class Blind(ReadOnly):
    """Rows of work. `batch_path` leads from the row to the id of its batch; hidden batches are left out.
    `item_path` leads to the item of rows that say what people said of it.
    """

    ordering = ("-id",)
    batch_path = ""
    item_path = ""

    def get_queryset(self, request: HttpRequest) -> Any:
        unlocked = models.WorkBatch.objects.filter(blind=True, locked_at__isnull=True)
        projects = models.Project.objects.filter(pk__in=unlocked.values("project"))
        hidden = {batch for project in projects for batch in routing_port().hidden_batches(project=project)}
        rows = super().get_queryset(request).exclude(**{f"{self.batch_path}__in": hidden})
        for project in projects if self.item_path else ():
            rows = rows.exclude(routing_port().hidden_items(project=project, item_path=self.item_path))
        return rows


class ChoiceInline(ReadOnlyInline):
    """Labels change through the project's settings, which guard what builds on them."""

    model = models.Choice
    fields = ("key", "name", "hotkey", "color", "position")


@admin.register(models.Project)
class ProjectAdmin(admin.ModelAdmin):
    """To be put away or deleted; a project is made and changed on its own pages."""

    list_display = ("name", "slug", "asked", "created_by", "created_at", "archived_at", "deleting_at")
    list_select_related = ("created_by",)
    search_fields = ("name", "slug")
    readonly_fields = (
        *("name", "slug", "asked", "guidelines", "columns", "currency", "human_cost", "lease_seconds"),
        *("text_format", "overlap", "overlap_share", "consensus"),
        *("practice_first", "gold_share", "gold_bar", "gold_last"),
        *("created_by", "created_at", "deleting_at"),
    )
    exclude = ("task_type",)
    inlines = (ChoiceInline,)

    @admin.display(description="task type", ordering="task_type")
    def asked(self, project: models.Project) -> str:
        return str(TASK_TYPES[project.task_type].title)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """A project takes all that is in it along, also what cannot be deleted on its own; too many rows to
        list."""
        return [str(project) for project in objs], {"projects": len(objs)}, set(), []

    def delete_model(self, request: HttpRequest, obj: models.Project) -> None:
        """As on its own pages: a job removes what is in it."""
        delete_project(project=obj, actor=cast(models.User, request.user), name=obj.name)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        for project in queryset:
            self.delete_model(request, project)


class MembershipForm(forms.ModelForm):
    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if (user := data.get("user")) and (project := data.get("project")):
            try:
                require_chosen(user=user, project=project)
            except HypacError as error:
                self.add_error("user", error.message)
        return data


@admin.register(models.Membership)
class MembershipAdmin(ReadOnly):
    """Whoever runs the server can let somebody in, themselves included; the project's owners do the rest."""

    form = MembershipForm
    list_display = ("user", "project", "role", "is_active", "created_at")
    fields = ("project", "user", "role")
    list_filter = ("role",)
    raw_id_fields = ("user", "project")
    search_fields = ("user__username", "project__name")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if db_field.name == "user":
            kwargs["queryset"] = models.User.objects.filter(is_active=True)
        if db_field.name == "project":
            kwargs["queryset"] = models.Project.objects.filter(deleting_at__isnull=True)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Through the service, so that the audit trail of the project says who let them in."""
        actor = cast(models.User, request.user)
        saved = add_member(project=obj.project, actor=actor, username=obj.user.username, role=obj.role)
        obj.pk, obj.created_at = saved.pk, saved.created_at


@admin.register(models.StoredFile)
class StoredFileAdmin(ReadOnly):
    list_display = ("original_name", "project", "media_type", "size", "created_at")
    search_fields = ("=sha256",)


@admin.register(models.Item)
class ItemAdmin(ReadOnly):
    list_display = ("external_id", "project", "position", "created_at")
    search_fields = ("=external_id",)
    ordering = ("-id",)
    exclude = ("data", "typed")


@admin.register(models.WorkBatch)
class WorkBatchAdmin(ReadOnly):
    list_display = ("id", "project", "priority", "blind", "locked_at", "created_at")


@admin.register(models.WorkItem)
class WorkItemAdmin(Blind):
    batch_path = "batch"
    list_display = ("id", "batch_id", "item", "state", "leased_to", "lease_expires_at", "finished_at")
    list_filter = ("state",)
    search_fields = ("=item__external_id",)
    exclude = ("lease_token",)


@admin.register(models.Label)
class LabelAdmin(Blind):
    batch_path = "work_item__batch"
    item_path = "item"
    exclude = ("suggestion",)  # it says what a model answered
    list_display = ("id", "item", "annotator", "value", "version", "created_at")
    search_fields = ("=item__external_id", "=annotator__username")


@admin.register(models.ShownSuggestion)
class ShownSuggestionAdmin(Blind):
    batch_path = "work_item__batch"
    item_path = "work_item__item"
    exclude = ("value", "source")  # what a model answered
    list_display = ("id", "work_item_id", "user", "created_at")


@admin.register(models.Settlement)
class SettlementAdmin(Blind):
    batch_path = "batch"
    item_path = "item"
    list_display = ("id", "item", "value", "method", "decided_by", "version", "created_at")


@admin.register(models.ReplacedChoice)
class ReplacedChoiceAdmin(ReadOnly):
    list_display = ("id", "project", "key", "name", "into", "created_by", "created_at")


@admin.register(models.HeldOutItem)
class HeldOutItemAdmin(ReadOnly):
    # Whoever helps to run the server may label, too.
    exclude = ("answer", "explanation")
    list_display = ("id", "project", "item", "purpose", "at_random", "created_by", "created_at")
    list_filter = ("purpose",)


@admin.register(models.PracticeAnswer)
class PracticeAnswerAdmin(ReadOnly):
    list_display = ("id", "held_out_id", "user", "is_right", "created_at")


@admin.register(models.Comment)
class CommentAdmin(Blind):
    batch_path = "work_item__batch"
    item_path = "work_item__item"
    list_display = ("id", "item", "author", "is_flag", "created_at", "resolved_at")
    list_filter = ("is_flag",)


@admin.register(models.Invitation)
class InvitationAdmin(ReadOnly):
    list_display = (
        *("id", "project", "user", "role", "uses", "max_uses"),
        *("expires_at", "revoked_at", "declined_at"),
    )
    exclude = ("token_hash",)


@admin.register(models.Skip)
class SkipAdmin(Blind):
    batch_path = "work_item__batch"
    item_path = "work_item__item"
    list_display = ("id", "work_item_id", "user", "reason", "created_at", "cleared_at")
    list_filter = ("reason",)


@admin.register(models.Draft)
class DraftAdmin(Blind):
    batch_path = "work_item__batch"
    item_path = "work_item__item"
    list_display = ("id", "work_item_id", "user", "created_at")


@admin.register(models.Job)
class JobAdmin(ReadOnly):
    list_display = ("id", "kind", "project", "state", "stage", "done", "total", "attempts", "heartbeat_at")
    list_filter = ("state", "kind")
    exclude = ("claim_token", "params")
    readonly_fields = ("asked",)

    @admin.display(description="params")
    def asked(self, job: models.Job) -> dict[str, Any]:
        """Without the words of a file of answers, which are quoted while no run is open alone."""
        return {name: value for name, value in job.params.items() if name != "words"}


@admin.register(models.JobProblem)
class JobProblemAdmin(ReadOnly):
    list_display = ("job_id", "where", "message")
    search_fields = ("=job__id",)
    ordering = ("-id",)


@admin.register(models.AuditEvent)
class AuditEventAdmin(ReadOnly):
    list_display = ("created_at", "project", "actor", "action", "target")
    search_fields = ("=action", "=target")


@admin.register(models.Webhook)
class WebhookAdmin(ReadOnly):
    """Neither its secrets nor the whole address, whose path may be one."""

    list_display = ("id", "project", "is_active", "failing_since", "created_by", "created_at")
    exclude = ("url", "secret", "old_secret")


@admin.register(models.WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnly):
    list_display = ("id", "event", "state", "attempts", "status", "created_at")
    list_filter = ("state",)
    exclude = ("payload",)


@admin.register(models.Mail)
class MailAdmin(ReadOnly):
    list_display = ("id", "kind", "to", "state", "attempts", "created_at")
    list_filter = ("state",)
    exclude = ("secret",)


@admin.register(models.Connection)
class ConnectionAdmin(ReadOnly):
    """Without its keys."""

    list_display = ("id", "project", "name", "kind", "endpoint", "bucket", "created_by", "created_at")
    exclude = ("access_key", "secret")


@admin.register(models.BucketSync)
class BucketSyncAdmin(ReadOnly):
    list_display = ("id", "connection", "takes", "every_minutes", "next_at", "looked_at", "writes_since")


@admin.register(models.BucketFile)
class BucketFileAdmin(ReadOnly):
    list_display = ("id", "sync", "key", "size", "state", "changed_at")
    list_filter = ("state",)


@admin.register(models.ApiToken)
class ApiTokenAdmin(ReadOnly):
    list_display = ("id", "token_key", "user", "name", "role", "project", "expiry", "last_used_at")
    exclude = ("digest", "password_stamp")


@admin.register(models.AttemptBucket)
class AttemptBucketAdmin(ReadOnly):
    list_display = ("name", "empty_at")


@admin.register(models.KeyedRequest)
class KeyedRequestAdmin(ReadOnly):
    """Without the answer, which holds what only its asker may see."""

    list_display = ("id", "user", "address", "status", "created_at")
    exclude = ("body", "headers")


@admin.register(models.UsedOnce)
class UsedOnceAdmin(ReadOnly):
    list_display = ("name", "until")


@admin.register(models.AgreedSettings)
class AgreedSettingsAdmin(ReadOnly):
    list_display = ("id", "noted_at")


for _model, _secrets in (
    (models.SignOnSession, ("session_key",)),
    (models.AuthenticatorApp, ("secret", "last_step")),
    (models.Passkey, ("credential", "handle")),
    (models.RecoveryCode, ("code_hash",)),
):
    admin.site.register(_model, type("", (ReadOnly,), {"list_display": ("id", "user"), "exclude": _secrets}))
