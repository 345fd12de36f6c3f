"""What the OpenID Connect provider says by itself: that a log-in there is over (Back-Channel Logout 1.0).

It sends a logout token, signed as its ID tokens are. Nothing but such a token says anything here: who sends
it, and from where, is not looked at.
"""

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from annotation.common import audit, once
from annotation.people.members import audit_name
from annotation.people.sessions import end_by_provider, note_ended
from annotation.people.sign_on import FAILURES, SIGNED_BY, provider

log = logging.getLogger(__name__)

MOST_BYTES = 16 * 1024  # of a request
# Seconds by which the clock there may be off, as with ID tokens; and how long after it was made a token is
# taken, whatever it says itself: for so long its number is remembered.
CLOCKS, TAKEN_FOR = 120, 600
EVENT = "http://schemas.openid.net/event/backchannel-logout"
# What a logout token may call itself in its header; one that is for something else says what.
KINDS = (None, "JWT", "logout+jwt", "application/logout+jwt")
# Seconds between two times that keys are asked for anew, whatever strangers send.
KEYS_EVERY = 10.0
# Seconds that one request, and no more, waits while another one asks for them where none are known yet: a
# provider that is away must not hold up every thread of this server.
WAIT_FOR_KEYS = 2.0
# What a token that is none raises besides, wherever in it the fault is.
FAULTS = (*FAILURES, ArithmeticError)
_LONGEST = 255


class RefusedError(Exception):
    """Why a token is none. For the log alone: whoever sent it learns nothing."""


@dataclass(frozen=True)
class LoggedOut:
    """Whom a logout token is about: a person, one of their sessions there, or both."""

    sub: str | None
    sid: str | None
    jti: str
    issued_at: float


def log_out(token: str) -> None:
    """End the sessions that a logout token names. Raises RefusedError where it does not hold, or was used."""
    told = _read(token)
    issuer = settings.HYPAC_OIDC_ISSUER
    # Stored before what has begun is looked for: who comes in meanwhile looks here once they have begun.
    note_ended(issuer=issuer, sub=told.sub, sid=told.sid, issued_at=told.issued_at)
    forgotten_at = datetime.fromtimestamp(told.issued_at + TAKEN_FOR + 1, UTC)
    with transaction.atomic():  # of a token that ends nothing, as something fails, nothing is remembered
        if not once.use("logout", f"{issuer} {told.jti}", until=forgotten_at):
            raise RefusedError("jti was used before")
        for user, count in end_by_provider(issuer=issuer, sub=told.sub, sid=told.sid).items():
            audit.record(
                project=None,
                actor=None,
                action="account.sessions_ended",
                target=audit_name(user),
                data={"user": user.pk, "sessions": count},
            )


def _read(token: str) -> LoggedOut:
    try:
        found = _verified(token)
    except FAULTS as error:
        raise RefusedError(f"{error!r:.200}") from error
    if found.header.get("typ") not in KINDS:
        raise RefusedError("typ")
    return _checked(found.claims)


def _checked(claims: Mapping[str, Any]) -> LoggedOut:
    """What section 2.6 asks of the claims."""
    now = time.time()
    audience, events = claims.get("aud"), claims.get("events")
    named = audience if isinstance(audience, list) else [audience]
    issued_at, ends_at = _moment(claims, "iat"), _moment(claims, "exp")
    sub, sid, jti = _name(claims, "sub"), _name(claims, "sid"), _name(claims, "jti")
    holds = {
        "iss": claims.get("iss") == settings.HYPAC_OIDC_ISSUER,
        "aud": settings.HYPAC_OIDC_CLIENT_ID in named,
        "iat": now - TAKEN_FOR <= issued_at <= now + CLOCKS,
        "exp": ends_at > now - CLOCKS,
        "nbf": "nbf" not in claims or _moment(claims, "nbf") <= now + CLOCKS,
        "events": isinstance(events, dict) and isinstance(events.get(EVENT), dict),
        "nonce": "nonce" not in claims,
        "sub or sid": sub is not None or sid is not None,
        "jti": jti is not None,
    }
    if wrong := [name for name, good in holds.items() if not good]:
        raise RefusedError(", ".join(wrong))
    return LoggedOut(sub=sub, sid=sid, jti=str(jti), issued_at=issued_at)


def _moment(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**40:
        raise RefusedError(name)
    return float(value)


def _name(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    if value is not None and not (isinstance(value, str) and 0 < len(value) <= _LONGEST):
        raise RefusedError(name)
    return value


def _verified(token: str) -> jwt.Token:
    """Signed by a key of the provider; the keys are asked for anew where it names one that is not known."""
    registry = JWSRegistry(algorithms=SIGNED_BY, strict_check_header=False)
    known = provider().server_metadata.get("jwks") or _asks.keys(None)
    try:
        return jwt.decode(token, KeySet.import_key_set(known), registry=registry)
    except InvalidKeyIdError:
        return jwt.decode(token, KeySet.import_key_set(_asks.keys(known)), registry=registry)


class _Asks:
    """How often this process asks for keys because of a token, and how many of its threads wait for them."""

    def __init__(self) -> None:
        self._lock, self._waiting = threading.Lock(), threading.Lock()
        self._asked: tuple[object, float] = (None, 0.0)  # whom, and when

    def keys(self, known: Any) -> Any:
        """Other keys than those that are known. Raises RefusedError where there are none for now."""
        if not self._may_ask(wait=not known):
            raise RefusedError("the provider's keys are being asked for")
        try:
            app = provider()
            found = app.server_metadata.get("jwks")
            if found and found != known:
                return found  # somebody else has asked meanwhile
            whom, when = self._asked
            if whom is app and time.monotonic() - when < KEYS_EVERY:
                raise RefusedError("the provider's keys were asked for a moment ago")
            try:
                return app.fetch_jwk_set(force=True)
            finally:
                self._asked = (app, time.monotonic())
        finally:
            self._lock.release()

    def _may_ask(self, *, wait: bool) -> bool:
        if self._lock.acquire(blocking=False):
            return True
        if not wait or not self._waiting.acquire(blocking=False):
            return False
        try:
            return self._lock.acquire(timeout=WAIT_FOR_KEYS)
        finally:
            self._waiting.release()


_asks = _Asks()
