"""Projects through the API: changed, put away, copied and deleted as on the pages."""

import json

import pytest
from django.test import Client

from annotation.models import AuditEvent, Job, Project
from testbed.factories import add_member, make_items, make_project, make_user, remove_deleted
from tests.annotation.apis import Api, problem

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def project() -> Project:
    return make_project(name="Reviews", guidelines="Look twice")


@pytest.fixture
def owner(project) -> Api:
    return Api(project, project.created_by)


class TestList:
    def test_in_pages_by_name_and_archived_ones_apart(self, owner) -> None:
        user = owner.client.get("/api/v1/projects/").wsgi_request.user
        for name in ("Mail", "More mail"):
            make_project(user, name=name)
        client = owner.client
        first = client.get("/api/v1/projects/", {"page_size": 2}).json()
        assert [row["name"] for row in first["results"]] == ["More mail", "Mail"]
        second = client.get(first["next"]).json()
        assert [row["name"] for row in second["results"]] == ["Reviews"]
        found = client.get("/api/v1/projects/", {"q": "more"}).json()["results"]
        assert [row["slug"] for row in found] == ["more-mail"]
        owner.post("archive/")
        assert len(client.get("/api/v1/projects/").json()["results"]) == 2
        (archived,) = client.get("/api/v1/projects/", {"archived": "true"}).json()["results"]
        assert archived["slug"] == "reviews"
        assert archived["archived_at"]
        assert problem(client.get("/api/v1/projects/", {"archivd": "true"}), 400)["field"] == "archivd"

    def test_a_new_project_says_where_it_is(self, project) -> None:
        client = Client()
        client.force_login(project.created_by)
        body = {"name": "Mail", "choices": [{"name": "spam"}, {"name": "ham"}], "human_cost": "0.25"}
        made = client.post("/api/v1/projects/", json.dumps(body), content_type="application/json")
        assert made.status_code == 201
        assert made["Location"] == "/api/v1/projects/mail/"
        got = client.get(made["Location"])
        assert got.json() == made.json()
        assert got["ETag"] == made["ETag"]
        assert got.json()["human_cost"] == "0.25"
        nested = body | {"choices": [{"name": "spam"}, {"nme": "ham"}]}
        refused = client.post("/api/v1/projects/", json.dumps(nested), content_type="application/json")
        assert problem(refused, 400)["field"].startswith("choices")


class TestChange:
    def test_only_what_is_given_changes(self, project, owner) -> None:
        body = owner.patch(name="Other", lease_seconds=60).json()
        assert (body["name"], body["lease_seconds"], body["guidelines"]) == ("Other", 60, "Look twice")
        project.refresh_from_db()
        assert project.name == "Other"
        assert AuditEvent.objects.filter(project=project, action="project.changed").count() == 1

    def test_what_cannot_be_is_refused_by_name(self, project, owner) -> None:
        assert problem(owner.patch(lease_seconds=1), 400)["field"] == "lease_seconds"
        assert problem(owner.patch(slug="x"), 400)["field"] == "slug"
        assert problem(owner.patch(overlap_share="0"), 400)["field"] == "overlap_share"
        problem(Api(project, add_member(project, "reviewer")).patch(name="x"), 403)
        project.refresh_from_db()
        assert project.name == "Reviews"

    def test_who_changes_what_they_have_not_seen_is_told(self, project, owner) -> None:
        tag = owner.get()["ETag"]
        # Of what is told to this person: another role is told something else.
        assert Api(project, add_member(project, "viewer")).get()["ETag"] != tag
        changed = owner.send("PATCH", "", {"name": "One"}, **{"If-Match": tag})
        assert changed.status_code == 200
        assert changed["ETag"] != tag
        problem(owner.send("PATCH", "", {"name": "Two"}, **{"If-Match": tag}), 412)
        assert (
            owner.send("PATCH", "", {"name": "Two"}, **{"If-Match": f'"x", {changed["ETag"]}'}).status_code
            == 200
        )
        project.refresh_from_db()
        assert project.name == "Two"

    def test_annotators_are_not_told_what_a_label_costs(self, project, owner) -> None:
        assert owner.get().json()["human_cost"] == "1.00"
        assert Api(project, add_member(project, "annotator")).get().json()["human_cost"] is None

    def test_nor_can_they_guess_it_from_the_tag(self, project, owner, settings) -> None:
        tag = owner.get()["ETag"]
        settings.SECRET_KEY = "only-for-tests-" + "another" * 8
        here = Api(project, project.created_by).get()
        again = here["ETag"]
        assert again != tag  # what is told is not enough to make it
        like_it = make_project(name=project.name, guidelines=project.guidelines)
        theirs = Api(like_it, like_it.created_by).get()
        assert theirs.json()["choices"] == here.json()["choices"]
        assert theirs["ETag"] != again  # nor is a project of one's own with each cost in turn

    def test_choices(self, project, owner) -> None:
        choices = owner.get("choices/").json()["choices"]
        choices[0]["name"] = "Kitten"
        choices.append({"name": "emu"})
        stored = owner.put("choices/", choices=choices).json()["choices"]
        assert [(choice["key"], choice["name"]) for choice in stored] == [
            ("cat", "Kitten"),
            ("dog", "dog"),
            ("emu", "emu"),
        ]
        assert owner.get("choices/").json()["choices"] == stored
        assert problem(owner.put("choices/", choices=choices[:1]), 400)["field"] == "choices"
        problem(Api(project, add_member(project, "annotator")).put("choices/", choices=choices), 403)


class TestLife:
    def test_archived_nothing_changes_until_it_is_taken_out(self, project, owner) -> None:
        Job.objects.create(project=project, kind="import", state="running")
        problem(owner.post("archive/"), 409)
        project.jobs.all().delete()
        assert owner.post("archive/").json()["archived_at"]
        assert owner.post("archive/").status_code == 200
        assert "archived" in problem(owner.patch(name="x"), 403)["detail"]
        assert owner.get().status_code == 200
        assert owner.post("unarchive/").json()["archived_at"] is None
        assert owner.patch(name="x").status_code == 200

    def test_a_copy_has_no_items_and_members_only_from_owners(self, project, owner) -> None:
        make_items(project, 2)
        manager = add_member(project, "manager")
        made = owner.post("duplicate/", name="Copy", with_members=True)
        assert made.status_code == 201
        assert made["Location"] == "/api/v1/projects/copy/"
        copy = Project.objects.get(slug="copy")
        assert copy.items.count() == 0
        assert copy.memberships.get().user == project.created_by
        assert copy.invitations.get(user=manager, role="manager")
        mine = Api(project, manager)
        assert (
            problem(mine.post("duplicate/", name="Mine", with_members=True), 403)["field"] == "with_members"
        )
        assert mine.post("duplicate/", name="Mine").json()["role"] == "owner"
        assert problem(owner.post("duplicate/"), 400)["field"] == "name"

    def test_deleted_by_owners_who_say_its_name(self, project, owner) -> None:
        problem(Api(project, add_member(project, "manager")).delete("?name=Reviews"), 403)
        assert problem(owner.delete(), 400)["field"] == "name"
        assert problem(owner.delete("?name=reviews"), 400)["field"] == "name"
        assert Project.objects.filter(pk=project.pk).exists()
        assert owner.delete("?name=Reviews").status_code == 204
        problem(owner.get(), 404)
        problem(owner.delete("?name=Reviews"), 404)
        remove_deleted(project)
        problem(owner.get(), 404)


def test_the_trail_in_pages_with_filters(project, owner) -> None:
    owner.patch(name="One")
    owner.patch(name="Two")
    rows = owner.get("audit/", action="project.changed").json()["results"]
    assert [row["data"]["name"][1] for row in rows] == ["Two", "One"]
    assert rows[0]["actor"] == project.created_by.username
    assert owner.get("audit/", actor="nobody").json()["results"] == []
    assert owner.get("audit/", since=rows[0]["created_at"], page_size=1).json()["results"] == rows[:1]
    problem(Api(project, add_member(project, "reviewer")).get("audit/"), 403)
    assert problem(owner.get("audit/", since="yesterday"), 400)["field"] == "since"


class TestTypes:
    """What has another type than the schema says is refused, not turned into it."""

    @pytest.mark.parametrize(
        ("path", "body", "field"),
        [
            ("invitations/", {"role": "viewer", "note": 0}, "note"),
            ("duplicate/", {"name": "Copy", "with_members": 0}, "with_members"),
            ("queue/release/", {"work_item": 1, "token": 7}, "token"),
        ],
    )
    def test_a_number_is_neither_text_nor_no(self, path, body, field, db) -> None:
        project = make_project()
        client = Client()
        client.force_login(project.created_by)
        answer = client.post(f"/api/v1/projects/{project.slug}/{path}", body, content_type="application/json")
        assert (answer.status_code, answer.json()["field"]) == (400, field)
        assert not project.invitations.exists()
        assert Project.objects.count() == 1

    def test_so_is_one_inside_another(self, db) -> None:
        client = Client()
        client.force_login(make_user("ada"))
        body = {"name": "Reviews", "choices": [{"name": "good"}, {"name": 5}]}
        answer = client.post("/api/v1/projects/", body, content_type="application/json")
        assert (answer.status_code, answer.json()["field"]) == (400, "choices[1].name")
        assert not Project.objects.exists()
