"""Review through the API: what waits, decided as on the page, and as blind."""

import pytest

from annotation.labelling import queue
from annotation.labelling.comments import add_comment
from annotation.models import Settlement, WorkItem
from testbed.factories import add_member, make_project
from tests.annotation.apis import Api, problem
from tests.annotation.labelling.several import SeveralDesk

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def several() -> SeveralDesk:
    found = SeveralDesk(overlap=2, people=2)
    found.answer("cat", "dog")
    return found


@pytest.fixture
def api(several) -> Api:
    return Api(several.project, add_member(several.project, "reviewer"))


class TestDisputes:
    def test_shown_without_names_and_decided(self, several, api) -> None:
        (row,) = api.get("reviews/").json()["results"]
        assert [answer["value"] for answer in row["answers"]] == ["cat", "dog"]
        assert [answer["annotator"] for answer in row["answers"]] == [None, None]
        assert row["item"]["text"] == several.items[0].text
        assert set(row["item"]) == {"id", "text", "image", "erased"}
        (named,) = api.get("reviews/", names="true").json()["results"]
        assert [answer["annotator"] for answer in named["answers"]] == [
            person.username for person in several.people
        ]
        decided = api.post("reviews/", work_item=row["work_item"], value="emu", comment="Look closer").json()
        assert (decided["value"], decided["method"], decided["version"]) == ("emu", "adjudicated", 1)
        assert several.record() == "emu"
        assert api.get("reviews/").json()["results"] == []
        again = api.post("reviews/", work_item=row["work_item"], value="cat").json()
        assert again["version"] == 2

    def test_not_blind_names_are_shown(self) -> None:
        several = SeveralDesk(overlap=2, people=2, blind=False)
        several.answer("cat", "dog")
        api = Api(several.project, add_member(several.project, "reviewer"))
        (row,) = api.get("reviews/").json()["results"]
        assert row["answers"][0]["annotator"] == several.people[0].username

    def test_refusals(self, several, api) -> None:
        (row,) = api.get("reviews/").json()["results"]
        work_item = row["work_item"]
        assert problem(api.post("reviews/", work_item=work_item, value="bird"), 400)["field"] == "value"
        second = WorkItem.objects.get(slot=1)
        problem(api.post("reviews/", work_item=second.pk, value="cat"), 404)
        problem(api.post("reviews/", work_item=10**15, value="cat"), 404)
        api.post("reviews/", work_item=work_item, value="cat")
        other = Api(several.project, add_member(several.project, "reviewer"))
        problem(other.post("reviews/", work_item=work_item, value="dog"), 409)
        for role in ("annotator", "viewer"):
            problem(Api(several.project, add_member(several.project, role)).get("reviews/"), 403)
        assert Settlement.objects.get().value == "cat"

    def test_locked_it_has_to_be_confirmed(self, several, api) -> None:
        (row,) = api.get("reviews/").json()["results"]
        api.post("reviews/", work_item=row["work_item"], value="cat")
        queue.lock_batch(batch=several.batch)
        problem(api.post("reviews/", work_item=row["work_item"], value="dog"), 409)
        changed = api.post("reviews/", work_item=row["work_item"], value="dog", confirm=True)
        assert changed.json()["value"] == "dog"

    def test_nothing_is_told_of_an_item_that_does_not_wait(self, several, api) -> None:
        agreed = SeveralDesk(overlap=2, people=2)
        agreed.answer("cat", "cat")
        elsewhere = Api(agreed.project, add_member(agreed.project, "reviewer"))
        first = agreed.batch.work_items.get(slot=0)
        assert elsewhere.get("reviews/").json()["results"] == []
        detail = problem(elsewhere.post("reviews/", work_item=first.pk, value="dog"), 409)["detail"]
        assert detail == "This item does not wait for a decision any more."
        (row,) = api.get("reviews/").json()["results"]
        problem(elsewhere.post("reviews/", work_item=row["work_item"], value="dog"), 404)

    def test_answers_come_in_few_queries(self, django_assert_max_num_queries) -> None:
        several = SeveralDesk(overlap=2, people=2, items=6)
        for _ in range(6):
            several.answer("cat", "dog")
        api = Api(several.project, add_member(several.project, "reviewer"))
        with django_assert_max_num_queries(14):
            rows = api.get("reviews/", page_size=4).json()
        assert len(rows["results"]) == 4
        assert len(api.client.get(rows["next"]).json()["results"]) == 2


class TestFlags:
    def test_flagged_while_labelling_listed_and_resolved(self) -> None:
        several = SeveralDesk(overlap=1, people=1)
        project, person = several.project, several.people[0]
        ann, reviewer = Api(project, person), Api(project, add_member(project, "reviewer"))
        task = ann.post("queue/claim/").json()["task"]
        flagged = ann.post("queue/flag/", work_item=task["work_item"], text="Odd")
        assert flagged.status_code == 200
        (row,) = reviewer.get("flags/").json()["results"]
        assert (row["text"], row["author"], row["item"]["id"]) == ("Odd", person.username, task["item"]["id"])
        problem(ann.get("flags/"), 403)
        problem(ann.post(f"flags/{row['id']}/resolve/"), 403)
        assert reviewer.post(f"flags/{row['id']}/resolve/").json()["resolved_at"]
        problem(reviewer.post(f"flags/{row['id']}/resolve/"), 409)
        assert reviewer.get("flags/").json()["results"] == []

    def test_only_what_somebody_had_and_only_here(self) -> None:
        several = SeveralDesk(overlap=1, people=2)
        project = several.project
        task = Api(project, several.people[0]).post("queue/claim/").json()["task"]
        other = Api(project, several.people[1])
        problem(other.post("queue/flag/", work_item=task["work_item"], text="Odd"), 409)
        elsewhere = make_project()
        comment = add_comment(item=several.items[0], author=project.created_by, text="x", is_flag=True)
        theirs = Api(elsewhere, elsewhere.created_by)
        problem(theirs.post(f"flags/{comment.pk}/resolve/"), 404)
        problem(theirs.post("queue/flag/", work_item=task["work_item"], text="Odd"), 404)


class TestWork:
    def test_what_everybody_skipped_is_listed_and_decided(self) -> None:
        several = SeveralDesk(overlap=1, people=1)
        several.skip(several.people[0])
        project = several.project
        manager = Api(project, add_member(project, "viewer"))
        problem(manager.get("work/"), 403)
        project.memberships.filter(user=project.created_by).update(role="owner")
        owner = Api(project, project.created_by)
        task = owner.post("queue/claim/").json()["task"]
        owner.post("queue/skip/", work_item=task["work_item"], token=task["token"], reason="unclear")
        (row,) = owner.get("work/").json()["results"]
        assert (row["external_id"], row["has_answers"]) == ("t0", False)
        path = f"work/{row['work_item']}/decide/"
        assert problem(owner.post(path, decision="burn"), 400)["field"] == "decision"
        assert problem(owner.post(path), 400)["field"] == "decision"
        problem(owner.post(path, decision="ask_no_more"), 409)
        assert owner.post(path, decision="ask_again").json() == {
            "work_item": row["work_item"],
            "state": "open",
        }
        assert owner.get("work/").json()["results"] == []
        problem(owner.post(path, decision="give_up"), 409)  # somebody can label it again
        for user in (several.people[0], project.created_by):
            several.skip(user)
        assert owner.post(path, decision="give_up").json()["state"] == "unlabelable"
        elsewhere = make_project()
        problem(Api(elsewhere, elsewhere.created_by).post(path, decision="give_up"), 404)


def test_agreement_is_that_of_the_page(several, api) -> None:
    body = api.get("agreement/").json()
    assert (body["items"], body["answers"], body["left_out"]) == (1, 2, False)
    assert body["together"]["equal"]["value"] == 0
    assert {person["annotator"] for person in body["people"]} == {user.username for user in several.people}
    assert body["pairs"][0]["shared"] == 1
    assert [row["choice"] for row in body["choices"]] == ["cat", "dog", "emu"]
    problem(Api(several.project, several.people[0]).get("agreement/"), 403)


def test_items_ahead_are_those_of_the_page() -> None:
    several = SeveralDesk(overlap=1, people=1, items=5)
    ann = Api(several.project, several.people[0])
    tasks = ann.post("queue/ahead/").json()["tasks"]
    assert len(tasks) == 1 + queue.MAX_AHEAD
    held = [task["work_item"] for task in tasks]
    assert ann.post("queue/ahead/", holding=held).json() == {"tasks": []}
    (left,) = ann.post("queue/ahead/", holding=held[1:]).json()["tasks"]
    assert left["work_item"] == held[0]
    assert problem(ann.post("queue/ahead/", holding=["x"]), 400)["field"].startswith("holding")
