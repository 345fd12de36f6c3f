"""Members and invitations through the API."""

import re

import pytest

from annotation.models import Invitation, Membership, Project
from annotation.people.invitations import accept
from testbed.factories import add_member, make_project, make_user
from tests.annotation.apis import Api, problem

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def owner(project) -> Api:
    return Api(project, project.created_by)


class TestMembers:
    def test_listed_and_shown_with_their_work(self, project, owner) -> None:
        ben = make_user("ben", first_name="Ben", last_name="B", email="ben@example.org")
        add_member(project, "annotator", ben)
        shown = owner.get(f"members/{ben.pk}/").json()
        work = shown.pop("work")
        assert shown == owner.get("members/").json()["results"][1]
        assert (shown["username"], shown["name"], shown["role"]) == ("ben", "Ben B", "annotator")
        assert (work["labels"], work["cost"], work["agreement"]) == (0, "0.00", None)
        rows = owner.get("members/").json()["results"]
        assert [row["role"] for row in rows] == ["owner", "annotator"]
        assert [row["username"] for row in owner.get("members/", role="annotator").json()["results"]] == [
            "ben"
        ]
        # Nobody is told the address of another one.
        assert b"example.org" not in owner.get("members/").content

    def test_refusals_name_the_field(self, project, owner) -> None:
        assert problem(owner.post("members/", username="nobody", role="viewer"), 400)["field"] == "username"
        assert problem(owner.post("members/", username="x", role="boss"), 400)["field"] == "role"
        member = add_member(project)
        again = owner.post("members/", username=member.username, role="viewer")
        assert problem(again, 400)["field"] == "username"

    def test_names_that_nobody_has_are_tried_a_few_times_only(self, project, owner) -> None:
        for number in range(30):
            problem(owner.post("members/", username=f"nobody{number}", role="viewer"), 400)
        refused = owner.post("members/", username=make_user("there").username, role="viewer")
        assert "Try again in" in problem(refused, 429)["detail"]
        seconds = int(refused["Retry-After"])
        assert 0 < seconds <= 120
        form = {"add-username": "there", "add-role": "viewer"}
        page = owner.client.post(f"/projects/{project.slug}/members/add/", form)
        assert page.status_code == 429
        assert 0 < int(page["Retry-After"]) <= seconds
        assert "Try again in" in page.content.decode()
        assert not Invitation.objects.exists()

    def test_names_that_somebody_has_are_no_attempts(self, owner) -> None:
        for number in range(35):
            person = make_user(f"person{number}")
            assert owner.post("members/", username=person.username, role="viewer").status_code == 201

    def test_changes_are_made_all_or_none(self, project, owner) -> None:
        ann = add_member(project)
        path = f"members/{ann.pk}/"
        changed = owner.patch(path, role="reviewer", max_per_day=5, active=False).json()
        assert (changed["role"], changed["max_per_day"], changed["max_labels"]) == ("reviewer", 5, None)
        assert not changed["active"]
        assert owner.patch(path, active=True).json()["max_per_day"] == 5
        assert owner.patch(path, max_per_day=None, max_labels=9).json()["max_labels"] == 9
        problem(owner.patch(f"members/{project.created_by_id}/", max_labels=1, role="viewer"), 409)
        mine = Membership.objects.get(project=project, user=project.created_by)
        assert (mine.role, mine.max_labels) == ("owner", None)
        assert problem(owner.patch(path, max_labels=-1), 400)["field"] == "max_labels"

    def test_the_last_owner_stays(self, project, owner) -> None:
        problem(owner.delete(f"members/{project.created_by_id}/"), 409)
        problem(owner.patch(f"members/{project.created_by_id}/", active=False), 409)
        second = add_member(project, "owner")
        assert owner.delete(f"members/{second.pk}/").status_code == 204
        problem(owner.get(f"members/{second.pk}/"), 404)

    def test_owners_decide_and_others_look(self, project) -> None:
        ann = add_member(project)
        for role in ("manager", "reviewer", "viewer"):
            api = Api(project, add_member(project, role))
            assert api.get("members/").status_code == 200
            problem(api.post("members/", username="x", role="viewer"), 403)
            problem(api.patch(f"members/{ann.pk}/", role="owner"), 403)
            problem(api.delete(f"members/{ann.pk}/"), 403)
            problem(api.get("invitations/"), 403)
        problem(Api(project, ann).get("members/"), 403)

    def test_members_of_other_projects_are_not_there(self, owner) -> None:
        stranger = add_member(make_project())
        for answer in (
            owner.get(f"members/{stranger.pk}/"),
            owner.patch(f"members/{stranger.pk}/", role="viewer"),
            owner.delete(f"members/{stranger.pk}/"),
        ):
            problem(answer, 404)
        assert stranger.memberships.count() == 1


class TestInvitations:
    def test_the_link_is_shown_once_and_leads_in(self, project, owner) -> None:
        made = owner.post("invitations/", role="annotator", max_uses=2, note="for Ben")
        assert made.status_code == 201
        assert "no-store" in made["Cache-Control"]
        body = made.json()
        assert (body["state"], body["uses"], body["note"]) == ("open", 0, "for Ben")
        path = re.fullmatch(r"http://testserver(/join/.+)", body.pop("link"))[1]
        assert owner.get("invitations/").json()["results"] == [body]
        assert path.split("/")[2] not in owner.get("invitations/").content.decode()
        assert owner.client.get(path).status_code == 200
        assert owner.delete(f"invitations/{body['id']}/").status_code == 204
        assert owner.get("invitations/").json()["results"][0]["state"] == "revoked"
        assert owner.client.get(path).status_code == 410

    def test_one_that_was_accepted_says_so(self, project, owner) -> None:
        make_user("ben")
        assert owner.post("members/", username="ben", role="viewer").status_code == 201
        invitation = project.invitations.get()
        accept(invitation=invitation, user=invitation.user)
        assert owner.get("invitations/").json()["results"][0]["state"] == "accepted"

    def test_refusals(self, project, owner) -> None:
        assert problem(owner.post("invitations/", role="annotator", days=1000), 400)["field"] == "days"
        assert problem(owner.post("invitations/"), 400)["field"] == "role"
        elsewhere = make_project()
        Api(elsewhere, elsewhere.created_by).post("invitations/", role="viewer")
        theirs = Invitation.objects.get()
        problem(owner.delete(f"invitations/{theirs.pk}/"), 404)
        theirs.refresh_from_db()
        assert theirs.revoked_at is None
