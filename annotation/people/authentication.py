"""Logging in with a token, `Authorization: Token <token>`, or by a session. The settings name it, so it
imports no views.
"""

import binascii
from copy import copy
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _
from knox import auth
from knox.crypto import hash_token
from rest_framework import authentication
from rest_framework.authentication import get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from annotation.common.api.throttling import WrongTokens
from annotation.models import ApiToken, User
from annotation.people.tokens import is_valid, note_use


class TokenAuthentication(auth.TokenAuthentication):
    """Found by its hash alone. A wrong one is told nothing but that, and locks nobody out: whoever shows a
    good one is let in, however many wrong ones came from the same address.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        try:
            found: tuple[User, ApiToken] | None = super().authenticate(request)
        except AuthenticationFailed:
            if (wait := WrongTokens().count(request)) is not None:
                words = _("Too many tokens that do not hold came from this address.")
                raise Throttled(wait, words, code="too_many_wrong_tokens") from None
            raise
        return found

    def authenticate_header(self, request: Request) -> str:
        """What has to stand before the token: Django REST framework's own word, or RFC 6750's, which most
        programs know.
        """
        return "Bearer" if _scheme(request) == b"bearer" else "Token"

    def authenticate_credentials(self, token: bytes) -> tuple[User, ApiToken]:
        try:
            digest = hash_token(token.decode("ascii"))
        except (UnicodeDecodeError, binascii.Error):
            digest = ""
        known = ApiToken.objects.select_related("user", "project").filter(digest=digest).first()
        if known is None or not is_valid(known):
            raise AuthenticationFailed(_("This token does not hold: it is wrong, expired or revoked."))
        note_use(known)
        return known.user, known


class SessionAuthentication(authentication.SessionAuthentication):
    """The token against forged requests comes as the header X-CSRFToken: the body is not looked into for it,
    as views may read it as it comes.
    """

    def enforce_csrf(self, request: Request) -> None:
        bare = copy(request._request)
        bare.POST = QueryDict()
        super().enforce_csrf(bare)  # type: ignore[arg-type]  # it only hands it on to Django


def shows_token(request: Any) -> bool:
    """Whether the request wants to log in by a token; it may be a wrong one."""
    return _scheme(request) in (b"token", b"bearer")


def _scheme(request: Any) -> bytes:
    return bytes(next(iter(get_authorization_header(request).lower().split(None, 1)), b""))
