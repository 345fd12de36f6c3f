"""Label Studio knows passwords only: a token goes as one, with any name."""

import base64
import binascii

from rest_framework.authentication import get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from annotation.common.api.limits import WrongTokens
from annotation.models import ApiToken, User
from annotation.people.token_authentication import TokenAuthentication


class PasswordTokenAuthentication(TokenAuthentication):
    """`Authorization: Basic`, whose password is a token, beside `Authorization: Token`."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, given = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"basic":
            return super().authenticate(request)
        try:
            return self.authenticate_credentials(_password(given))
        except AuthenticationFailed:
            if (wait := WrongTokens().count(request)) is not None:
                raise Throttled(wait) from None
            raise


def _password(given: bytes) -> bytes:
    try:
        return base64.b64decode(given, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""
