"""Who asks."""

from typing import Any, cast

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ApiView
from annotation.models import User
from annotation.people.tokens_api import TokenBody, token_content
from annotation.projects.manage import may_make_projects


class MeBody(serializers.Serializer[Any]):
    username = serializers.CharField()
    makes_projects = serializers.BooleanField(help_text="Whether this request could make a project.")
    token = TokenBody(allow_null=True, help_text="The one that is shown; null in a session.")


class Me(ApiView):
    @extend_schema(responses=MeBody)
    def get(self, request: Request) -> Response:
        """Who one is, and by which token."""
        user, token = cast(User, request.user), self.token
        return Response(
            {
                "username": user.username,
                "makes_projects": may_make_projects(user) and not (token and token.is_limited),
                "token": token and token_content(token),
            }
        )
