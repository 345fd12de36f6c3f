"""Invitations of a project: links with which people join by themselves, and those that name somebody."""

from typing import Any

from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import NewestFirst, ProjectView
from annotation.common.api.schema import PageQuery, page_of
from annotation.models import Invitation, Membership
from annotation.people import invitations as service


class NewInvitation(serializers.Serializer[Any]):
    role = serializers.ChoiceField(choices=Membership.Role.choices)
    max_uses = serializers.IntegerField(
        required=False, default=1, min_value=1, max_value=service.MAX_USES, help_text="For how many people."
    )
    days = serializers.IntegerField(
        required=False, default=7, min_value=1, max_value=service.MAX_DAYS, help_text="How long it holds."
    )
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)


class InvitationBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    username = serializers.CharField(
        allow_null=True, help_text="Of the person to whom it is addressed; null: whoever has the link."
    )
    role = serializers.ChoiceField(choices=Membership.Role.choices)
    state = serializers.ChoiceField(choices=list(service.STATES_IN_WORDS))
    note = serializers.CharField(allow_blank=True)
    uses = serializers.IntegerField()
    max_uses = serializers.IntegerField()
    expires_at = serializers.DateTimeField()
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()


class MadeInvitation(InvitationBody):
    link = serializers.URLField(help_text="In this answer and nowhere else.")


class InvitationList(ProjectView):
    answers_secret = frozenset({"POST"})
    actions = {"GET": "members.edit", "POST": "members.edit"}

    @extend_schema(parameters=[PageQuery], responses=page_of(InvitationBody))
    def get(self, request: Request, slug: str) -> Response:
        """Newest first, without their links."""
        rows = self.access.project.invitations.select_related("project", "created_by", "user")
        return self.paged(NewestFirst(), rows, invitation_content)

    @extend_schema(request=NewInvitation, responses={201: MadeInvitation})
    def post(self, request: Request, slug: str) -> Response:
        """Make a link. Whoever opens it joins with their account, or makes one. By a session only for owners
        and managers.
        """
        body = self.parsed(NewInvitation)
        self.refuse_to_hand_on(body["role"])
        invitation, token = service.create_invitation(
            project=self.access.project, actor=self.access.user, **body
        )
        link = request.build_absolute_uri(reverse("join_link", args=[token]))
        return Response({**invitation_content(invitation), "link": link}, status=201)


class InvitationDetail(ProjectView):
    actions = {"GET": "members.edit", "DELETE": "members.edit"}

    @extend_schema(responses=InvitationBody)
    def get(self, request: Request, slug: str, invitation_id: int) -> Response:
        """What became of it."""
        return Response(invitation_content(self._find(invitation_id)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, invitation_id: int) -> Response:
        """Take it back; who has joined with it stays."""
        service.revoke_invitation(invitation=self._find(invitation_id), actor=self.access.user)
        return Response(status=204)

    def _find(self, invitation_id: int) -> Invitation:
        found = self.access.project.invitations.filter(pk=invitation_id).first()
        if found is None:
            raise Http404
        return found


def invitation_content(invitation: Invitation) -> dict[str, Any]:
    return {
        "id": invitation.pk,
        "username": invitation.user.get_username() if invitation.user else None,
        "role": invitation.role,
        "state": service.state_of(invitation),
        "note": invitation.note,
        "uses": invitation.uses,
        "max_uses": invitation.max_uses,
        "expires_at": invitation.expires_at,
        "created_by": invitation.created_by.get_username(),
        "created_at": invitation.created_at,
    }
