"""What somebody gets who asks for what is kept about them: all of theirs, and nothing else."""

import json

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation.common import audit
from annotation.labelling import queue
from annotation.models import Comment, Draft, HeldOutItem, Mail, PracticeAnswer, Skip, User
from annotation.people import own_data
from annotation.people.tokens import make_token
from testbed.factories import add_member, make_items, make_project, make_user
from tests.routing.runs.test_script_commands import run

pytestmark = pytest.mark.django_db


def answer(project, user: User, value: str, comment: str) -> None:
    task = queue.claim(project=project, user=user)
    assert task is not None
    queue.submit(
        user=user,
        work_item_id=task.work_item.pk,
        token=task.token,
        value=value,
        idempotency_key=comment,
        comment=comment,
    )


@pytest.fixture
def project():
    return make_project()


@pytest.fixture
def people(project) -> tuple[User, User]:
    """Two who have each given everything that can be given."""
    items = make_items(project, 3)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=False, priority=1, entropy=1
    )
    ann = add_member(project, user=make_user("ann1", email="ann1@example.org"))
    bob = add_member(project, user=make_user("bob2", email="bob2@example.org"))
    held = HeldOutItem.objects.create(
        project=project,
        item=make_items(project, ["held"])[0],
        purpose="practice",
        at_random=False,
        answer="the-known-answer",
        created_by=project.created_by,
    )
    for user in (ann, bob):
        name = user.username
        answer(project, user, "cat", f"label-of-{name}")
        work = items[2].work_items.get()
        Skip.objects.create(work_item=work, user=user, reason="unclear", comment=f"skip-of-{name}")
        Draft.objects.create(work_item=work, user=user, value="dog", comment=f"draft-of-{name}")
        Comment.objects.create(item=items[2], author=user, text=f"comment-of-{name}", is_flag=True)
        PracticeAnswer.objects.create(held_out=held, user=user, value=f"practice-of-{name}", is_right=False)
        Mail.objects.create(kind="work", user=user, to=user.email, state="sent")
        make_token(user=user, name=f"token-of-{name}")
        audit.record(project=None, actor=user, action=f"act-of-{name}")
    return ann, bob


def asked(user: User) -> str:
    client = Client()
    client.force_login(user)
    answer = client.get(reverse("account_data"))
    assert (answer.status_code, answer.streaming) == (200, True)
    assert "attachment" in answer["Content-Disposition"]
    assert "no-store" in answer["Cache-Control"]
    return b"".join(answer.streaming_content).decode()


def test_all_of_ones_own_and_nothing_of_others(people) -> None:
    ann, bob = people
    text = asked(ann)
    for kind in ("label", "skip", "draft", "comment", "practice", "token", "act"):
        assert f"{kind}-of-ann1" in text, kind
    assert "bob2" not in text
    told = json.loads(text)
    assert told["account"][0]["email"] == "ann1@example.org"
    assert [row["to"] for row in told["letters"]] == ["ann1@example.org"]
    assert [row["value"] for row in told["labels"]] == ["cat"]
    assert all(told["labels"][0][name] for name in ("external_id", "of_project"))
    assert len(told["memberships"]) == len(told["sessions"]) == len(told["tokens"]) == 1
    assert (told["rosters"], told["round_notes"]) == ([], [])
    assert "ann1" not in asked(bob)


def test_nothing_that_opens_anything_and_nothing_that_was_not_shown(people) -> None:
    ann, _bob = people
    _token, secret = make_token(user=ann, name="another")
    text = asked(ann)
    digests = [token.digest for token in _token.__class__.objects.filter(user=ann)]
    session = next(own_data.sessions_of(ann)).session_key
    for hidden in (secret, ann.password, "the-known-answer", "gold", session, *digests):
        assert hidden not in text


def test_it_is_for_whoever_is_logged_in_alone(people) -> None:
    answer = Client().get(reverse("account_data"))
    assert (answer.status_code, "login" in answer["Location"]) == (302, True)
    client = Client()
    client.force_login(people[1])
    text = b"".join(client.get(reverse("account_data"), {"user": people[0].pk}).streaming_content).decode()
    assert json.loads(text)["account"][0]["username"] == "bob2"


def test_many_rows_come_in_pieces(people) -> None:
    ann = people[0]
    for number in range(30):
        audit.record(project=None, actor=ann, action=f"number.{number}")
    pieces = list(own_data.stream(ann))
    assert max(map(len, pieces)) < 1200
    assert len(json.loads(b"".join(pieces))["audit_events"]) >= 30


def test_whoever_runs_the_server_gets_it_by_command(people, tmp_path) -> None:
    assert json.loads(run("person", "export", "ann1", user=""))["account"][0]["username"] == "ann1"
    file = tmp_path / "ann.json"
    run("person", "export", "ann1", "--output", file, user="")
    assert json.loads(file.read_text())["tokens"][0]["name"] == "token-of-ann1"
    assert file.stat().st_mode & 0o077 == 0
    with pytest.raises(CommandError, match="no account 'nobody'"):
        call_command("person", "export", "nobody")
    with pytest.raises(CommandError, match="person export NAME"):
        call_command("person", "remove", "ann1")
    assert not User.objects.filter(username__in=["export", "remove"]).exists()
