"""Erasing a person: nothing says who they were, what they did stays, and others keep what they need."""

import json
import time

import pytest
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from annotation import failures
from annotation.common import audit
from annotation.errors import ConflictError, InputError
from annotation.imports.bucket_look import MAY_NOT
from annotation.labelling import queue
from annotation.models import (
    AuditEvent,
    AuthenticatorApp,
    Draft,
    Invitation,
    Job,
    KeyedRequest,
    Label,
    Mail,
    Membership,
    Passkey,
    RecoveryCode,
    User,
)
from annotation.people.erase import erase_person
from annotation.people.log_in import SIGN_ON_BACKEND
from annotation.people.members import change_role
from annotation.people.own_data import sessions_of
from annotation.people.sign_on_views import SIGNED_ON_AT
from annotation.people.tokens import make_token
from routing.models import SavedView
from testbed.factories import PASSWORD, add_member, make_items, make_project, make_user
from tests.everywhere import told_anywhere

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

NAME, ADDRESS, FIRST = "gwendolyn", "gwen.d@example.org", "Guinevere"


@pytest.fixture
def project():
    return make_project()


@pytest.fixture
def gwen(project) -> User:
    """Somebody whose name stands wherever a name can stand."""
    items = make_items(project, 2)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=False, priority=1, entropy=1
    )
    user = make_user(NAME, email=ADDRESS, first_name=FIRST, sign_on=f"https://login.example {NAME}")
    gwen = add_member(project, user=user)
    owner = project.created_by
    task = queue.claim(project=project, user=gwen)
    queue.submit(
        user=gwen, work_item_id=task.work_item.pk, token=task.token, value="cat", idempotency_key="1"
    )
    held = queue.claim(project=project, user=gwen)
    Draft.objects.create(work_item=held.work_item, user=gwen, value="dog")
    change_role(project=project, actor=owner, user=gwen, role="reviewer")
    make_token(user=gwen, name="laptop")
    invitation = Invitation.objects.create(
        project=project,
        role="annotator",
        token_hash="x",
        note=f"for {FIRST}",
        expires_at=gwen.date_joined,
        created_by=owner,
    )
    named = {"project": project, "actor": gwen}
    audit.record(**named, action="invitation.used", target=f"invitation:{invitation.pk}")
    audit.record(**named, action="round.started", data={"items": 3, "people": ["bob", NAME]})
    audit.record(**named, action="run.started", data={"roster": {NAME: "1", "bob": "1"}, "expert": [NAME]})
    people = {"ann_1": NAME.upper(), "ann_2": ADDRESS.title(), "ann_3": "bob", NAME: "bob"}
    audit.record(**named, action="run.labelled_elsewhere", data={"people": people, "by": {NAME: 3, "bob": 1}})
    audit.record(project=None, actor=None, action="account.created", target=f"user:{NAME}")
    for action in ("account.passkey_added", "account.passkey_removed"):
        data = {"user": user.pk, "passkey": 7, "name": f"{FIRST}'s phone"}
        audit.record(project=None, actor=gwen, action=action, target=f"user:{NAME}", data=data)
    Mail.objects.create(kind="work", user=gwen, to=ADDRESS, state="sent")
    Mail.objects.create(kind="invitation", to=ADDRESS.upper(), state="sent", data={"who": "bob"})
    Mail.objects.create(kind="invitation", to="c@example.org", state="sent", data={"who": NAME})
    AuthenticatorApp.objects.create(user=gwen, secret="x")
    RecoveryCode.objects.create(user=gwen, code_hash="y")
    Passkey.objects.create(user=gwen, name=f"{FIRST}'s key", credential_id="z", credential="z", handle="z")
    SavedView.objects.create(project=project, owner=gwen, name=f"for {FIRST}")
    KeyedRequest.objects.create(user=gwen, key="1", address="POST /", created_at=gwen.date_joined)
    for key, body in (
        ("2", {"username": NAME}),
        ("3", {"email": ADDRESS}),
        ("4", {"note": "on gwen"}),
        ("5", {"detail": f"{NAME.title()} has it."}),
    ):
        told = json.dumps(body).encode()
        now = gwen.date_joined
        KeyedRequest.objects.create(user=owner, key=key, address="POST /", created_at=now, body=told)
    for typed in (NAME, NAME.title(), ADDRESS, ADDRESS.upper()):
        AccessAttempt.objects.create(username=typed, failures_since_start=1, post_data=f"username={typed}")
        for log in (AccessLog, AccessFailureLog):
            log.objects.create(username=typed)
    reason = failures.columns_of(MAY_NOT.error(name=NAME))
    Job.objects.create(project=project, kind="bucket_sync", heartbeat_at=gwen.date_joined, **reason)
    membership = Membership.objects.get(project=project, user=gwen)
    for one in (gwen, membership):
        LogEntry.objects.create(
            user=owner,
            content_type=ContentType.objects.get_for_model(one),
            object_id=str(one.pk),
            object_repr=str(one),
            action_flag=2,
        )
    Client().force_login(gwen)
    return gwen


@pytest.mark.database
def test_nothing_says_who_they_were_and_what_they_did_stays(gwen, project) -> None:
    before = told_anywhere(NAME, ADDRESS, FIRST)
    assert {
        "Invitation.note",
        "User.username",
        "AuditEvent.target",
        "AuditEvent.data",
        "Mail.data",
        "LogEntry.object_repr",
    } < before
    assert list(sessions_of(gwen))
    done = erase_person(user=gwen, actor=project.created_by, typed=NAME)
    number = f"person {gwen.pk}"
    assert (done.name, done.labels, done.now) == (number, 1, True)
    assert told_anywhere(NAME, ADDRESS, FIRST) == set()
    gwen.refresh_from_db()
    assert (gwen.username, gwen.is_active, gwen.has_usable_password()) == (number, False, False)
    assert [label.annotator.username for label in Label.objects.all()] == [number]
    for kept in (Draft, AuthenticatorApp, RecoveryCode, Passkey, SavedView):
        assert not kept.objects.exists(), kept
    answers = KeyedRequest.objects.exclude(body=None).values_list("key", flat=True)
    assert list(answers) == ["4"], "that of somebody else"
    assert not Membership.objects.filter(user=gwen).exists()
    assert not list(sessions_of(gwen))
    # What blindness is judged by is there still, and so is what was said of others.
    event = AuditEvent.objects.get(action="member.role_changed")
    assert (event.target, event.data["user"], event.redactions) == (f"user:{number}", gwen.pk, 1)
    assert AuditEvent.objects.get(action="round.started").data["people"] == ["bob", number]
    assert AuditEvent.objects.get(action="run.started").data["roster"] == {number: "1", "bob": "1"}
    data = AuditEvent.objects.get(action="run.labelled_elsewhere").data
    assert data["people"] == {"ann_1": number, "ann_2": number, "ann_3": "bob", number: "bob"}
    assert data["by"] == {number: 3, "bob": 1}
    assert Job.objects.get(kind="bucket_sync").error.startswith(f"{number}, in whose name")
    assert AuditEvent.objects.filter(action="account.erased", data__user=gwen.pk).count() == 1
    event = AuditEvent.objects.get(action="account.passkey_added")
    assert event.data == {"user": gwen.pk, "passkey": 7}
    # What they held is for others.
    assert queue.claim(project=project, user=project.created_by) is not None


def test_what_somebody_else_typed_to_log_in_stays(gwen) -> None:
    """Whose name is the address that the erased one had given, which nobody confirmed."""
    make_user(ADDRESS)
    erase_person(user=gwen, actor=None, typed=NAME)
    typed = {name.lower() for name in AccessAttempt.objects.values_list("username", flat=True)}
    assert typed == {ADDRESS}
    people = AuditEvent.objects.get(action="run.labelled_elsewhere").data["people"]
    assert people["ann_2"] == ADDRESS.title()


def test_once_more_changes_nothing(gwen, project) -> None:
    erase_person(user=gwen, actor=None, typed=NAME)
    gwen.refresh_from_db()
    count = AuditEvent.objects.count()
    assert not erase_person(user=gwen, actor=None, typed=gwen.username).now
    assert AuditEvent.objects.count() == count


def test_what_others_need_is_not_taken_away(gwen, project) -> None:
    with pytest.raises(InputError, match="exactly as it is"):
        erase_person(user=gwen, actor=None, typed="gwen")
    owner = project.created_by
    with pytest.raises(ConflictError, match="only owner of") as refused:
        erase_person(user=owner, actor=None, typed=owner.username)
    assert refused.value.code == "only_owner"
    root = make_user("root", is_superuser=True)
    with pytest.raises(ConflictError) as refused:
        erase_person(user=root, actor=None, typed="root")
    assert refused.value.code == "only_administrator"
    make_user("other", is_superuser=True)
    assert erase_person(user=root, actor=None, typed="root").now
    add_member(project, "owner")
    assert erase_person(user=owner, actor=None, typed=owner.username).now


@pytest.mark.database
def test_the_database_lets_an_event_lose_a_name_and_nothing_else(gwen) -> None:
    event = AuditEvent.objects.get(action="round.started")
    for changes in (
        {"data": {}},
        {"redactions": 1, "action": "nothing"},
        {"redactions": 2, "data": {}},
        {"target": "user:bob"},
    ):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            AuditEvent.objects.filter(pk=event.pk).update(**changes)


def test_the_page_erases_oneself_and_administrators_anybody(gwen, project) -> None:
    address, client = reverse("account_erase"), Client()
    gwen.sign_on = None  # else the log-in of the provider is asked for
    gwen.set_password(PASSWORD)
    gwen.save()
    client.force_login(gwen)
    assert 'name="typed"' in client.get(reverse("account")).content.decode()
    other = add_member(project, user=make_user("other1"))
    for typed in ("", "gwen", "other1"):
        client.post(address, {"typed": typed, "password": PASSWORD})
        assert not User.objects.filter(erased_at__isnull=False).exists(), typed
    answer = client.post(address, {"typed": NAME, "password": PASSWORD}, follow=True)
    assert f"person {gwen.pk}" in answer.content.decode()
    assert answer.redirect_chain[-1][0] == reverse("login")
    client.force_login(make_user("root", is_superuser=True))
    answer = client.post(address, {"typed": "other1", "password": PASSWORD}, follow=True)
    assert f"person {other.pk}" in answer.content.decode()
    assert answer.redirect_chain[-1][0] == reverse("account")


def test_an_open_session_alone_erases_nobody(gwen, settings) -> None:
    """Not whose it is, and where an administrator's was left open, nobody else either."""
    client, address = Client(), reverse("account_erase")
    settings.HYPAC_OIDC_NAME, settings.HYPAC_OIDC_ISSUER = "the provider", "https://login.example"
    for user in (make_user("own"), make_user("root", is_superuser=True)):
        client.force_login(user)
        for more in ({}, {"password": ""}, {"password": "wrong"}):
            for typed in (NAME, user.username):
                client.post(address, {"typed": typed, **more})
    assert not User.objects.filter(erased_at__isnull=False).exists()
    # Whoever logs in by a provider has no password here: they came from there a moment ago.
    client.force_login(gwen, backend=SIGN_ON_BACKEND)
    session = client.session
    session[SIGNED_ON_AT] = int(time.time()) - 601
    session.save()
    answer = client.post(address, {"typed": NAME}, follow=True)
    assert "log in by the provider again" in answer.content.decode()
    session[SIGNED_ON_AT] = int(time.time())
    session.save()
    client.post(address, {"typed": NAME})
    assert User.objects.filter(erased_at__isnull=False).get() == gwen


def test_the_command_asks_for_the_name_twice(gwen, capsys) -> None:
    with pytest.raises(CommandError, match="exactly as it is"):
        call_command("person", "erase", NAME)
    call_command("person", "erase", NAME, "--typed", NAME)
    assert f"person {gwen.pk}" in capsys.readouterr().out
