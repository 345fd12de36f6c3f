"""Who takes part in a project, and what they may do."""

from dataclasses import asdict
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import OldestFirst, ProjectView
from annotation.common.api.conditional import created
from annotation.common.api.schema import PageQuery, page_of
from annotation.common.money import MoneyField, in_full
from annotation.models import Membership
from annotation.people import members
from annotation.people.invitations_api import InvitationBody, invitation_content
from annotation.people.invite_by_name import invite_person
from annotation.people.queries import Work, person
from annotation.review.api import AnnotatorAgreementBody


class MemberQuery(PageQuery):
    role = serializers.ChoiceField(required=False, choices=Membership.Role.choices)


class NewMember(serializers.Serializer[Any]):
    username = serializers.CharField(max_length=150, help_text="Of somebody who has an account.")
    role = serializers.ChoiceField(choices=Membership.Role.choices)


class MemberChanges(serializers.Serializer[Any]):
    """What is left out stays as it is."""

    role = serializers.ChoiceField(required=False, choices=Membership.Role.choices)
    active = serializers.BooleanField(required=False, help_text="Without it they can do nothing here.")
    max_labels = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, max_value=members.LARGEST_LIMIT
    )
    max_per_day = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, max_value=members.LARGEST_LIMIT
    )


class MemberBody(serializers.Serializer[Any]):
    user_id = serializers.IntegerField()
    username = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    role = serializers.ChoiceField(choices=Membership.Role.choices)
    active = serializers.BooleanField()
    max_labels = serializers.IntegerField(allow_null=True, help_text="The most items in all.")
    max_per_day = serializers.IntegerField(allow_null=True, help_text="The most items in a day.")
    created_at = serializers.DateTimeField()


class WorkBody(serializers.Serializer[Any]):
    """What somebody has done here; times in seconds. Null: nothing to tell it from."""

    labels = serializers.IntegerField()
    today = serializers.IntegerField()
    skips = serializers.IntegerField()
    flags = serializers.IntegerField()
    median = serializers.FloatField(allow_null=True, help_text="Time on an item.")
    active = serializers.FloatField(allow_null=True, help_text="Time on all of them.")
    pace = serializers.FloatField(allow_null=True, help_text="Items an hour of that time.")
    last = serializers.DateTimeField(allow_null=True)
    cost = MoneyField(help_text="At the project's price of today.")
    agreement = AnnotatorAgreementBody(allow_null=True)


class MemberDetails(MemberBody):
    work = WorkBody()


class MemberList(ProjectView):
    actions = {"GET": "members.view", "POST": "members.edit"}

    @extend_schema(parameters=[MemberQuery], responses=page_of(MemberBody))
    def get(self, request: Request, slug: str) -> Response:
        """Those who came first at the beginning."""
        asked = self.query(MemberQuery)
        wanted = {"role": asked["role"]} if "role" in asked else {}
        rows = self.access.project.memberships.filter(**wanted).select_related("user")
        return self.paged(OldestFirst(), rows, _content)

    @extend_schema(request=NewMember, responses={201: InvitationBody})
    def post(self, request: Request, slug: str) -> Response:
        """Invite somebody who has an account; as owner or manager by a session only. They take part once they
        have accepted (`POST /api/v1/invitations/<id>/accept/`). For others there are links.
        """
        body = self.parsed(NewMember)
        self.refuse_to_hand_on(body["role"])
        invitation = invite_person(project=self.access.project, actor=self.access.user, **body)
        content = invitation_content(invitation)
        return created(content, "api_invitation", slug=slug, invitation_id=invitation.pk)


class MemberDetail(ProjectView):
    actions = {"GET": "members.view", "PATCH": "members.edit", "DELETE": "members.edit"}

    @extend_schema(responses=MemberDetails)
    def get(self, request: Request, slug: str, user_id: int) -> Response:
        """With what they have done."""
        found = person(self.access.project, self._find(user_id))
        return Response({**_content(found.membership), "work": _work(found.work)})

    @extend_schema(request=MemberChanges, responses=MemberBody)
    def patch(self, request: Request, slug: str, user_id: int) -> Response:
        """Change the role, the limits, or whether they may do anything here. Labels stay. Only by a
        session does somebody become owner or manager, or active as one, or cease to be.
        """
        body, found = self.parsed(MemberChanges), self._find(user_id)
        if "role" in body or "active" in body:
            self.refuse_to_hand_on(body.get("role", found.role), found.role)
        membership = members.change_member(
            project=self.access.project, actor=self.access.user, user=found.user, **body
        )
        return Response(_content(membership))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, user_id: int) -> Response:
        """End the membership; an owner's or manager's by a session only. What they labelled stays, under
        their name.
        """
        found = self._find(user_id)
        self.refuse_to_hand_on(found.role)
        members.remove_member(project=self.access.project, actor=self.access.user, user=found.user)
        return Response(status=204)

    def _find(self, user_id: int) -> Membership:
        found = self.access.project.memberships.select_related("user").filter(user_id=user_id).first()
        if found is None:
            raise Http404
        return found


def _content(membership: Membership) -> dict[str, Any]:
    return {
        "user_id": membership.user_id,
        "username": membership.user.get_username(),
        "name": membership.user.get_full_name(),
        "role": membership.role,
        "active": membership.is_active,
        "max_labels": membership.max_labels,
        "max_per_day": membership.max_per_day,
        "created_at": membership.created_at,
    }


def _work(work: Work) -> dict[str, Any]:
    return {**asdict(work), "cost": in_full(work.cost)}
