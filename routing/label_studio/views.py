"""The requests that Label Studio makes of an ML backend (label-studio-ml 1.0, Label Studio 1.23)."""

import base64
import binascii
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.authentication import get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ApiView, ProjectView
from annotation.common.api.throttling import WrongTokens
from annotation.errors import InputError
from annotation.models import ApiToken, User
from annotation.people.authentication import SessionAuthentication, TokenAuthentication
from routing.label_studio.label_config import read_label_control
from routing.label_studio.matching import match_items
from routing.label_studio.serving import Answers, answers_of, check_named, predictions

MOST_TASKS = 10_000


class PasswordTokenAuthentication(TokenAuthentication):
    """`Authorization: Basic`, whose password is a token, beside `Authorization: Token`: Label Studio knows
    passwords only, and a token goes as one, with any name.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, given = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"basic":
            return super().authenticate(request)
        try:
            return self.authenticate_credentials(_password(given))
        except AuthenticationFailed:
            if (wait := WrongTokens().count(request)) is not None:
                raise Throttled(wait, code="too_many_wrong_tokens") from None
            raise


def _password(given: bytes) -> bytes:
    try:
        return base64.b64decode(given, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


class LabelStudioView(ProjectView):
    """For whoever may see predictions. Fields that we do not know are not refused: they are another
    program's, and come and go with its versions."""

    authentication_classes = (PasswordTokenAuthentication, SessionAuthentication)
    actions = {"GET": "predictions.view", "POST": "predictions.view"}

    @property
    def named(self) -> dict[str, int | None]:
        """What the address names behind the project."""
        return {"run": self.kwargs.get("number"), "source": self.kwargs.get("source_id")}

    def answers(self) -> Answers:
        return answers_of(self.access.project, self.access, **self.named)

    def checked(self, serializer_class: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        body: Any = self.request.data
        if not isinstance(body, dict):
            raise InputError("The body has to be a JSON object.")
        serializer = serializer_class(data=body)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)


class SetupBody(serializers.Serializer[Any]):
    """Label Studio also sends its address and a user's token, which are not read."""

    schema = serializers.CharField(max_length=200_000)


class PredictBody(serializers.Serializer[Any]):
    tasks = serializers.ListField(child=serializers.JSONField(allow_null=True), max_length=MOST_TASKS)
    label_config = serializers.CharField(max_length=200_000)


@extend_schema(exclude=True)
class Health(LabelStudioView):
    def get(self, request: Request, slug: str, **_: Any) -> Response:
        """Of what is not there Label Studio hears here, before it goes on to its setup."""
        check_named(self.access.project, **self.named)
        return Response({"status": "UP", "model_class": "HyPAC"})


@extend_schema(exclude=True)
class Setup(LabelStudioView):
    """What cannot be served is said here, where Label Studio shows it."""

    def post(self, request: Request, slug: str, **_: Any) -> Response:
        read_label_control(self.access.project, self.checked(SetupBody)["schema"])
        return Response({"model_version": self.answers().version})


@extend_schema(exclude=True)
class Versions(LabelStudioView):
    def get(self, request: Request, slug: str, **_: Any) -> Response:
        return Response({"versions": [self.answers().version]})


@extend_schema(exclude=True)
class Predict(LabelStudioView):
    # Label Studio sends all tasks that were chosen in one request.
    most_bytes = 32 * 2**20

    def post(self, request: Request, slug: str, **_: Any) -> Response:
        body = self.checked(PredictBody)
        asked, answers = read_label_control(self.access.project, body["label_config"]), self.answers()
        items = match_items(self.access.project, body["tasks"])
        return Response({"results": predictions(asked, answers, items), "model_version": answers.version})


@extend_schema(exclude=True)
class Ignored(ApiView):
    """What Label Studio tells an ML backend to learn from. It comes without a password, so that the answer is
    the same whatever the address says; nothing is read of it."""

    authentication_classes = ()
    permission_classes = ()

    def post(self, request: Request, slug: str, **_: Any) -> Response:
        return Response({"status": "ignored", "detail": "Nothing is trained here."})
