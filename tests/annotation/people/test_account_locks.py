"""Locks on accounts, on PostgreSQL: nobody waits for them who does not have to, and no two for each other."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from annotation.common import audit
from annotation.errors import InputError
from annotation.models import AuditEvent, Project, User
from annotation.people import invitations, members, password_links, tokens
from testbed.factories import invited_unchosen, made_account, make_project

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one lock for all who write"),
    pytest.mark.database,
]


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # or a transaction sees what its first look saw
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


def test_who_accepts_while_somebody_adds_them_waits_for_nobody_who_waits(monkeypatch) -> None:
    """The one had the account and came to the project, the other the other way round."""
    project = make_project()
    user, _password = made_account(make_project())
    invitation = invited_unchosen(project, user, role="viewer")
    User.objects.filter(pk=user.pk).update(password_chosen_at=timezone.now() + timedelta(minutes=1))
    use, accepting = invitations._use, threading.Event()

    def slowly(invitation: invitations.Invitation) -> None:
        use(invitation)
        accepting.set()
        until = time.monotonic() + 60
        while not waits_for_a_lock() and time.monotonic() < until:
            time.sleep(0.02)

    monkeypatch.setattr(invitations, "_use", slowly)

    def accept() -> str:
        try:
            invitations.accept(invitation=invitation, user=user)
            return "accepted"
        finally:
            connection.close()

    def add() -> str:
        assert accepting.wait(60)
        try:
            members.add_member(
                project=project, actor=project.created_by, username=user.username, role="annotator"
            )
            return "added"
        except InputError:
            return "a member already"
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(accept), pool.submit(add)]
        assert [one.result(120) for one in done] == ["accepted", "a member already"]


def make_token(project: Project, user: User) -> None:
    tokens.make_token(user=user, name="nightly")


def make_link(project: Project, user: User) -> None:
    password_links.reset_link(project=project, actor=project.created_by, user=user)


@pytest.mark.parametrize("change", [make_token, make_link])
def test_what_somebody_does_meanwhile_is_recorded_at_once(change) -> None:
    """Every label and every line of the audit trail refers to its account."""
    project = make_project()
    user, _password = made_account(project)

    def act() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '5s'")
                audit.record(project=project, actor=user, action="label.given")
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        change(project, user)
        pool.submit(act).result(60)
    assert AuditEvent.objects.filter(action="label.given").exists()
