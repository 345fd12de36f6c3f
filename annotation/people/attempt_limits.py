"""Limits on log-ins and on whatever else hashes a password, for each asker and in all.

Askers are told apart by who is logged in, else by a cookie of a device on which this very account was logged
in before, else by their address. Known devices have a share of their own in what is allowed in all, and so
have people who are logged in: a flood of strangers, from however many addresses, keeps nobody out who logs in
where they did before. Nor does the lock of django-axes after failures that were not made on that very device.

An attempt that succeeds is given back: a class gets in at once. Of one name only so many log-ins are, so that
an account of one's own is no way to have passwords hashed without end.
"""

import hashlib
import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from ipaddress import IPv6Address
from typing import Any, TypeVar, cast

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.crypto import constant_time_compare
from rest_framework.throttling import SimpleRateThrottle

from annotation.common import attempts
from annotation.common.access import View
from annotation.common.addresses import network_of, network_or_none
from annotation.common.attempts import Limit, ServerBusyError, TooManyAttemptsError
from annotation.models import User

log = logging.getLogger(__name__)

Answer = TypeVar("Answer", bound=HttpResponseBase)

COOKIE = f"{settings.HYPAC_COOKIE_PREFIX}known_device"
SALT = "known_device"
COOKIE_DAYS = 180
# Codes of one account, from wherever. Of a million three let in at a time: whoever has the password and tries
# as often as this allows gets in within a year once in thirty times, and its holder is written to each day.
CODES, CODES_OF_DAY = "10/h", "30/d"
# Seconds between two lines of the log about refusals.
TOLD_EVERY = 10.0
# Under which django-axes counts the failures on a known device, whose column knows addresses alone. Nobody
# sends from there (RFC 6666), and `network_of` of IPv6 ends with 64 zeros, unlike these.
_DEVICES = int(IPv6Address("100::"))


@dataclass(frozen=True)
class _Device:
    """Where `person` has logged in before, and what tells it apart from their other devices."""

    person: int
    kept: str


@dataclass(frozen=True)
class _Counted:
    """An attempt, and in which session it was made."""

    limits: tuple[Limit, ...]
    log_ins: Limit | None
    by_stranger: bool
    session: str
    device: _Device | None


def count(request: HttpRequest, *, username: str = "") -> None:
    """Count an attempt to use or to set a password, before any is hashed. Raises TooManyAttemptsError."""
    device = _known(request, username)
    _count(request, device, _limits(request, device), _log_ins(username))


def count_second_step(request: HttpRequest, user: User) -> None:
    """Count an attempt at the second step, before anything is compared: of whoever asks, and of the account.
    Its known devices have a share of their own. Raises TooManyAttemptsError.
    """
    device = _known(request, user.username)
    whose = f"code:{user.pk}:known" if device else f"code:{user.pk}"
    codes = (Limit(whose, CODES), Limit(f"{whose}:day", CODES_OF_DAY))
    _count(request, device, (*_limits(request, device), *codes), None)


def note_right_password(request: HttpRequest) -> None:
    """The password was right, and somebody is not in yet: this attempt, too, is given back."""
    request.password_was_right = True  # type: ignore[attr-defined]


def _count(
    request: HttpRequest, device: _Device | None, limits: tuple[Limit, ...], log_ins: Limit | None
) -> None:
    try:
        attempts.take(limits, unless_full=[log_ins] if log_ins else [])
    except TooManyAttemptsError as error:
        _refusals.tell(request, limits[0].name, error.wait)
        raise
    counted = _Counted(limits, log_ins, not request.user.is_authenticated, _session(request), device)
    request.counted_attempt = counted  # type: ignore[attr-defined]


class CountingBackend:
    """The first of the backends: it lets nobody in, and counts before the others look at a password."""

    def authenticate(self, request: HttpRequest | None, username: str | None = None, **_other: Any) -> None:
        if request is not None:
            count(request, username=username or "")


class AttemptsMiddleware:
    """Answers 429 to an attempt too many, and 503 where too many are looked at already, which is counted for
    nobody. After a log-in the attempt is given back; then, and with a new password, the device is known.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        counted = _counted(request)
        if counted is None:
            return response
        is_in = _session(request) not in ("", counted.session)
        if counted.by_stranger and (is_in or getattr(request, "password_was_right", False)):
            attempts.give_back(counted.limits)
            if counted.log_ins is not None:
                attempts.note(counted.log_ins)
        if is_in:
            response.set_signed_cookie(
                COOKIE,
                f"{request.session[SESSION_KEY]}:{_mark(_session(request))}:{secrets.token_hex(8)}",
                salt=SALT,
                max_age=COOKIE_DAYS * 86_400,
                httponly=True,
                samesite="Lax",
                secure=settings.SESSION_COOKIE_SECURE,
            )
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, ServerBusyError):
            if (counted := _counted(request)) is not None:
                attempts.give_back(counted.limits)
            return too_many(request, "registration/busy.html", exception.wait, status=503)
        if isinstance(exception, TooManyAttemptsError):
            return too_many(request, "registration/too_many_attempts.html", exception.wait)
        return None


def asker_for_axes(request: HttpRequest) -> str | None:
    """From where django-axes takes a log-in to come, whose lock is that of a name there."""
    counted = _counted(request)
    if counted is None or counted.device is None:
        return network_or_none(request)
    number = int.from_bytes(hashlib.sha256(counted.device.kept.encode()).digest()[:8])
    return str(IPv6Address(_DEVICES + max(1, number)))


def locked(request: HttpRequest, *_of_axes: Any) -> HttpResponse:
    """The answer where django-axes has counted too many wrong passwords of one name from one asker."""
    return too_many(request, "registration/locked.html", int(settings.AXES_COOLOFF_TIME * 3600))


def too_many(request: HttpRequest, template: str, wait: int, *, status: int = 429) -> HttpResponse:
    return with_retry_after(render(request, template, {"seconds": wait}), wait, status=status)


def with_retry_after(response: Answer, wait: int, *, status: int = 429) -> Answer:
    response.status_code = status
    response.headers["Retry-After"] = str(wait)
    return response


def _limits(request: HttpRequest, device: _Device | None) -> tuple[Limit, Limit]:
    rates = settings.HYPAC_LOGIN_RATES
    if request.user.is_authenticated:
        return Limit(f"person:{request.user.pk}", rates["address"]), Limit("all:logged in", rates["all"])
    if device is not None:
        return Limit(f"person:{device.person}", rates["address"]), Limit("all:known", rates["all"])
    return Limit(f"address:{network_of(request)}", rates["address"]), Limit("all:unknown", rates["all"])


def _log_ins(username: str) -> Limit | None:
    """Of whoever succeeds under this name; whoever fails has no part in it, and so keeps nobody out."""
    name = hashlib.sha256(username.encode("utf-8", "replace")).hexdigest()
    return Limit(f"in:{name}", settings.HYPAC_LOGIN_RATES["address"]) if username else None


def _known(request: HttpRequest, username: str) -> _Device | None:
    """The device, where the person of this name has logged in on it before, by the password that they have
    now: a new one ends what stolen devices may do.
    """
    kept = request.get_signed_cookie(COOKIE, "", salt=SALT, max_age=COOKIE_DAYS * 86_400) or ""
    person, _colon, rest = kept.partition(":")
    mark = rest.partition(":")[0]
    if not mark or not username:
        return None
    user = User.objects.filter(pk=int(person), username=username).first()
    known = user and constant_time_compare(mark, _mark(user.get_session_auth_hash()))
    return _Device(int(person), kept) if known else None


def _counted(request: HttpRequest) -> _Counted | None:
    return getattr(request, "counted_attempt", None)


def _session(request: HttpRequest) -> str:
    """Changes with the person who is logged in, and with their password; "" for nobody."""
    return str(request.session.get(HASH_SESSION_KEY, ""))


def _mark(session: str) -> str:
    return hashlib.sha256(session.encode()).hexdigest()[:16]


class _Refusals:
    """A line now and then: one for each would be a flood of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told_at = -TOLD_EVERY
        self._untold = 0

    def tell(self, request: HttpRequest, who: str, wait: int) -> None:
        with self._lock:
            self._untold += 1
            if time.monotonic() - self._told_at < TOLD_EVERY:
                return
            count, self._untold, self._told_at = self._untold, 0, time.monotonic()
        page = request.resolver_match.url_name if request.resolver_match else ""
        words = "Attempts at passwords were refused (%d): the last of %s on the page %s, for %d s."
        log.warning(words, count, who, page, wait)


_refusals = _Refusals()


# --- Pages that are open to everybody -----------------------------------------------------------------------


class LinkThrottle(SimpleRateThrottle):
    """By the address that the server sees: a header that the asker writes would be no limit."""

    scope = "link"
    # A class that joins at once may sit behind one address.
    rate = "300/min"

    def get_cache_key(self, request: Any, view: Any) -> str:
        return self.cache_format % {"scope": self.scope, "ident": network_of(request)}


def throttled(view: View) -> View:
    """Answer 429 to an address that asks for such pages too often, whatever it asks for."""

    @wraps(view)
    def checked(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        throttle = LinkThrottle()
        if throttle.allow_request(cast(Any, request), cast(Any, view)):
            return view(request, **kwargs)
        response = render(request, "registration/slow_down.html", status=429)
        response.headers["Retry-After"] = str(int(throttle.wait() or 60))
        return response

    return checked
