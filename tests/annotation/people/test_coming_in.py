"""What people are told on their way into a project: by an invitation, or by making one."""

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Invitation, Project, User
from annotation.people.invitations import create_invitation
from annotation.people.invite_by_name import invite_person
from testbed.factories import PASSWORD, invited_unchosen, made_account, make_project, make_user

pytestmark = pytest.mark.django_db


def text(answer) -> str:
    return answer.content.decode()


def invited() -> Invitation:
    project = make_project(name="Secret")
    return invite_person(project=project, actor=project.created_by, username="ben", role="reviewer")


def with_made_account() -> tuple[Client, User]:
    ann, password = made_account(make_project())
    client = Client()
    client.post("/login/", {"username": ann.username, "password": password})
    return client, ann


@pytest.mark.parametrize("answer", ["invitation_accept", "invitation_decline"])
def test_a_second_window_says_that_one_takes_part_already(client_of, answer) -> None:
    client = client_of(make_user("ben"))
    invitation = invited()
    client.post(reverse("invitation_accept", args=[invitation.pk]))
    page = text(client.post(reverse(answer, args=[invitation.pk]), follow=True))
    assert "You take part in this project already." in page
    assert "used up" not in page


def test_who_was_switched_off_is_told_who_can_switch_them_on(client_of) -> None:
    ben = make_user("ben")
    client, invitation = client_of(ben), invited()
    url = reverse("invitation_accept", args=[invitation.pk])
    client.post(url)
    ben.memberships.update(is_active=False)
    assert "Only an owner can switch it on again." in text(client.post(url, follow=True))


@pytest.mark.parametrize("by_link", [False, True])
def test_whose_password_somebody_may_know_is_told_what_follows(by_link) -> None:
    client, ann = with_made_account()
    invitation = invited_unchosen(make_project(name="Secret"), ann, role="reviewer")
    url, data = reverse("invitation_accept", args=[invitation.pk]), {}
    if by_link:
        of = invitation.project
        _, token = create_invitation(project=of, actor=of.created_by, role="reviewer", max_uses=1, days=1)
        url, data = reverse("join"), {"token": token}
    page = text(client.post(url, data, follow=True))
    assert "Choose a new one here." in page
    assert "the invitation to Secret" in page
    assert "on the page of your account" not in page


def test_who_has_to_choose_a_password_is_told_before_filling_in_a_project() -> None:
    client, ann = with_made_account()
    for answer in (client.get(reverse("project_new")), client.post(reverse("project_new"), {"name": "Mine"})):
        page = text(answer)
        assert "may know its password" in page
        assert f'href="{reverse("password")}"' in page
        assert 'name="task_type"' not in page
    assert not Project.objects.filter(created_by=ann).exists()
    other = Client()
    other.post("/login/", {"username": make_user("own").username, "password": PASSWORD})
    assert 'name="task_type"' in text(other.get(reverse("project_new")))


def test_each_button_that_takes_an_invitation_back_names_it(client_of) -> None:
    project = make_project()
    owner = project.created_by
    make_user("ben")
    invite_person(project=project, actor=owner, username="ben", role="reviewer")
    for note in ("for the <b>course", ""):
        create_invitation(project=project, actor=owner, role="annotator", max_uses=1, days=1, note=note)
    page = text(client_of(owner).get(reverse("members", args=[project.slug])))
    assert "the invitation of ben as Reviewer</span>" in page
    assert "the link “for the &lt;b&gt;course” for the role Annotator</span>" in page
    assert "the link for the role Annotator, made " in page
