"""Who is told what, in their language, and how they end it."""

import re
from urllib.parse import urlsplit

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from annotation.common import events
from annotation.common.mail import tell_of_log_in
from annotation.errors import InputError
from annotation.labelling import queue
from annotation.mail.digest import post_digests
from annotation.mail.letters import LOG_IN
from annotation.mail.sending import send_due
from annotation.models import Invitation, Mail, Project, User
from annotation.people.invitations import MOST_LETTERS, create_invitation, revoke_invitation
from annotation.projects.audit_words import ACTIONS
from testbed.factories import add_member, make_items, make_project, make_user
from testbed.mail_server import words_of

pytestmark = pytest.mark.django_db


def member(project: Project, role: str, **fields: object) -> User:
    user = add_member(project, role)
    fields = {"email": f"{user.username}@example.org", "email_confirmed_at": timezone.now(), **fields}
    User.objects.filter(pk=user.pk).update(**fields)
    return User.objects.get(pk=user.pk)


@pytest.fixture
def project(server) -> Project:
    return make_project(name="Cats <b>&</b> dogs")


def test_whoever_leads_is_told_and_nobody_else(server, project) -> None:
    manager = member(project, "manager", language="fr")
    for role in ("annotator", "reviewer", "viewer"):
        member(project, role)
    add_member(project, "manager")  # who has confirmed no address
    member(project, "owner", mail_notices=False)
    member(make_project(), "manager")
    told = {"run": 3, "url": "/api/v1/projects/cats/runs/3/"}
    for _ in range(2):
        events.emit(project=project, event="run.calibration_done", data=told, key="3")
        events.emit(project=project, event="run.analysed", data=told, key="3")
    assert send_due() == 1
    [letter] = server.taken
    assert letter["To"] == manager.email
    assert "peut être analysé" in letter["Subject"]
    assert f"https://labels.example/projects/{project.slug}/runs/3/" in words_of(letter)
    html = letter.get_body(("html",)).get_content()
    assert "Cats &lt;b&gt;&amp;&lt;/b&gt; dogs" in html
    assert 'lang="fr"' in html
    assert letter["Auto-Submitted"] == "auto-generated"


def test_failed_jobs_come_in_swarms_and_are_told_once_an_hour(server, project) -> None:
    member(project, "manager")
    for number in range(40):
        events.emit(project=project, event="job.failed", data={"job": number, "kind": "import", "url": ""})
    assert send_due() in (1, 2)  # where an hour ends in between


def test_letters_are_ended_by_a_link_in_them(server, project) -> None:
    manager = member(project, "manager")
    events.emit(project=project, event="run.calibration_done", data={"run": 1}, key="1")
    send_due()
    [letter] = server.taken
    address = letter["List-Unsubscribe"].strip(" <>")
    assert address in words_of(letter)
    path = urlsplit(address).path
    stranger = Client(enforce_csrf_checks=True)
    assert "E-mails about runs" in stranger.get(path).content.decode()
    manager.refresh_from_db()
    assert manager.mail_notices
    # What waits is not sent either.
    events.emit(project=project, event="run.audit_alarm", data={"run": 1}, key="1")
    assert stranger.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
    manager.refresh_from_db()
    assert (manager.mail_notices, manager.mail_work) == (False, True)
    assert send_due() == 0
    assert stranger.post(path[:-2] + "x/").status_code == 404


def test_work_that_waits_is_told_once_a_day_to_whoever_labels_nothing(server, project) -> None:
    cache.clear()
    items = make_items(project, 3)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=True, priority=1, entropy=5
    )
    ann, bob = member(project, "annotator"), member(project, "annotator", mail_work=False)
    busy = member(project, "annotator")
    held = queue.claim(project=project, user=busy)
    queue.submit(
        user=busy, work_item_id=held.work_item.pk, token=held.token, value="cat", idempotency_key="1"
    )
    assert post_digests() >= 1
    assert post_digests() == 0  # looked at once an hour
    cache.clear()
    assert post_digests() == 0  # told today
    send_due()
    told = {letter["To"]: letter for letter in server.taken}
    assert ann.email in told
    assert told.keys().isdisjoint({bob.email, busy.email})
    assert re.search(r"\d items? waits? for you", told[ann.email]["Subject"])
    assert f"/projects/{project.slug}/annotate/" in words_of(told[ann.email])
    assert "List-Unsubscribe" in told[ann.email]


def test_an_invitation_is_sent_and_its_link_is_stored_nowhere(server, project) -> None:
    client = Client()
    client.force_login(project.created_by)
    fields = {"role": "annotator", "max_uses": 1, "days": 7, "email": "new@example.org"}
    form = {f"invite-{name}": value for name, value in fields.items()}
    page = client.get(f"/projects/{project.slug}/members/").content.decode()
    assert all(f'name="{name}"' in page for name in form)
    made = client.post(f"/projects/{project.slug}/members/invitations/new/", form).content.decode()
    link = re.search(r"/join/([\w-]{40,})/", made)
    assert link
    assert "new@example.org" in made
    stored = Mail.objects.get()
    assert link[1] not in str(stored.__dict__)
    assert send_due() == 1
    [letter] = server.taken
    assert link[1] in words_of(letter)
    assert letter["To"] == "new@example.org"
    stored.refresh_from_db()
    assert stored.secret == ""
    form["invite-max_uses"] = "3"
    address = f"/projects/{project.slug}/members/invitations/new/"
    assert "for one person" in client.post(address, form).content.decode()
    form["invite-max_uses"] = "1"
    client.post(address, form)
    revoke_invitation(invitation=Invitation.objects.latest("pk"), actor=project.created_by)
    assert send_due() == 0


def test_a_name_of_several_lines_makes_no_headers(server, project) -> None:
    manager = member(project, "manager")
    Project.objects.filter(pk=project.pk).update(name="Cats\r\nBcc: evil@example.org\n\nHello")
    project.refresh_from_db()
    events.emit(project=project, event="run.calibration_done", data={"run": 3, "url": "/"}, key="3")
    assert send_due() == 1
    [letter] = server.taken
    assert letter["To"] == manager.email
    assert letter["Bcc"] is None
    assert "Cats Bcc: evil@example.org Hello" in letter["Subject"]


def test_how_somebody_logs_in_is_told_whatever_they_wish(server) -> None:
    ann = make_user("ann", email="ann@lab.example", mail_notices=False, mail_work=False)
    tell_of_log_in(ann, "account.passkey_added")
    assert not Mail.objects.exists(), "the address is not known to be theirs"
    ann.email_confirmed_at = timezone.now()
    ann.save()
    for event in LOG_IN:
        assert event in ACTIONS
        tell_of_log_in(ann, event)
    assert send_due() == len(LOG_IN)
    for letter in server.taken:
        words = words_of(letter)
        assert "the account ann" in words
        assert "https://labels.example/account/" in words


def test_strangers_are_not_written_to_as_often_as_somebody_likes(project) -> None:
    owner = project.created_by

    def invite(to: str) -> None:
        asked = {"project": project, "actor": owner, "role": "annotator", "max_uses": 1, "days": 1}
        create_invitation(**asked, email=to)

    for _ in range(5):
        invite("stranger@example.org")
    with pytest.raises(InputError, match="enough invitations"):
        invite("Stranger@example.org")
    Mail.objects.bulk_create(
        Mail(kind="invitation", to=f"{n}@example.org", data={"who": owner.username}, state="sent")
        for n in range(MOST_LETTERS)
    )
    with pytest.raises(InputError, match="or from you today"):
        invite("another@example.org")
    assert Invitation.objects.count() == 5
