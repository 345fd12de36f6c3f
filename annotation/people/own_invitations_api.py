"""Invitations that are addressed to oneself. A token with a role or for one project has no part in them: what
one accepts lies outside of it.
"""

from typing import Any, cast

from django.http import Http404
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ApiView, NewestFirst
from annotation.common.api.schema import Nothing, PageQuery, page_of
from annotation.errors import NotAllowedError
from annotation.models import Invitation, Membership, User
from annotation.people.account_invitations import decline, invitations_to
from annotation.people.invitations import accept, of_projects
from annotation.permissions import LEADERS


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
            raise NotAllowedError(
                _("A token makes nobody owner or manager: it would outlast the token. Accept it at the site.")
            )
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
