"""Projects: what they are, their labels, what becomes of them, and who did what in them."""

from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common import limits
from annotation.common.api.base import ApiView, NewestFirst, ProjectView
from annotation.common.api.conditional import created
from annotation.common.api.problems import PROBLEM
from annotation.common.api.schema import Nothing, PageQuery, Problem, RegisteredField, page_of
from annotation.common.locks import locked_project
from annotation.common.money import MoneyField, in_full
from annotation.errors import NotAllowedError
from annotation.models import MAX_OVERLAP, AuditEvent, Membership, Project, User
from annotation.permissions import Access
from annotation.ports import routing_port
from annotation.projects.choices import MAX_CHOICES
from annotation.projects.lifecycle import (
    archive_project,
    delete_project,
    duplicate_project,
    unarchive_project,
)
from annotation.projects.manage import ChoiceSpec, create_project, set_choices, update_project
from annotation.projects.queries import projects_of
from annotation.task_types import task_type_titles

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The `ETag` of what is to be changed: 412 where somebody changed it since.",
)


class ChangedMeanwhileError(APIException):
    status_code = 412
    default_code = "changed_meanwhile"
    default_detail = "Somebody has changed the project since. Get it again before you change it."


class ChoiceBody(serializers.Serializer[Any]):
    """One label; what is left out is filled in by the service."""

    name = serializers.CharField(max_length=100)
    key = serializers.CharField(required=False, allow_blank=True, max_length=100, trim_whitespace=False)
    hotkey = serializers.CharField(required=False, allow_blank=True, max_length=1)
    color = serializers.CharField(required=False, allow_blank=True, max_length=7)


class ChoicesBody(serializers.Serializer[Any]):
    choices = serializers.ListField(child=ChoiceBody(), max_length=MAX_CHOICES)


class Settings(serializers.Serializer[Any]):
    """What `create_project` and `update_project` take; what is allowed they say themselves."""

    name = serializers.CharField(max_length=200)
    question = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="What is asked about each item: the heading of the page on which people label.",
    )
    guidelines = serializers.CharField(
        required=False, allow_blank=True, max_length=limits.GUIDELINES, help_text="Markdown."
    )
    currency = serializers.CharField(required=False, max_length=12)
    human_cost = serializers.DecimalField(
        required=False, max_digits=14, decimal_places=6, min_value=Decimal(0)
    )
    lease_seconds = serializers.IntegerField(required=False, min_value=30, max_value=7 * 24 * 3600)
    text_format = serializers.ChoiceField(required=False, choices=Project.TextFormat.choices)
    overlap = serializers.IntegerField(required=False, min_value=1, max_value=MAX_OVERLAP)
    overlap_share = serializers.DecimalField(
        required=False, max_digits=5, decimal_places=4, min_value=Decimal(0), max_value=Decimal(1)
    )
    consensus = serializers.ChoiceField(required=False, choices=Project.Consensus.choices)
    loss = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="What counts as an error where a plan names no loss; empty: what suits the task type.",
    )
    loss_params = serializers.DictField(
        required=False,
        help_text='Its parameters; of numbers how far off is right, {"absolute": "0.5", "relative": "0.01"}.',
    )


class NewProject(Settings):
    task_type = serializers.CharField(
        required=False,
        max_length=30,
        help_text="What is asked for each item; single_choice by default. Long texts are compared by meaning "
        "where the server has an embedding model (HYPAC_EMBEDDINGS_URL), else by their words: see `loss`.",
    )
    choices = serializers.ListField(child=ChoiceBody(), required=False, max_length=MAX_CHOICES)
    label_config = serializers.CharField(
        required=False,
        allow_blank=True,
        help_text="A Label Studio configuration (XML): task type, labels and text format in place of these.",
    )


class ProjectChanges(Settings):
    """What is left out stays as it is."""

    name = serializers.CharField(required=False, max_length=200)


class ProjectSummary(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()
    task_type = RegisteredField(registered=task_type_titles)
    created_at = serializers.DateTimeField()
    archived_at = serializers.DateTimeField(allow_null=True)
    role = serializers.ChoiceField(choices=Membership.Role.choices, help_text="One's own.")


class ProjectBody(ProjectSummary):
    question = serializers.CharField(allow_blank=True)
    guidelines = serializers.CharField(allow_blank=True)
    currency = serializers.CharField()
    human_cost = MoneyField(
        allow_null=True, help_text="What one label by a person costs; null for annotators."
    )
    lease_seconds = serializers.IntegerField()
    text_format = serializers.ChoiceField(choices=Project.TextFormat.choices)
    overlap = serializers.IntegerField()
    overlap_share = serializers.DecimalField(max_digits=5, decimal_places=4)
    consensus = serializers.ChoiceField(choices=Project.Consensus.choices)
    loss = serializers.CharField(allow_blank=True)
    loss_params = serializers.DictField()
    choices = ChoiceBody(many=True)
    task_type_lacks = serializers.CharField(
        allow_blank=True, help_text="What this server lacks for runs with its loss; empty for nothing."
    )


class ProjectQuery(PageQuery):
    archived = serializers.BooleanField(required=False, default=False, help_text="Archived ones instead.")
    q = serializers.CharField(required=False, max_length=200, help_text="Part of the name.")


class Copy(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=200)
    with_members = serializers.BooleanField(
        required=False, default=False, help_text="With the members, their roles and limits; owners only."
    )


class Confirmation(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=250, help_text="The name of the project, to confirm.")


class ProjectList(ApiView):
    by_whole_token = frozenset({"POST"})

    @extend_schema(parameters=[ProjectQuery], responses=page_of(ProjectSummary))
    def get(self, request: Request) -> Response:
        """The projects that one takes part in, newest first."""
        asked = self.query(ProjectQuery)
        found = projects_of(
            cast(User, request.user), archived=asked["archived"], search=asked.get("q", "")
        )  # each with its annotated `role`
        if self.token and self.token.project_id:
            found = found.filter(pk=self.token.project_id)
        return self.paged(NewestFirst(), found, lambda project: _summary(project, project.role))

    @extend_schema(request=NewProject, responses={201: ProjectBody})
    def post(self, request: Request) -> Response:
        """Make a project, whose owner one is."""
        body = self.parsed(NewProject)
        choices = [ChoiceSpec(**choice) for choice in body.pop("choices", [])]
        project = create_project(user=cast(User, request.user), choices=choices, **body)
        return _made(project)


class ProjectDetail(ProjectView):
    actions = {"GET": "project.view", "PATCH": "project.edit", "DELETE": "project.delete"}
    compares = frozenset({"PATCH"})

    @extend_schema(responses=ProjectBody)
    def get(self, request: Request, slug: str) -> Response:
        """The project with its labels and one's role."""
        return _tagged(self.access)

    @extend_schema(
        request=ProjectChanges, parameters=[IF_MATCH], responses={200: ProjectBody, (412, PROBLEM): Problem}
    )
    def patch(self, request: Request, slug: str) -> Response:
        """Change some of its settings. How many people are asked holds for runs that start later."""
        body = self.parsed(ProjectChanges)
        wanted = request.headers.get("If-Match", "*").strip()
        with transaction.atomic():
            # One after the other: of two that changed what they both had read, one is told.
            project = locked_project(self.access.project.pk)
            tags = {tag.strip() for tag in wanted.split(",")}
            if wanted != "*" and _tagged(replace(self.access, project=project)).headers["ETag"] not in tags:
                raise ChangedMeanwhileError
            update_project(project=project, user=self.access.user, **body)
            project.refresh_from_db()
        return _tagged(replace(self.access, project=project))

    @extend_schema(parameters=[Confirmation], responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """From now on the project is there for nobody, what is under way in it is cancelled, and all that is
        in it is being removed in the background. Nothing brings it back.
        """
        name = self.query(Confirmation)["name"]
        delete_project(project=self.access.project, actor=self.access.user, name=name)
        return Response(status=204)


class ProjectArchive(ProjectView):
    actions = {"POST": "project.archive"}

    @extend_schema(request=None, responses=ProjectBody)
    def post(self, request: Request, slug: str) -> Response:
        """From now on the project can be looked at, and nothing in it changes."""
        self.parsed(Nothing)
        archive_project(project=self.access.project, actor=self.access.user)
        return _tagged(self.access)


class ProjectUnarchive(ProjectView):
    actions = {"POST": "project.archive"}

    @extend_schema(request=None, responses=ProjectBody)
    def post(self, request: Request, slug: str) -> Response:
        """Take it out of the archive: everything goes on where it stopped."""
        self.parsed(Nothing)
        unarchive_project(project=self.access.project, actor=self.access.user)
        return _tagged(self.access)


class ProjectDuplicate(ProjectView):
    actions = {"POST": "project.duplicate"}
    by_whole_token = frozenset({"POST"})

    @extend_schema(request=Copy, responses={201: ProjectBody})
    def post(self, request: Request, slug: str) -> Response:
        """A new project with the settings, labels, guidelines and sources of this one, without items, runs
        and keys.
        """
        body = self.parsed(Copy)
        if body["with_members"] and not self.access.allows("members.edit"):
            raise NotAllowedError(
                _("Members are taken over by owners only. Leave `with_members` out."), where="with_members"
            )
        copy = duplicate_project(project=self.access.project, actor=self.access.user, **body)
        return _made(copy)


class ProjectChoices(ProjectView):
    actions = {"GET": "project.view", "PUT": "project.edit"}

    @extend_schema(responses=ChoicesBody)
    def get(self, request: Request, slug: str) -> Response:
        """The labels that can be given, in their order; none where the task type has none."""
        return Response({"choices": _choices(self.access.project)})

    @extend_schema(request=ChoicesBody, responses=ChoicesBody)
    def put(self, request: Request, slug: str) -> Response:
        """Make these the labels, in this order. One is recognised by its key, which never changes."""
        specs = [ChoiceSpec(**choice) for choice in self.parsed(ChoicesBody)["choices"]]
        set_choices(project=self.access.project, user=self.access.user, choices=specs)
        return Response({"choices": _choices(self.access.project)})


def _made(project: Project) -> Response:
    """Whoever made it is its owner."""
    project.refresh_from_db()
    content = _details(project, Membership.Role.OWNER, costs=True)
    answer = created(content, "api_project", slug=project.slug)
    answer.headers["ETag"] = _tag(project, content)
    return answer


def _tagged(access: Access) -> Response:
    content = _details(access.project, access.role, costs=access.allows("members.view"))
    return Response(content, headers={"ETag": _tag(access.project, content)})


def _tag(project: Project, content: dict[str, Any]) -> str:
    """Of what is told of a project, and of the settings that are not told to everybody: whoever changes it
    has seen them, or is told. Under the server's key and the project's id: nobody finds out by guessing, nor
    by a project of their own, what they are not shown.
    """
    told = {**content, "human_cost": project.human_cost, "tells_cost": content["human_cost"] is not None}
    value = f"{project.pk}:{DjangoJSONEncoder().encode(told)}"
    return f'"{salted_hmac("annotation.api.project", value, algorithm="sha256").hexdigest()[:32]}"'


def _details(project: Project, role: str, *, costs: bool) -> dict[str, Any]:
    return {
        **_summary(project, role),
        **_settings(project),
        "human_cost": in_full(project.human_cost) if costs else None,
    }


def _settings(project: Project) -> dict[str, Any]:
    return {
        "name": project.name,
        "question": project.question,
        "guidelines": project.guidelines,
        "currency": project.currency,
        "lease_seconds": project.lease_seconds,
        "text_format": project.text_format,
        "overlap": project.overlap,
        "overlap_share": str(project.overlap_share),
        "consensus": project.consensus,
        "loss": project.loss,
        "loss_params": project.loss_params,
        "choices": _choices(project),
        "task_type_lacks": routing_port().loss_lacks(project=project),
    }


def _choices(project: Project) -> list[dict[str, Any]]:
    names = ("key", "name", "hotkey", "color")
    return [dict(choice) for choice in project.choices.values(*names)]


def _summary(project: Project, role: str) -> dict[str, Any]:
    return {
        "slug": project.slug,
        "name": project.name,
        "task_type": project.task_type,
        "created_at": project.created_at,
        "archived_at": project.archived_at,
        "role": role,
    }


# --- The audit trail ----------------------------------------------------------------------------------------


class AuditQuery(PageQuery):
    # No choices: the trail is never changed, and holds what earlier versions called it.
    action = serializers.CharField(
        required=False, max_length=60, help_text="For example run.started; there is no list of them."
    )
    actor = serializers.CharField(required=False, max_length=150, help_text="A username.")
    since = serializers.DateTimeField(required=False)


class AuditBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    action = serializers.CharField()
    target = serializers.CharField(allow_blank=True, help_text="For example run:3.")
    actor = serializers.CharField(allow_null=True)
    data = serializers.JSONField()  # type: ignore[assignment]
    created_at = serializers.DateTimeField()


class AuditPages(NewestFirst):
    long = ("data",)


class AuditList(ProjectView):
    actions = {"GET": "audit.view"}

    @extend_schema(parameters=[AuditQuery], responses=page_of(AuditBody))
    def get(self, request: Request, slug: str) -> Response:
        """Every change in the project, newest first."""
        asked = self.query(AuditQuery)
        conditions = {"action": "action", "actor": "actor__username", "since": "created_at__gte"}
        wanted = {conditions[name]: asked[name] for name in conditions if name in asked}
        events = self.access.project.audit_events.filter(**wanted).select_related("actor")
        return self.paged(AuditPages(), events, _content)


def _content(event: AuditEvent) -> dict[str, Any]:
    return {
        "id": event.pk,
        "action": event.action,
        "target": event.target,
        "actor": event.actor.get_username() if event.actor else None,
        "data": event.data,
        "created_at": event.created_at,
    }
