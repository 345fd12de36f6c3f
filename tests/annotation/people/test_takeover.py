"""What an attacker did: become owner of somebody by making a project, and read what they are added to."""

import json
import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from annotation.models import AuditEvent, Project, User
from annotation.people.invite_by_name import invite_person
from annotation.people.tokens import make_token
from testbed.factories import PASSWORD, invited_unchosen, made_account, make_project, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
GOOD = "a-long-enough-4711"


@pytest.fixture(autouse=True)
def no_throttle():
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def victim() -> User:
    return make_user("victim")


@pytest.fixture
def mallory(client_of) -> Client:
    return client_of(make_user("mallory"))


def text(answer) -> str:
    return answer.content.decode()


def project_of(mallory: Client) -> Project:
    body = {"name": "Trap", "choices": [{"name": "a"}, {"name": "b"}]}
    slug = mallory.post("/api/v1/projects/", body, content_type="application/json").json()["slug"]
    return Project.objects.get(slug=slug)


def by_the_page(client: Client, project: Project, name: str) -> None:
    client.post(reverse("member_add", args=[project.slug]), {"add-username": name, "add-role": "annotator"})


def by_the_api(client: Client, project: Project, name: str) -> None:
    body = {"username": name, "role": "annotator"}
    client.post(reverse("api_members", args=[project.slug]), body, content_type="application/json")


@pytest.mark.parametrize("add", [by_the_page, by_the_api])
def test_nobody_takes_an_account_over_by_adding_it_to_a_project(mallory, victim, client_of, add) -> None:
    project = project_of(mallory)
    add(mallory, project, victim.username)
    reset = reverse("member_reset", args=[project.slug, victim.pk])
    assert not project.memberships.filter(user=victim).exists()
    assert mallory.post(reset).status_code == 404
    # And not when the victim accepts, either.
    invitation = project.invitations.get(user=victim)
    client_of(victim).post(reverse("invitation_accept", args=[invitation.pk]))
    assert project.memberships.filter(user=victim).exists()
    assert mallory.post(reset).status_code == 403
    page = text(mallory.get(reverse("member", args=[project.slug, victim.pk])))
    assert "administrator of this server" in page
    assert reset not in page
    assert User.objects.get(pk=victim.pk).password == victim.password


def test_nor_by_a_copy_of_a_project(mallory, victim, client_of) -> None:
    project = project_of(mallory)
    by_the_page(mallory, project, victim.username)
    client_of(victim).post(reverse("invitation_accept", args=[project.invitations.get().pk]))
    fields = {"name": "Copy", "with_members": "on"}
    mallory.post(reverse("project_duplicate", args=[project.slug]), fields)
    copy = Project.objects.get(name="Copy")
    assert not copy.memberships.filter(user=victim).exists()
    assert copy.invitations.filter(user=victim).exists()


def test_nor_by_an_account_made_for_somebody_who_later_takes_part_elsewhere(mallory, client_of) -> None:
    """Mallory makes Ann's account, chooses its second password as well, and hands that to her."""
    project = project_of(mallory)
    made = mallory.post(
        reverse("member_create", args=[project.slug]), {"new-username": "ann", "new-role": "annotator"}
    )
    first = re.search(r'id="password">([^<]+)<', text(made))[1]
    ann, spy = User.objects.get(username="ann"), Client()
    spy.post("/login/", {"username": "ann", "password": first})
    change = {"new_password1": GOOD, "new_password2": GOOD}
    spy.post("/password/", {"old_password": first, **change})
    token = make_token(user=User.objects.get(pk=ann.pk), name="of Mallory")[1]

    good = make_project(name="Secret")
    invitation = invite_person(project=good, actor=good.created_by, username="ann", role="viewer")
    hers = Client()
    hers.post("/login/", {"username": "ann", "password": GOOD})
    accept = reverse("invitation_accept", args=[invitation.pk])
    asked = hers.post(accept)
    assert asked.url == reverse("password")
    assert "may know its password" in text(hers.get(asked.url))
    assert not good.memberships.filter(user=ann).exists()
    own = {"old_password": GOOD, "new_password1": "only-hers-4711", "new_password2": "only-hers-4711"}
    assert hers.post("/password/", own).url == "/"
    assert hers.post(accept).url == reverse("overview", args=[good.slug])
    secret = reverse("overview", args=[good.slug])
    assert hers.get(secret).status_code == 200
    # What Mallory knows or has opens nothing any more, and she gets nothing new.
    assert spy.get(secret).status_code == 302
    assert Client().post("/login/", {"username": "ann", "password": GOOD}).status_code == 200
    shown = Client().get(f"/api/v1/projects/{good.slug}/", headers={"Authorization": f"Token {token}"})
    assert shown.status_code == 401
    assert mallory.post(reverse("member_reset", args=[project.slug, ann.pk])).status_code == 403


class TestTheHolderSeesIt:
    def test_that_a_link_was_made_at_the_next_log_in_and_on_the_account(self, client_of) -> None:
        project = make_project()
        ann, password = made_account(project)
        client_of(project.created_by).post(reverse("member_reset", args=[project.slug, ann.pk]))
        client, log_in = Client(), {"username": ann.username, "password": password}
        words = f"{project.created_by.username} made a link"
        assert f"{words} for setting your password. It has ended." in text(
            client.post("/login/", log_in, follow=True)
        ), "by this very log-in"
        assert words in text(client.get("/account/"))
        again = Client()
        assert words not in text(again.post("/login/", log_in, follow=True))
        assert words in text(again.get("/account/"))

    def test_until_they_chose_a_password_and_no_longer(self, client_of) -> None:
        project = make_project()
        ann, _password = made_account(project)
        client, owner = client_of(ann), client_of(project.created_by)
        answer = owner.post(reverse("member_reset", args=[project.slug, ann.pk]))
        words = "made a link with which your password can be set"
        assert words in text(client.get("/account/"))
        link = re.search(r'value="http://testserver(/password/[\w-]+/[\w-]+/)"', text(answer))[1]
        form = Client()
        chosen = {"new_password1": GOOD, "new_password2": GOOD}
        assert form.post(form.get(link).url, chosen).status_code == 302
        assert form.post("/login/", {"username": ann.username, "password": GOOD}).status_code == 302
        assert "made a link" not in text(form.get("/account/"))

    def test_one_that_has_ended_is_told_as_such(self, client_of) -> None:
        project = make_project()
        ann, _password = made_account(project)
        client_of(project.created_by).post(reverse("member_reset", args=[project.slug, ann.pk]))
        ann.refresh_from_db()
        type(ann).objects.filter(pk=ann.pk).update(reset_link_at=ann.reset_link_at - timedelta(hours=25))
        shown = text(client_of(ann).get("/account/"))
        assert "made a link for setting your password. It has ended." in shown
        assert "can be set" not in shown

    def test_also_when_the_project_is_gone(self, client_of) -> None:
        project = make_project()
        ann, _ = made_account(project)
        client = client_of(project.created_by)
        client.post(reverse("member_reset", args=[project.slug, ann.pk]))
        client.post(reverse("project_delete", args=[project.slug]), {"name": project.name})
        assert "made a link for setting your password" in text(client_of(ann).get("/account/"))

    def test_the_first_password_is_not_taken_as_ones_own(self, client_of) -> None:
        project = make_project()
        ann, password = made_account(project)
        client = client_of(ann)
        same = {"old_password": password, "new_password1": password, "new_password2": password}
        assert "Choose another one" in text(client.post("/password/", same))
        answer = client_of(project.created_by).post(reverse("member_reset", args=[project.slug, ann.pk]))
        link = re.search(r'value="http://testserver(/password/[\w-]+/[\w-]+/)"', text(answer))[1]
        form = Client()
        place = form.get(link).url
        same = {"new_password1": password, "new_password2": password}
        assert "Choose another one" in text(form.post(place, same))
        assert User.objects.get(pk=ann.pk).password_chosen_at is None
        form.post(place, {"new_password1": GOOD, "new_password2": GOOD})
        assert User.objects.get(pk=ann.pk).password_chosen_at is not None
        # From now on it is hers.
        assert (
            client_of(project.created_by)
            .post(reverse("member_reset", args=[project.slug, ann.pk]))
            .status_code
            == 403
        )


def test_a_link_dies_that_was_opened_before_the_password_became_ones_own(client_of) -> None:
    """The form is open already, and is sent once the account is in another project."""
    project = make_project()
    ann, _ = made_account(project)
    answer = client_of(project.created_by).post(reverse("member_reset", args=[project.slug, ann.pk]))
    link = re.search(r'value="http://testserver(/password/[\w-]+/[\w-]+/)"', text(answer))[1]
    form = Client()
    place = form.get(link).url
    assert form.get(place).status_code == 200
    User.objects.filter(pk=ann.pk).update(belonged_elsewhere=True)
    assert "holds no longer" in text(form.post(place, {"new_password1": GOOD, "new_password2": GOOD}))
    assert User.objects.get(pk=ann.pk).password_chosen_at is None


class TestOwnInvitations:
    @pytest.fixture
    def invitation(self, project, victim):
        return invite_person(project=project, actor=project.created_by, username="victim", role="reviewer")

    def test_the_list_says_who_invites_to_what_and_as_what(
        self, project, victim, invitation, client_of
    ) -> None:
        client = client_of(victim)
        for path in ("/", "/account/"):
            page = text(client.get(path))
            assert "Invitations to you" in page
            for words in (project.name, "Reviewer", f"{project.created_by.username} invites you"):
                assert words in page
        answer = client.post(reverse("invitation_accept", args=[invitation.pk]), follow=True)
        assert "You take part in" in text(answer)
        assert project.memberships.get(user=victim).role == "reviewer"
        assert "Invitations to you" not in text(client.get("/"))

    def test_the_owner_sees_what_became_of_it(self, owner, project, victim, invitation, client_of) -> None:
        page = reverse("members", args=[project.slug])
        assert "victim" in text(owner.get(page))
        client_of(victim).post(reverse("invitation_decline", args=[invitation.pk]))
        assert "Declined" in text(owner.get(page))
        again = owner.post(
            reverse("member_add", args=[project.slug]), {"add-username": "victim", "add-role": "viewer"}
        )
        assert "has declined" in text(again)

    def test_it_is_there_for_nobody_else(self, project, invitation, mallory) -> None:
        for name in ("invitation_accept", "invitation_decline"):
            assert mallory.post(reverse(name, args=[invitation.pk])).status_code == 404
        for name in ("api_own_invitation_accept", "api_own_invitation_decline"):
            path = reverse(name, args=[invitation.pk])
            assert mallory.post(path, {}, content_type="application/json").status_code == 404
        assert not AuditEvent.objects.filter(action="invitation.declined").exists()

    def test_a_page_shows_a_bounded_number(self, victim, client_of) -> None:
        for _number in range(13):
            other = make_project()
            invite_person(project=other, actor=other.created_by, username="victim", role="viewer")
        page = text(client_of(victim).get("/"))
        assert page.count("invites you") == 10
        assert "3 more are shown" in page

    def test_by_a_link_one_chooses_a_password_and_comes_back(self, project, client_of) -> None:
        ann, password = made_account(make_project())
        client = client_of(ann)
        link = (
            client_of(project.created_by)
            .post(
                f"/api/v1/projects/{project.slug}/invitations/",
                {"role": "viewer"},
                content_type="application/json",
            )
            .json()["link"]
        )
        token = link.rstrip("/").rpartition("/")[2]
        assert client.post("/join/", {"token": token}).url == "/password/"
        own = {"old_password": password, "new_password1": GOOD, "new_password2": GOOD}
        assert client.post("/password/", own).url == "/join/"
        assert client.post("/join/", {"token": ""}).url == reverse("overview", args=[project.slug])


class TestByTheApi:
    def asked(self, user: User, method: str, path: str, **token) -> object:
        secret = make_token(user=user, name="x", **token)[1]
        client, headers = Client(), {"Authorization": f"Token {secret}"}
        return client.generic(method, path, "{}", content_type="application/json", headers=headers)

    def test_one_lists_accepts_and_declines(self, project, victim) -> None:
        other = make_project()
        for place in (project, other):
            invite_person(project=place, actor=place.created_by, username="victim", role="annotator")
        listed = self.asked(victim, "GET", "/api/v1/invitations/").json()["results"]
        assert [row["project"] for row in listed] == [other.name, project.name]
        assert listed[1]["invited_by"] == project.created_by.username
        assert (
            self.asked(victim, "POST", f"/api/v1/invitations/{listed[0]['id']}/decline/").status_code == 204
        )
        accepted = self.asked(victim, "POST", f"/api/v1/invitations/{listed[1]['id']}/accept/")
        assert (accepted.status_code, accepted.json()["project"]) == (200, project.slug)
        assert list(victim.memberships.values_list("project__slug", "role")) == [(project.slug, "annotator")]
        assert self.asked(victim, "GET", "/api/v1/invitations/").json()["results"] == []

    def test_a_token_that_is_less_accepts_nothing(self, project, victim) -> None:
        mine = make_project(victim)
        invitation = invite_person(
            project=project, actor=project.created_by, username="victim", role="annotator"
        )
        for less in ({"role": "annotator"}, {"project": mine}):
            for method, path in (("GET", ""), ("POST", f"{invitation.pk}/accept/"),
                                 ("POST", f"{invitation.pk}/decline/")):  # fmt: skip
                answer = self.asked(victim, method, f"/api/v1/invitations/{path}", **less)
                assert answer.status_code == 403
        assert not project.memberships.filter(user=victim).exists()

    def test_no_token_makes_its_person_owner_or_manager(self, project, victim, client_of) -> None:
        invitation = invite_person(
            project=project, actor=project.created_by, username="victim", role="manager"
        )
        path = f"/api/v1/invitations/{invitation.pk}/accept/"
        assert self.asked(victim, "POST", path).status_code == 403
        assert client_of(victim).post(path, {}, content_type="application/json").status_code == 200

    def test_who_has_to_choose_a_password_is_told_so(self, project) -> None:
        ann, _ = made_account(make_project())
        invitation = invited_unchosen(project, ann, role="viewer")
        answer = self.asked(ann, "POST", f"/api/v1/invitations/{invitation.pk}/accept/")
        assert answer.status_code == 403
        assert "Choose a new one" in json.loads(answer.content)["detail"]


class TestWhoMakesProjects:
    @pytest.fixture(autouse=True)
    def staff_only(self, settings) -> None:
        settings.HYPAC_PROJECT_MAKERS = "staff"

    def test_others_make_none_by_page_or_api(self, victim, client_of) -> None:
        client = client_of(victim)
        assert reverse("project_new") not in text(client.get("/"))
        assert "administrators and staff make projects" in text(client.get("/"))
        fields = {"name": "Mine", "task_type": "number", "human_cost": "1", "currency": "USD"}
        for answer in (client.get("/projects/new/"), client.post("/projects/new/", fields)):
            assert answer.status_code == 403
            assert "administrators and staff make projects" in text(answer)
        answer = client.post("/api/v1/projects/", {"name": "Mine", "task_type": "number"},
                             content_type="application/json")  # fmt: skip
        assert answer.status_code == 403
        assert "administrators and staff" in answer.json()["detail"]
        assert not Project.objects.exists()

    @pytest.mark.parametrize("who", [{"is_staff": True}, {"is_superuser": True}])
    def test_staff_and_administrators_do(self, who, client_of) -> None:
        client = client_of(make_user("helper", **who))
        assert reverse("project_new") in text(client.get("/"))
        fields = {"name": "Mine", "task_type": "number", "human_cost": "1", "currency": "USD"}
        assert client.post("/projects/new/", fields).status_code == 302
        assert Project.objects.count() == 1

    def test_a_copy_is_a_project(self, settings, client_of) -> None:
        settings.HYPAC_PROJECT_MAKERS = "everybody"
        project = make_project()
        settings.HYPAC_PROJECT_MAKERS = "staff"
        owner = client_of(project.created_by)
        manage = text(owner.get(reverse("project_manage", args=[project.slug])))
        assert reverse("project_duplicate", args=[project.slug]) not in manage
        owner.post(reverse("project_duplicate", args=[project.slug]), {"name": "Copy"})
        path = reverse("api_project_duplicate", args=[project.slug])
        answer = owner.post(path, {"name": "Copy"}, content_type="application/json")
        assert answer.status_code == 403
        assert Project.objects.count() == 1


def test_the_password_of_a_person_who_made_their_own_account_is_theirs() -> None:
    user = make_user("ann")
    assert user.check_password(PASSWORD)
    assert user.password_chosen_at is not None
    assert user.made_in is None
