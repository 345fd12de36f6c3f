"""The API of people and data: who may, what is answered, how errors are told."""

from typing import Any

import pytest
from django.db.models import Value
from django.db.models.functions import Concat
from django.test import Client

from annotation.labelling import queue
from annotation.models import Item, Job, Label, Project, Skip, User
from annotation.permissions import ROLES_BY_ACTION
from testbed.factories import add_member, make_image_items, make_items, make_project, make_user
from tests.annotation.apis import Api, problem

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

ROLES = ("owner", "manager", "reviewer", "annotator", "viewer")


@pytest.fixture
def project() -> Project:
    project = make_project(guidelines="# Look twice")
    items = make_items(project, ["one", "two", "three"], data={"confidence": "0.97", "label": "secret"})
    items += make_image_items(project, 1, data={"confidence": "0.97", "label": "secret"})
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=True, priority=1, entropy=3
    )
    return project


@pytest.fixture
def api(project) -> Api:
    return Api(project, add_member(project, "annotator"))


def answer(task: dict[str, Any], value: str = "cat", key: str = "k", **more: Any) -> dict[str, Any]:
    return {
        "work_item": task["work_item"],
        "token": task["token"],
        "value": value,
        "idempotency_key": key,
        **more,
    }


class TestWhoMay:
    READS = {"": "project.view", "items/": "items.view", "jobs/": "jobs.view"}
    POSTS = ("claim", "submit", "skip", "heartbeat", "release", "undo", "correct")

    @pytest.mark.parametrize("role", ROLES)
    def test_by_role(self, project, role) -> None:
        api = Api(project, add_member(project, role))
        for path, action in self.READS.items():
            allowed = role in ROLES_BY_ACTION[action]
            assert api.get(path).status_code == (200 if allowed else 403), path
            if path != "items/":
                assert api.post(path).status_code == 405
        for name in self.POSTS:
            response = api.post(f"queue/{name}/")
            # Without a body, those who may are told what is missing.
            assert (response.status_code == 403) == (role not in ROLES_BY_ACTION["label"]), name
            assert api.get(f"queue/{name}/").status_code == 405

    @pytest.mark.parametrize("path", ["nothing", "projects/%0A/jobs/4/cancel/", "projects/a%0D%0Ab/", "%0A"])
    def test_what_no_address_matches_is_told_as_a_problem_to_anybody(self, client, path) -> None:
        problem(client.post(f"/api/v1/{path}"), 404)

    def test_for_others_the_project_does_not_exist(self, project) -> None:
        stranger = make_user("stranger")
        make_project(stranger)
        for path in self.READS:
            problem(Api(project, stranger).get(path), 404)
            problem(Api(project, None).get(path), 401)
        for name in self.POSTS:
            problem(Api(project, stranger).post(f"queue/{name}/"), 404)
            problem(Api(project, None).post(f"queue/{name}/"), 401)

    def test_nothing_changes_without_the_csrf_token(self, project) -> None:
        client = Client(enforce_csrf_checks=True)
        client.force_login(add_member(project))
        response = client.post(f"/api/v1/projects/{project.slug}/queue/claim/")
        assert "CSRF" in problem(response, 403)["detail"]

    def test_objects_of_another_project_are_not_there(self, project, api) -> None:
        other = make_project(User.objects.get(pk=api.client.session["_auth_user_id"]))
        elsewhere = Api(other, other.created_by)
        task = api.post("queue/claim/").json()["task"]
        for path in ("submit", "skip", "heartbeat", "release"):
            held = {"work_item": task["work_item"], "token": task["token"]}
            body = {"submit": answer(task), "skip": {**held, "reason": "other"}}.get(path, held)
            problem(elsewhere.post(f"queue/{path}/", **body), 404)
        label = api.post("queue/submit/", **answer(task)).json()["label"]
        problem(elsewhere.post("queue/correct/", label=label["id"], value="dog", idempotency_key="c"), 404)
        job = Job.objects.create(project=project, kind="import")
        problem(elsewhere.get(f"jobs/{job.pk}/"), 404)

    def test_own_projects_only_are_listed(self, project) -> None:
        make_project()
        user = add_member(project, "viewer")
        client = Client()
        client.force_login(user)
        (listed,) = client.get("/api/v1/projects/").json()["results"]
        assert (listed["slug"], listed["role"]) == (project.slug, "viewer")


class TestReading:
    def test_a_project_has_its_choices(self, api) -> None:
        body = api.get().json()
        assert body["guidelines"] == "# Look twice"
        assert [choice["key"] for choice in body["choices"]] == ["cat", "dog"]

    def test_items_page_by_cursor_and_show_content_only(self, project) -> None:
        api = Api(project, project.created_by)
        first = api.get("items/", page_size=3).json()
        assert [item["text"] for item in first["results"]] == ["one", "two", "three"]
        second = api.client.get(first["next"]).json()
        assert second["next"] is None
        (image,) = second["results"]
        assert image["image"].startswith(f"/api/v1/projects/{project.slug}/images/")
        assert set(image) == {"id", "external_id", "text", "image", "erased"}

    def test_jobs(self, project) -> None:
        job = Job.objects.create(project=project, kind="import", error="line 3: bad", params={"file": 1})
        job.problems.create(where="line 3", message="bad")
        api = Api(project, project.created_by)
        (listed,) = api.get("jobs/").json()["results"]
        assert (listed["id"], listed["error"]) == (job.pk, "line 3: bad")
        body = api.get(f"jobs/{job.pk}/").json()
        assert body["problems"] == [{"where": "line 3", "line": None, "column": "", "message": "bad"}]
        assert "params" not in body


class TestQueue:
    def test_claim_submit_and_the_next_one_until_nothing_is_left(self, api) -> None:
        task = api.post("queue/claim/").json()["task"]
        assert api.post("queue/claim/").json()["task"]["token"] == task["token"]
        texts = set()
        for number in range(4):
            texts.add(task["item"]["text"])
            response = api.post("queue/submit/", **answer(task, key=f"k{number}", lead_time_ms=900))
            assert response.status_code == 200
            task = response.json()["task"]
        assert task is None
        assert texts == {"one", "two", "three", ""}
        assert Label.objects.filter(lead_time_ms=900).count() == 4
        assert api.post("queue/claim/").json() == {"task": None}

    def test_no_prediction_score_or_column_comes_along(self, api) -> None:
        answers = [api.post("queue/claim/")]
        task = answers[0].json()["task"]
        answers.append(api.post("queue/submit/", **answer(task)))
        answers.append(api.post("queue/undo/"))
        task = answers[1].json()["task"]
        answers.append(
            api.post("queue/skip/", work_item=task["work_item"], token=task["token"], reason="other")
        )
        for response in answers:
            assert response.status_code == 200
            assert b"secret" not in response.content
            found = response.json()["task"]
            # A moment or a token may hold these digits by chance.
            said = response.json()["task"] | {"expires_at": "", "token": ""}
            assert "0.97" not in str(said)
            names = {"work_item", "item", "name", "external_id", "token"}
            assert set(found) == {*names, "expires_at", "draft_value", "correcting", "suggestion"}
            assert set(found["item"]) == {"id", "text", "image", "erased"}

    def test_the_whole_name_is_for_whoever_may_list_the_items(self, project) -> None:
        # Folders of an archive may be classes.
        Item.objects.filter(project=project).update(external_id=Concat(Value("cats/"), "external_id"))
        for role, may in (("annotator", False), ("manager", True)):
            api = Api(project, add_member(project, role))
            task = api.post("queue/claim/").json()["task"]
            named = Item.objects.get(pk=task["item"]["id"]).external_id
            assert task["name"] == named.removeprefix("cats/")
            assert task["external_id"] == (named if may else None)
            ahead = api.post("queue/ahead/", holding=[task["work_item"]]).json()["tasks"]
            assert all((one["external_id"] is not None) == may for one in ahead)

    def test_errors_name_the_field(self, api) -> None:
        task = api.post("queue/claim/").json()["task"]
        assert problem(api.post("queue/submit/", **answer(task, "bird")), 400)["field"] == "value"
        body = problem(api.post("queue/submit/", work_item="x", token="t"), 400)
        assert set(body["errors"]) == {"work_item", "value", "idempotency_key"}
        assert body["field"] == "work_item"
        huge = {**answer(task), "work_item": 10**30}
        assert problem(api.post("queue/submit/", **huge), 400)["field"] == "work_item"
        problem(api.client.post(api.base + "queue/submit/", "{", content_type="application/json"), 400)
        problem(api.client.post(api.base + "queue/submit/", {"a": 1}), 415)
        problem(api.client.post(api.base + "queue/submit/", "[]", content_type="application/json"), 400)

    @pytest.mark.parametrize("path", TestWhoMay.POSTS)
    def test_a_field_that_is_not_known_is_refused(self, api, path: str) -> None:
        detail = problem(api.post(f"queue/{path}/", tokn="x"), 400)
        assert detail["field"] == "tokn"
        assert "'tokn'" in detail["detail"]
        assert Label.objects.count() == 0

    def test_twice_is_once_and_another_answer_is_a_conflict(self, api) -> None:
        task = api.post("queue/claim/").json()["task"]
        first = api.post("queue/submit/", **answer(task)).json()
        assert api.post("queue/submit/", **answer(task)).json()["label"] == first["label"]
        problem(api.post("queue/submit/", **answer(task, "dog")), 409)
        assert problem(api.post("queue/submit/", **answer(task, key="new")), 409)["detail"].startswith(
            "You have labelled this item already."
        )
        assert Label.objects.count() == 1

    def test_heartbeat_and_release(self, api) -> None:
        task = api.post("queue/claim/").json()["task"]
        held = {"work_item": task["work_item"], "token": task["token"]}
        assert api.post("queue/heartbeat/", **held).json()["expires_at"] > task["expires_at"]
        assert api.post("queue/release/", **held).json() == {"released": True}
        assert api.post("queue/release/", **held).json() == {"released": False}
        problem(api.post("queue/heartbeat/", **held), 409)

    def test_undo_and_correct(self, project, api) -> None:
        task = api.post("queue/claim/").json()["task"]
        api.post("queue/submit/", **answer(task))
        back = api.post("queue/undo/").json()["task"]
        assert back["correcting"]["value"] == "cat"
        correction = {"label": back["correcting"]["id"], "value": "dog", "idempotency_key": "c"}
        assert api.post("queue/correct/", **correction).json()["label"]["version"] == 2
        other = Api(project, add_member(project))
        problem(other.post("queue/correct/", **correction), 403)

    def test_a_skip_brings_the_next_one(self, api) -> None:
        task = api.post("queue/claim/").json()["task"]
        held = {"work_item": task["work_item"], "token": task["token"]}
        assert problem(api.post("queue/skip/", **held, reason="bored"), 400)["field"] == "reason"
        after = api.post("queue/skip/", **held, reason="broken").json()["task"]
        assert after["work_item"] != task["work_item"]

    def test_whatever_is_sent_again_does_once_what_it_does(self, api) -> None:
        """The Python client sends these without an Idempotency-Key."""

        def twice(path: str, **body: Any) -> dict[str, Any]:
            first, again = (api.post(f"queue/{path}/", **body) for _ in range(2))
            assert (first.status_code, again.status_code) == (200, 200)
            leases = [found.json() for found in (first, again)]
            for task in (found.get("task") for found in leases):
                if task:
                    del task["expires_at"]
            assert leases[0] == leases[1]
            return dict(leases[0])

        task = twice("claim")["task"]
        after = twice("skip", work_item=task["work_item"], token=task["token"], reason="other")["task"]
        assert Skip.objects.count() == 1
        stored = twice("submit", **answer(after))
        changed = twice("correct", label=stored["label"]["id"], value="dog", idempotency_key="c")
        assert changed["label"]["version"] == Label.objects.count() == 2
        assert stored["task"]["work_item"] not in (task["work_item"], after["work_item"])
