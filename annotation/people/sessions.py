"""Ending sessions: all of a person's but the one at hand, and those that the log-in provider ends."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth import update_session_auth_hash
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from annotation.common import audit, once
from annotation.models import SignOnSession, User
from annotation.people.members import audit_name

_LONGEST = 255
# As long as a log-in may be under way here after the provider let somebody in: the way back, and ten minutes
# for a second step. Log-ins that ended there are remembered for so long.
LONGEST_LOG_IN = timedelta(minutes=15)


def end_all(user: User) -> None:
    """End every session of this person, those half-way through a log-in too, and forget their devices. Tokens
    of the API go on.
    """
    User.objects.filter(pk=user.pk).update(sessions_ended=F("sessions_ended") + 1)
    user.refresh_from_db(fields=["sessions_ended"])


def keep_current(request: HttpRequest, user: User) -> None:
    """Go on with the session at hand, under a new name, after `end_all` of this very `user`."""
    before = request.session.session_key
    update_session_auth_hash(request, user)
    # The provider ends it by what is remembered of it.
    SignOnSession.objects.filter(session_key=before).update(session_key=request.session.session_key)


def end_others(request: HttpRequest, user: User) -> None:
    """End all of this person's but the one at hand."""
    with transaction.atomic():
        end_all(user)
        audit.record(
            project=None,
            actor=user,
            action="account.other_sessions_ended",
            target=audit_name(user),
            data={"user": user.pk},
        )
    keep_current(request, user)


def note_sign_on(request: HttpRequest, user: User, *, sid: object, ends_at: datetime) -> None:
    """Remember which session began at the provider, and by which name it knows that."""
    request.session.save()  # which names one that is new
    known = sid if isinstance(sid, str) and len(sid) <= _LONGEST else ""
    SignOnSession.objects.update_or_create(
        session_key=request.session.session_key, defaults={"user": user, "sid": known, "ends_at": ends_at}
    )


def end_by_provider(*, issuer: str, sub: str | None, sid: str | None) -> dict[User, int]:
    """End what the provider says is over: of `sid` that session, of `sub` alone all of theirs; and of both
    also theirs of which nothing tells whether they are that session. Returns how many ended, by person.
    """
    begun = SignOnSession.objects.filter(user__sign_on__startswith=f"{issuer} ")
    if sub is not None:
        begun = begun.filter(user__sign_on=f"{issuer} {sub}")
    if sid is not None:
        begun = begun.filter(Q(sid=sid) | Q(sid="") if sub is not None else Q(sid=sid))
    elif user := User.objects.filter(sign_on=f"{issuer} {sub}").first():
        end_all(user)  # also what began before anything was remembered
    return _ended(begun)


def note_ended(*, issuer: str, sub: str | None, sid: str | None, issued_at: float) -> None:
    """Remember what the provider ended at that time, in seconds since 1970: whoever began there before and is
    still on the way here does not get in.
    """
    until = datetime.fromtimestamp(issued_at, UTC) + LONGEST_LOG_IN
    names = [f"{issuer} person {sub}"] if sid is None else [f"{issuer} session {sid}"]
    if sid is not None and sub is not None:
        names.append(f"{issuer} nameless {sub}")
    for name in names:
        once.note("ended", name, until=until)


def has_ended(*, issuer: str, claims: Mapping[str, Any]) -> bool:
    """Whether the provider has ended, since it made this ID token, the log-in of which that tells, as far as
    that is remembered. A provider may go on with a session of the same name for other programs.
    """
    sid, sub, issued_at = claims.get("sid"), claims["sub"], claims.get("iat")
    of_session = f"{issuer} session {sid}" if isinstance(sid, str) else f"{issuer} nameless {sub}"
    begun = issued_at if isinstance(issued_at, int | float) else 0
    ended = (once.noted("ended", name) for name in (of_session, f"{issuer} person {sub}"))
    return any(until is not None and begun <= (until - LONGEST_LOG_IN).timestamp() for until in ended)


def forget_old() -> None:
    old = SignOnSession.objects.filter(ends_at__lt=timezone.now())
    if old.exists():  # else without a write, for which SQLite has one lock
        old.delete()


def _ended(begun: QuerySet[SignOnSession]) -> dict[User, int]:
    found: dict[User, int] = {}
    for one in list(begun.select_related("user").order_by("pk")):
        found[one.user] = found.get(one.user, 0) + Session.objects.filter(pk=one.session_key).delete()[0]
        one.delete()
    return {user: count for user, count in found.items() if count}
