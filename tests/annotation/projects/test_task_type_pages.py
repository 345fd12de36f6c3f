"""Making a project of each task type and answering it, on the pages without JavaScript and by the API."""

import html
import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.labelling import queue
from annotation.models import Draft, Label, Project
from annotation.task_types import TASK_TYPES
from testbed.factories import add_member, make_items, make_project, make_user
from tests.annotation.labelling.test_annotate import PART, fields

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
CHOICES = ("cat", "dog", "emu")


@pytest.fixture
def page(client_of):
    """The annotation page of a project of a task type, and what was typed sent from it."""

    class Page:
        def __init__(self, task_type: str) -> None:
            choices = CHOICES if TASK_TYPES[task_type].has_labels else ()
            self.project = make_project(task_type=task_type, choices=choices)
            items = make_items(self.project, 2)
            queue.create_batch(
                project=self.project, item_ids=[item.pk for item in items], blind=True, priority=1, entropy=2
            )
            self.user = add_member(self.project)
            self.client: Client = client_of(self.user)

        def html(self, **query: Any) -> str:
            return self.client.get(self.url("annotate"), query).content.decode()

        def url(self, name: str) -> str:
            return reverse(name, args=[self.project.slug])

        def send(self, *, headers: dict[str, str] | None = None, name: str = "submit", **typed: Any) -> Any:
            query = {"correct": typed.pop("correct")} if "correct" in typed else {}
            data = {**fields(self.html(**query)), **typed}
            return self.client.post(self.url(f"annotate_{name}"), data, headers=headers)

    return Page


def text(response: Any) -> str:
    return html.unescape(response.content.decode())


class TestNewProject:
    def post(self, client: Client, **change: str) -> Any:
        data = {"name": "New", "task_type": "number", "labels": "", "human_cost": "1", "currency": "USD"}
        return client.post(reverse("project_new"), {**data, **change})

    @pytest.mark.parametrize("task_type", TASK_TYPES)
    def test_what_is_asked_for_is_chosen(self, client_of, task_type):
        client = client_of(make_user())
        labels = "a\nb" if TASK_TYPES[task_type].has_labels else ""
        answer = self.post(client, task_type=task_type, labels=labels)
        project = Project.objects.get()
        assert answer.url == reverse("import_upload", args=[project.slug])
        assert project.task_type == task_type
        assert project.choices.count() == len(labels.split())
        settings = text(client.get(reverse("project_settings", args=[project.slug])))
        assert str(TASK_TYPES[task_type].title) in settings
        assert ("Save the labels" in settings) == bool(labels)

    def test_labels_that_were_typed_before_are_left_out_where_none_are_asked_for(self, client_of):
        self.post(client_of(make_user()), labels="a\nb")
        assert not Project.objects.get().choices.exists()

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"task_type": "multiple_choice"}, "at least two"),
            ({"task_type": "guess"}, "guess is not one of the available choices"),
            ({"task_type": ""}, "This field is required"),
        ],
    )
    def test_what_is_missing_is_told_and_the_choice_stays(self, client_of, change, words):
        shown = text(self.post(client_of(make_user()), **change))
        assert words in shown
        assert not Project.objects.exists()
        if change["task_type"] == "multiple_choice":
            assert re.search(r'value="multiple_choice"[^>]* checked', shown)


class TestAnnotate:
    @pytest.mark.parametrize(
        ("task_type", "typed", "stored", "told"),
        [
            ("multiple_choice", {"value": ["emu", "cat"]}, ["cat", "emu"], "cat, emu"),
            ("multiple_choice", {"none": "yes"}, [], "none of them"),
            ("number", {"value": "1234.50"}, "1234.5", "1234.5"),
            ("math", {"value": "\\frac{1}{2}"}, "\\frac{1}{2}", "\\frac{1}{2}"),
            ("short_text", {"value": " Ada "}, "Ada", "Ada"),
            ("long_text", {"value": "one\r\n" + "two " * 40}, "one\n" + "two " * 39 + "two", "one two"),
            ("code", {"value": "  <b>\r\n"}, "  <b>", "<b>"),
        ],
    )
    def test_an_answer_is_stored_and_told_and_can_be_corrected(self, page, task_type, typed, stored, told):
        page = page(task_type)
        page.send(**typed)
        label = Label.objects.get()
        assert label.value == stored
        following = page.html()
        assert f"Saved: {told}" in html.unescape(following)
        assert "<b>" not in following
        correcting = page.html(correct=label.pk)
        if task_type == "multiple_choice":
            ticked = re.findall(r'value="(\w+)"[^>]* checked', correcting)
            assert ticked == stored
        elif task_type in ("long_text", "code"):
            # A browser drops the first line break of the field, and no other character.
            inside = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", correcting, re.DOTALL)
            assert inside
            assert html.unescape(inside[1]) == stored
        else:
            assert f'name="value" value="{html.escape(str(stored))}"' in correcting
        page.send(name="correct", correct=label.pk, **typed)
        assert Label.objects.count() == 1

    @pytest.mark.parametrize("headers", [None, PART])
    @pytest.mark.parametrize(
        ("task_type", "typed", "words"),
        [
            ("number", {"value": "about 3,5"}, "cannot be stored as a number"),
            ("number", {"value": "3,500"}, "without a comma"),
            ("short_text", {"value": "x" * 1001}, "1,000"),
            ("multiple_choice", {}, "Tick each label that fits"),
            ("multiple_choice", {"value": ["cat"], "none": "yes"}, "one of the two"),
            ("multiple_choice", {"value": ["cat", "gone"]}, "not one of this project's labels"),
        ],
    )
    def test_what_was_typed_is_not_lost_when_it_is_refused(self, page, task_type, typed, words, headers):
        page = page(task_type)
        shown = text(page.send(headers=headers, **typed))
        assert words in shown
        assert not Label.objects.exists()
        if "value" in typed and isinstance(typed["value"], str):
            assert f'value="{typed["value"]}"' in shown
        elif "value" in typed:
            assert re.search(r'value="cat"[^>]* checked', shown)

    def test_what_was_typed_for_an_item_does_not_go_to_another(self, page):
        page = page("number")
        data = {**fields(page.html()), "value": "no number"}
        queue.release_all(project=page.project, user=page.user)
        other = page.client
        first = data["work_item"]
        queue.give_up(work_item=page.project.work_batches.get().work_items.get(pk=first), actor=page.user)
        shown = text(other.post(page.url("annotate_submit"), data))
        assert fields(shown)["work_item"] != first
        assert "no number" not in shown.split('id="label-form"')[1]

    def test_an_empty_list_that_came_too_late_is_told(self, page):
        page = page("multiple_choice")
        data = fields(page.html())
        queue.release_all(project=page.project, user=page.user)
        page.client.post(page.url("annotate_submit"), {**data, "none": "yes"})
        assert Draft.objects.get().value == []
        while fields(page.html())["work_item"] != data["work_item"]:
            page.send(value=["cat"])
        assert "Your earlier answer “none of them” came too late" in text(
            page.client.get(page.url("annotate"))
        )


class TestApi:
    def make(self, client: Client, **body: Any) -> Any:
        return client.post("/api/v1/projects/", json.dumps(body), content_type="application/json")

    def test_a_project_of_numbers_is_made_and_answered(self, client_of):
        user = make_user()
        client = client_of(user)
        made = self.make(client, name="Sums", task_type="number", guidelines="Add.", human_cost="2.5")
        assert made.status_code == 201
        assert made.json()["task_type"] == "number"
        assert (made.json()["choices"], made.json()["role"]) == ([], "owner")
        project = Project.objects.get()
        assert str(project.human_cost) == "2.500000"
        items = make_items(project, 1)
        queue.create_batch(
            project=project, item_ids=[item.pk for item in items], blind=False, priority=1, entropy=2
        )
        base = f"/api/v1/projects/{project.slug}/queue/"
        task = client.post(base + "claim/", "{}", content_type="application/json").json()["task"]
        sent = {"work_item": task["work_item"], "token": task["token"], "idempotency_key": "k"}
        refused = client.post(
            base + "submit/", json.dumps({**sent, "value": "x"}), content_type="application/json"
        )
        assert (refused.status_code, refused.json()["field"]) == (400, "value")
        stored = client.post(
            base + "submit/", json.dumps({**sent, "value": 3.50}), content_type="application/json"
        )
        assert stored.json()["label"]["value"] == "3.5"

    def test_choices_come_with_what_is_known_of_them(self, client_of):
        choices = [{"name": "Cat", "key": "c", "color": "#112233"}, {"name": "Dog"}]
        made = self.make(client_of(make_user()), name="Pets", task_type="multiple_choice", choices=choices)
        assert [choice["key"] for choice in made.json()["choices"]] == ["c", "Dog"]
        assert made.json()["choices"][0]["color"] == "#112233"

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "name"),
            ({"name": "x"}, "choices"),
            ({"name": "x", "task_type": "guess"}, "task_type"),
            ({"name": "x", "task_type": "number", "choices": [{"name": "a"}, {"name": "b"}]}, "choices"),
            ({"name": "x", "choices": [{"name": "a"}, {"name": ""}]}, "choices[1].name"),
            ({"name": "x", "choices": [{"name": "a", "hotkey": "u"}, {"name": "b"}]}, "label 1"),
            ({"name": "x", "task_type": "code", "human_cost": "-1"}, "human_cost"),
            ({"name": "x", "task_type": "code", "owner": "me"}, "owner"),
        ],
    )
    def test_what_cannot_be_made_is_refused_naming_the_field(self, client_of, body, field):
        answer = self.make(client_of(make_user()), **body)
        assert answer.status_code == 400
        assert answer.json()["field"] == field
        assert not Project.objects.exists()

    def test_nobody_makes_one_without_logging_in(self):
        assert self.make(Client(), name="x", task_type="code").status_code == 401
