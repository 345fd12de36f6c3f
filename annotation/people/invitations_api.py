"""Invitations of a project: links with which people join by themselves, and those that name somebody."""

from typing import Any, cast

from django.http import Http404
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ApiView, NewestFirst, ProjectView
from annotation.common.api.conditional import created
from annotation.common.api.schema import Nothing, PageQuery, page_of
from annotation.errors import NotAllowedError
from annotation.models import Invitation, Membership, User
from annotation.people import invitations
from annotation.people.invitations import accept, decline, invitations_to, of_projects
from annotation.permissions import LEADERS


class NewInvitation(serializers.Serializer[Any]):
    role = serializers.ChoiceField(choices=Membership.Role.choices)
    max_uses = serializers.IntegerField(
        required=False,
        default=1,
        min_value=1,
        max_value=invitations.MAX_USES,
        help_text="For how many people.",
    )
    days = serializers.IntegerField(
        required=False, default=7, min_value=1, max_value=invitations.MAX_DAYS, help_text="How long it holds."
    )
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)
    email = serializers.EmailField(
        required=False,
        allow_blank=True,
        default="",
        help_text="The link is sent there, too; for one person, and where the server sends mail.",
    )


class InvitationBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    username = serializers.CharField(
        allow_null=True, help_text="Of the person to whom it is addressed; null: whoever has the link."
    )
    role = serializers.ChoiceField(choices=Membership.Role.choices)
    state = serializers.ChoiceField(choices=list(invitations.STATES_IN_WORDS))
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
        invitation, token = invitations.create_invitation(
            project=self.access.project, actor=self.access.user, **body
        )
        link = request.build_absolute_uri(reverse("join_link", args=[token]))
        content = {**invitation_content(invitation), "link": link}
        return created(content, "api_invitation", slug=slug, invitation_id=invitation.pk)


class InvitationDetail(ProjectView):
    actions = {"GET": "members.edit", "DELETE": "members.edit"}

    @extend_schema(responses=InvitationBody)
    def get(self, request: Request, slug: str, invitation_id: int) -> Response:
        """What became of it."""
        return Response(invitation_content(self._find(invitation_id)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, invitation_id: int) -> Response:
        """Take it back; who has joined with it stays."""
        invitations.revoke_invitation(invitation=self._find(invitation_id), actor=self.access.user)
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
        "state": invitations.state_of(invitation),
        "note": invitation.note,
        "uses": invitation.uses,
        "max_uses": invitation.max_uses,
        "expires_at": invitation.expires_at,
        "created_by": invitation.created_by.get_username(),
        "created_at": invitation.created_at,
    }


# --- Addressed to oneself -----------------------------------------------------------------------------------

# A token with a role or for one project has no part in them: what one accepts lies outside of it.


class OwnInvitationBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    project = serializers.CharField(help_text="Its name.")
    role = serializers.ChoiceField(choices=Membership.Role.choices)
    invited_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class JoinedBody(serializers.Serializer[Any]):
    project = serializers.CharField(help_text="As its address names it.")
    role = serializers.ChoiceField(choices=Membership.Role.choices)


class OwnInvitationList(ApiView):
    by_whole_token = frozenset({"GET"})

    @extend_schema(parameters=[PageQuery], responses=page_of(OwnInvitationBody))
    def get(self, request: Request) -> Response:
        """Those that one can accept now, newest first; not by a token with a role or for one project."""
        return self.paged(NewestFirst(), invitations_to(cast(User, request.user)), _content)


class OwnInvitationAccept(ApiView):
    by_whole_token = frozenset({"POST"})

    @extend_schema(request=None, responses=JoinedBody)
    def post(self, request: Request, invitation_id: int) -> Response:
        """Take part from now on; as owner or manager by a session only. 403 where one has to choose a
        password of one's own first, on the page of one's account.
        """
        self.parsed(Nothing)
        user = cast(User, request.user)
        invitation = _own(user, invitation_id)
        if self.token and invitation.role in LEADERS:
            words = _(
                "A token makes nobody owner or manager: it would outlast the token. Accept it at the site."
            )
            raise NotAllowedError(words, code="session_needed")
        membership = accept(invitation=invitation, user=user)
        place = reverse("api_project", kwargs={"slug": membership.project.slug})
        content = {"project": membership.project.slug, "role": membership.role}
        return Response(content, headers={"Location": place})


class OwnInvitationDecline(ApiView):
    by_whole_token = frozenset({"POST"})

    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, invitation_id: int) -> Response:
        """Say no; whoever sent it sees that."""
        self.parsed(Nothing)
        user = cast(User, request.user)
        decline(invitation=_own(user, invitation_id), user=user)
        return Response(status=204)


def _own(user: User, invitation_id: int) -> Invitation:
    found = of_projects().filter(pk=invitation_id, user=user).first()
    if found is None:
        raise Http404
    return found


def _content(invitation: Invitation) -> dict[str, Any]:
    return {
        "id": invitation.pk,
        "project": invitation.project.name,
        "role": invitation.role,
        "invited_by": invitation.created_by.get_username(),
        "created_at": invitation.created_at,
        "expires_at": invitation.expires_at,
    }
