"""Everything that is kept about one person, as they may have it: theirs alone.

Of work it holds what they gave themselves: no answer of anybody else, none of a model, not which items were
gold, and nothing of why an item came to them. So whoever labels blind may have it at any time.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from axes.models import AccessAttempt, AccessLog
from django.contrib.sessions.models import Session
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import F, Q, QuerySet

from annotation.common.snapshot import in_snapshot
from annotation.models import (
    ApiToken,
    AuditEvent,
    AuthenticatorApp,
    Comment,
    Draft,
    Invitation,
    KeyedRequest,
    Label,
    Mail,
    Membership,
    Passkey,
    PracticeAnswer,
    Project,
    Settlement,
    ShownSuggestion,
    Skip,
    User,
)
from annotation.ports import routing_port

ACCOUNT = (
    *("id", "username", "first_name", "last_name", "email", "email_confirmed_at", "language"),
    *("single_key_shortcuts", "mail_notices", "mail_work", "sign_on", "signed_on_at", "is_active"),
    *("is_staff", "is_superuser", "date_joined", "last_login", "password_chosen_at", "reset_link_at"),
)
_AT_ONCE = 1000
Rows = Iterable[Mapping[str, object]]


def file_name(user: User) -> str:
    return f"hypac-person-{user.pk}.json"


def stream(user: User) -> Iterator[bytes]:
    """One JSON object: a list of rows under the name of each kind of data; read from one snapshot."""
    with in_snapshot(lambda: _pieces(user)) as pieces:
        yield from pieces


def sessions_of(user: User) -> Iterator[Session]:
    """Where the person is logged in. Whose a session is stands in its content alone."""
    for session in Session.objects.iterator(chunk_size=_AT_ONCE):
        if session.get_decoded().get("_auth_user_id") == str(user.pk):
            yield session


def events_about(user: User) -> Q:
    """Audit events about the person: by id, as names can change; those from before ids were written down, and
    those of an account as such, name the person alone.
    """
    return Q(data__user=user.pk) | Q(data__user__isnull=True, target=f"user:{user.username}"[:120])


def _pieces(user: User) -> Iterator[bytes]:
    opening = "{"
    for name, rows in _sections(user):
        yield f"{opening}\n{json.dumps(name)}: [".encode()
        opening, between = ",", "\n"
        for row in rows:
            text = json.dumps(row, ensure_ascii=False, cls=DjangoJSONEncoder)
            yield f"{between}{text}".encode(errors="backslashreplace")
            between = ",\n"
        yield b"]"
    yield b"\n}\n"


def _sections(user: User) -> Iterator[tuple[str, Rows]]:
    parts: dict[str, Callable[[User], Rows]] = {
        "account": lambda user: [{name: getattr(user, name) for name in ACCOUNT}],
        "sessions": lambda user: ({"ends_at": session.expire_date} for session in sessions_of(user)),
        "tokens": _tokens,
        "authenticator_apps": lambda user: _rows(
            AuthenticatorApp.objects.filter(user=user), "created_at", "last_used_at"
        ),
        "passkeys": lambda user: _rows(
            Passkey.objects.filter(user=user), "name", "created_at", "last_used_at"
        ),
        "recovery_codes": lambda user: [{"unused": user.recovery_codes.count()}],
        "log_ins": _log_ins,
        "failed_log_ins": _failed_log_ins,
        "memberships": _memberships,
        "invitations": _invitations,
        "projects_made": lambda user: _rows(
            Project.objects.filter(created_by=user), "slug", "name", "created_at"
        ),
        "labels": _labels,
        "decisions": _decisions,
        "skips": _skips,
        "comments_and_flags": _comments,
        "drafts": _drafts,
        "practice_answers": _practice,
        "suggestions_shown": _suggestions,
        "letters": lambda user: _rows(
            Mail.objects.filter(user=user), "kind", "to", "state", "created_at", "finished_at"
        ),
        "keyed_requests": lambda user: _rows(
            KeyedRequest.objects.filter(user=user), "address", "status", "created_at"
        ),
        "audit_events": _audit,
    }
    for name, part in parts.items():
        yield name, part(user)
    yield from routing_port().own_data(user=user)


def _rows(found: QuerySet[Any], *fields: str, **named: str) -> Rows:
    """Plain rows, page by page; `named` are fields under names of their own."""
    renamed = {name: F(path) for name, path in named.items()}
    return found.order_by("pk").values(*fields, **renamed).iterator(chunk_size=_AT_ONCE)


def _tokens(user: User) -> Rows:
    """Not what opens anything: of the secret itself only a hash is kept, and that stays here."""
    fields = ("name", "role", "created", "expiry", "last_used_at")
    return _rows(ApiToken.objects.filter(user=user), *fields, of_project="project__slug")


def _log_ins(user: User) -> Rows:
    found = AccessLog.objects.filter(username__iexact=user.username)  # as it was typed
    return _rows(found, "attempt_time", "logout_time", "ip_address", "user_agent")


def _failed_log_ins(user: User) -> Rows:
    """How often, and when last: where from says something of whoever tried."""
    found = AccessAttempt.objects.filter(username__iexact=user.username)
    return _rows(found, "attempt_time", "failures_since_start")


def _memberships(user: User) -> Rows:
    fields = ("role", "is_active", "max_labels", "max_per_day", "created_at")
    return _rows(Membership.objects.filter(user=user), *fields, of_project="project__slug")


def _invitations(user: User) -> Rows:
    found = Invitation.objects.filter(Q(user=user) | Q(created_by=user))
    return _rows(found, "role", "note", "uses", "created_at", "expires_at", of_project="project__slug")


_ITEM = {"of_project": "work_item__batch__project__slug", "external_id": "work_item__item__external_id"}


def _labels(user: User) -> Rows:
    """All versions, answers to gold items and to those of rounds among them: nothing tells them apart."""
    fields = ("id", "value", "version", "comment", "lead_time_ms", "suggestion", "created_at")
    return _rows(Label.objects.filter(annotator=user), *fields, replaces="supersedes_id", **_ITEM)


def _decisions(user: User) -> Rows:
    fields = ("value", "version", "comment", "created_at")
    named = {"of_project": "batch__project__slug", "external_id": "item__external_id"}
    return _rows(Settlement.objects.filter(decided_by=user), *fields, **named)


def _skips(user: User) -> Rows:
    return _rows(Skip.objects.filter(user=user), "reason", "comment", "created_at", "cleared_at", **_ITEM)


def _comments(user: User) -> Rows:
    fields = ("text", "is_flag", "created_at", "resolved_at")
    named = {"of_project": "item__project__slug", "external_id": "item__external_id"}
    return _rows(Comment.objects.filter(author=user), *fields, **named)


def _drafts(user: User) -> Rows:
    return _rows(Draft.objects.filter(user=user), "value", "comment", "created_at", **_ITEM)


def _practice(user: User) -> Rows:
    named = {"of_project": "held_out__project__slug", "external_id": "held_out__item__external_id"}
    return _rows(PracticeAnswer.objects.filter(user=user), "value", "is_right", "created_at", **named)


def _suggestions(user: User) -> Rows:
    """Before which items they were shown what a model answered."""
    return _rows(ShownSuggestion.objects.filter(user=user), "value", "source", "created_at", **_ITEM)


def _audit(user: User) -> Rows:
    """What they did and what was done about them; by whom, and with which figures, is not theirs."""
    found = AuditEvent.objects.filter(Q(actor=user) | events_about(user))
    fields = ("action", "target", "created_at")
    return _rows(found, *fields, of_project="project__slug")
