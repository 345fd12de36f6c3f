"""The command that makes an account and lets somebody take part: what it does once, and what it leaves."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from annotation.models import AuditEvent, Membership, User
from annotation.people.members import set_active
from testbed.factories import add_member, make_project, make_user
from tests.routing.runs.test_script_commands import ended, run

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
GOOD = "seven small green kettles"


@pytest.fixture
def project():
    return make_project(choices=["good", "bad"])


def owner(project) -> str:
    return project.created_by.username


def as_annotator(project, name: str = "bo") -> tuple[object, ...]:
    return ("person", name, "--project", project.slug, "--role", "annotator", "--json")


def test_from_an_empty_server_to_somebody_who_may_label() -> None:
    ada = json.loads(run("person", "ada", "--email", "ada@example.org", "--json", user="ada"))
    assert (ada["created"], User.objects.get().email) == (True, "ada@example.org")
    assert User.objects.get().check_password(ada["password"])
    slug = run("project", "create", "Reviews", "--choice", "good", "--choice", "bad", user="ada").strip()
    told = run("person", "bo", "--project", slug, "--role", "annotator", user="ada")
    assert "The account bo was made." in told
    assert f"bo is annotator in {slug} now." in told
    password = told.strip().rpartition(" ")[2]
    membership = Membership.objects.get(user__username="bo")
    assert (membership.role, membership.user.check_password(password)) == ("annotator", True)
    made = AuditEvent.objects.filter(action="account.created").order_by("pk")
    assert list(made.values_list("target", "actor__username")) == [("user:ada", None), ("user:bo", "ada")]


def test_an_account_that_takes_part_in_nothing_yet_is_made_by_somebody(project) -> None:
    run("person", "bo", user=owner(project))
    event = AuditEvent.objects.get(action="account.created")
    assert (event.project, event.actor, event.target) == (None, project.created_by, "user:bo")
    code, reason = ended("person", "cy", user="nobody")
    assert (code, "no active account" in reason) == (1, True)
    assert not User.objects.filter(username="cy").exists()


def test_a_second_run_changes_nothing_and_tells_no_password(project) -> None:
    first = json.loads(run(*as_annotator(project), user=owner(project)))
    events = AuditEvent.objects.count()
    again = json.loads(run(*as_annotator(project), "--email", "other@example.org", user=owner(project)))
    assert again == {
        **{"username": "bo", "project": project.slug, "role": "annotator"},
        **{"created": False, "joined": False, "role_was": None},
    }
    bo = User.objects.get(username="bo")
    assert (bo.email, bo.check_password(first["password"])) == ("", True)
    assert AuditEvent.objects.count() == events
    assert "bo is annotator in" in run(*as_annotator(project)[:-1], user=owner(project))
    # A name that is stored in another form than it was typed in.
    run(*as_annotator(project, "ﬁn"), user=owner(project))
    assert json.loads(run(*as_annotator(project, "ﬁn"), user=owner(project)))["created"] is False


def test_who_has_an_account_joins_and_who_is_a_member_gets_the_role(project) -> None:
    bo = make_user("bo")
    told = json.loads(run(*as_annotator(project), user=owner(project)))
    assert (told["created"], told["joined"], "password" in told) == (False, True, False)
    reviewer = ("person", "bo", "--project", project.slug, "--role", "reviewer")
    assert "no longer annotator" in run(*reviewer, user=owner(project))
    assert Membership.objects.get(user=bo).role == "reviewer"
    changed = AuditEvent.objects.get(action="member.role_changed")
    assert (changed.actor, changed.data["to"]) == (project.created_by, "reviewer")


def test_a_script_has_one_account_label_in_several_projects(project) -> None:
    other = make_project(choices=["good", "bad"])
    run("person", "bo", user=owner(project))
    for one in (project, other):
        assert json.loads(run(*as_annotator(one), user=owner(one)))["joined"]
    run(*as_annotator(project, "cy"), user=owner(project))
    code, reason = ended(*as_annotator(other, "cy"), user=owner(other))
    assert (code, "has to choose a new one" in reason) == (1, True)


def test_the_password_may_come_from_standard_input(project, monkeypatch) -> None:
    def typed(text: str) -> tuple[object, ...]:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        return (*as_annotator(project), "--password-stdin")

    for weak, reason in (("\n", "no password"), ("bo\n", "too short"), ("password1\n", "too common")):
        code, told = ended(*typed(weak), user=owner(project))
        assert (code, reason in told) == (1, True), told
    assert not User.objects.filter(username="bo").exists()
    told = json.loads(run(*typed(f"{GOOD}\n"), user=owner(project)))
    assert "password" not in told
    assert User.objects.get(username="bo").check_password(GOOD)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("bo", "--project", "{slug}"), "belong together"),
        (("bo", "--role", "annotator"), "belong together"),
        (("bo", "--project", "gone", "--role", "annotator"), "no project 'gone'"),
        (("b o", "--project", "{slug}", "--role", "annotator"), "valid username"),
        (("bo", "--email", "nowhere"), "valid email"),
        (("off",), "switched off"),
        (("out", "--project", "{slug}", "--role", "annotator"), "deactivated"),
        (("{owner}", "--project", "{slug}", "--role", "annotator"), "only owner"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(project, words, reason) -> None:
    User.objects.filter(pk=make_user("off").pk).update(is_active=False)
    out = add_member(project, "annotator", make_user("out"))
    set_active(project=project, actor=project.created_by, user=out, active=False)
    before = (User.objects.count(), sorted(Membership.objects.values_list("pk", "role", "is_active")))
    filled = [word.format(slug=project.slug, owner=owner(project)) for word in words]
    code, told = ended("person", *filled, user=owner(project))
    assert (code, reason in told) == (1, True), told
    after = (User.objects.count(), sorted(Membership.objects.values_list("pk", "role", "is_active")))
    assert after == before


def test_owners_alone_decide_who_takes_part(project) -> None:
    manager = add_member(project, "manager")
    code, reason = ended(*as_annotator(project), user=manager.username)
    assert (code, "may not do this" in reason) == (1, True)
    assert not User.objects.filter(username="bo").exists()


def test_an_unknown_role_ends_as_wrong_calls_do() -> None:
    root = Path(__file__).resolve().parents[3]
    words = [sys.executable, "manage.py", "person", "bo", "--project", "x", "--role", "boss"]
    ended = subprocess.run(words, cwd=root, env=os.environ, capture_output=True, text=True, check=False)
    assert (ended.returncode, "annotator" in ended.stderr) == (1, True)
