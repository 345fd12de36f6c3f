"""One's own tokens. Only a session makes and revokes them: a token that leaks makes no others."""

from typing import Any, cast

from django.conf import settings
from django.http import Http404
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ApiView
from annotation.common.api.conditional import created
from annotation.common.api.schema import list_of
from annotation.errors import InputError
from annotation.models import ApiToken, Membership, Project, User
from annotation.people.tokens import make_token, revoke_token


class TokenFields(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100, help_text="What it is for.")
    days = serializers.IntegerField(required=False, min_value=1, max_value=settings.HYPAC_TOKEN_MAX_DAYS)
    role = serializers.ChoiceField(choices=Membership.Role.choices, required=False)
    project = serializers.SlugField(required=False, allow_null=True)


class TokenBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    begins_with = serializers.CharField()
    role = serializers.CharField(allow_null=True)
    project = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)


class NewTokenBody(TokenBody):
    token = serializers.CharField(help_text="Shown this once and stored nowhere.")


class TokenList(ApiView):
    by_session = frozenset({"GET", "POST"})
    answers_secret = frozenset({"POST"})

    @extend_schema(responses=list_of(TokenBody))
    def get(self, request: Request) -> Response:
        """One's own tokens; by a session only."""
        tokens = ApiToken.objects.filter(user=cast(User, request.user)).select_related("project")
        return Response({"results": [token_content(token) for token in tokens]})

    @extend_schema(request=TokenFields, responses={201: NewTokenBody})
    def post(self, request: Request) -> Response:
        """Make a token; by a session only."""
        user, body = cast(User, request.user), self.parsed(TokenFields)
        project = None
        if slug := body.pop("project", None):
            project = Project.objects.filter(
                slug=slug, memberships__user=user, memberships__is_active=True
            ).first()
            if project is None:
                raise InputError("You take no part in such a project.", where="project")
        token, secret = make_token(user=user, project=project, **body)
        return created({**token_content(token), "token": secret}, "api_token", token_id=token.pk)


class TokenDetail(ApiView):
    by_session = frozenset({"DELETE"})

    @extend_schema(request=None, responses={204: OpenApiResponse(description="Revoked.")})
    def delete(self, request: Request, token_id: int) -> Response:
        """Revoke a token of one's own; by a session only."""
        user = cast(User, request.user)
        token = ApiToken.objects.filter(user=user, pk=token_id).first()
        if token is None:
            raise Http404
        revoke_token(token=token, actor=user)
        return Response(status=204)


def token_content(token: ApiToken) -> dict[str, Any]:
    return {
        "id": token.pk,
        "name": token.name,
        "begins_with": token.token_key,
        "role": token.role or None,
        "project": token.project.slug if token.project else None,
        "created_at": token.created,
        "expires_at": token.expiry,
        "last_used_at": token.last_used_at,
    }
