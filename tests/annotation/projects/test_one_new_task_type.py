"""A task type of one's own is one module, one template and one line of the registry: the rest asks it."""

import json
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.generators import SchemaGenerator

from annotation.labelling import queue
from annotation.models import Label, Project, Settlement
from annotation.projects.label_studio_config import config_of, read_config
from annotation.review.agreement_queries import agreement
from annotation.task_types import TASK_TYPES
from annotation.task_types.base import Choices, Labels, Read, Reading, TaskType
from routing.delivery.deliver import deliver
from routing.models import Delivery
from routing.sources.backends import TaskSpec
from routing.sources.backends.llm.answers import schema_of
from routing.sources.prompts import default_prompt, read_answer
from testbed.factories import add_member, make_items, make_project, make_user
from testbed.worlds import Answers, files_of, make_world
from tests.annotation.labelling.test_annotate import fields

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
ROOT = Path(__file__).resolve().parents[3]
ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
TEMPLATE = """
<div class="field"><label for="answer">{{ task_type.question }}</label>
<input type="date" id="answer" name="value" value="{{ given|default_if_none:'' }}"></div>
"""
ELSEWHERE = {
    *("annotation/task_types/", "annotation/models/", "/migrations/"),
    *("routing/core/losses/", "routing/demo/"),
}
"""What may name a task type: its own module, the default of the column, losses that say what they suit, and
projects that are made of one.
"""


class Date(TaskType):
    """A day. The value is in ISO 8601."""

    name = "date"
    title = "A day of the calendar"
    help = "Right if it is the same day."
    losses = ("zero_one",)
    measure = "interval"
    equal_means = "Two answers are equal here if they are the same day."
    template = "date.html"
    question = "Which day?"
    prompt_question = "On which day did it happen?"
    prompt_ending = "End with the day as YYYY-MM-DD."
    schema_name = "day"

    def read_text(self, text: str, labels: Labels) -> Read:
        try:
            return date.fromisoformat(text.strip()).isoformat(), ""
        except ValueError:
            return None, "no day"

    def parse(self, text: str, choices: Choices) -> Reading:
        found = ISO.findall(text)
        return Reading(*self.read(found[-1], Labels())) if found else Reading(None, "no day in it")

    def refusal(self, raw: Any, reason: str) -> str:
        return _("%(shown)s is no day: write YYYY-MM-DD.") % {"shown": raw}

    def schema(self, choices: Choices) -> dict[str, Any]:
        return {"type": "string", "format": "date"}

    def position(self, value: str) -> float:
        return date.fromisoformat(value).toordinal()

    def is_asked_by(self, tag: str, attributes: Mapping[str, str]) -> bool:
        return False


DAYS = Answers(
    task_type="date",
    choices=(),
    true=lambda random_: date(2020, 1, 1).replace(day=random_.randint(1, 28)).isoformat(),
    right=lambda random_, true: f" {true} ",
    wrong=lambda random_, true: "1999-12-31",
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any) -> None:
    (tmp_path / "date.html").write_text(TEMPLATE)
    (engine,) = settings.TEMPLATES
    settings.TEMPLATES = [{**engine, "DIRS": [*engine["DIRS"], tmp_path]}]
    monkeypatch.setitem(TASK_TYPES, "date", Date())


@pytest.fixture
def project() -> Project:
    """Two items that wait for two people each."""
    project = make_project(task_type="date", choices=(), overlap=2)
    ids = [item.pk for item in make_items(project, 2)]
    queue.create_batch(project=project, item_ids=ids, blind=False, priority=1, entropy=2, overlap=2)
    return project


def shown(client: Client, name: str, *args: Any, **query: Any) -> str:
    return client.get(reverse(name, args=args), query).content.decode()


def test_it_is_chosen_on_the_page_by_the_api_and_by_the_command(client, capsys) -> None:
    user = make_user()
    client.force_login(user)
    page = shown(client, "project_new")
    assert 'value="date"' in page
    assert "A day of the calendar" in page
    assert "Right if it is the same day." in page
    form = {"name": "First", "task_type": "date", "human_cost": "1", "currency": "USD"}
    assert client.post(reverse("project_new"), form).status_code == 302
    body = json.dumps({"name": "Second", "task_type": "date"})
    answer = client.post(reverse("api_projects"), body, content_type="application/json")
    assert (answer.status_code, answer.json()["task_type"]) == (201, "date")
    call_command("project", "create", "Third", user=user.username, task_type="date")
    assert set(Project.objects.values_list("name", "task_type")) == {
        (name, "date") for name in ("First", "Second", "Third")
    }
    assert "A day of the calendar" in shown(client, "project_settings", "first")


def test_it_stands_in_the_schema_of_the_api() -> None:
    schema = SchemaGenerator().get_schema(public=True)
    described = schema["components"]["schemas"]["ProjectBody"]["properties"]["task_type"]
    assert "date" in json.dumps(described) or "date" in described["enum"]


def test_it_is_answered_on_its_own_controls(project, client) -> None:
    client.force_login(add_member(project))
    page = shown(client, "annotate", project.slug)
    assert '<input type="date"' in page
    assert "Which day?" in page
    submit = reverse("annotate_submit", args=[project.slug])
    refused = client.post(submit, {**fields(page), "value": "yesterday"}).content.decode()
    assert "yesterday is no day: write YYYY-MM-DD." in refused
    client.post(submit, {**fields(page), "value": "2024-02-29 "})
    assert Label.objects.get().value == "2024-02-29"


def test_reviewers_decide_with_its_controls_and_agreement_is_by_distance(project, client) -> None:
    for number, day in enumerate(("2024-02-01", "2024-02-02")):
        user = add_member(project)
        for _item in range(2):
            task = queue.claim(project=project, user=user)
            queue.submit(
                user=user,
                work_item_id=task.work_item.pk,
                token=task.token,
                value=day,
                idempotency_key=f"{number}-{task.work_item.pk}",
            )
    client.force_login(add_member(project, "reviewer"))
    page = shown(client, "review", project.slug)
    assert '<input type="date"' in page
    client.post(reverse("review_decide", args=[project.slug]), {**fields(page), "value": "2024-02-02"})
    assert Settlement.objects.get(decided_by__isnull=False).value == "2024-02-02"
    assert agreement(project).interval is not None
    assert "the same day" in shown(client, "agreement", project.slug)


def test_models_are_asked_for_it_and_read(project) -> None:
    spec = TaskSpec("date")
    assert "On which day did it happen?" in default_prompt(spec).template
    assert read_answer("On 2024-02-01, no: on 2024-02-02.", spec).value == "2024-02-02"
    assert read_answer("I do not know", spec).reason == "no day in it"
    assert schema_of(spec)["properties"] == {"day": {"type": "string", "format": "date"}}
    assert read_config(config_of(project)).control.tag == "TextArea"


def test_a_whole_run_delivers_it() -> None:
    world = make_world(200, answers=DAYS, error=(lambda u: 0.2 * u,), costs=("1",))
    run = world.complete(m=80)
    assert (run.loss, run.certificate.certified) == ("zero_one", True)
    deliver(run=run, user=world.manager, formats=["csv", "jsonl", "parquet", "doccano", "label_studio"])
    world.do("deliver_run")
    lines = files_of(Delivery.objects.get())["labels.jsonl"].splitlines()
    labels = [json.loads(line)["label"] for line in lines]
    assert len(labels) == 200
    assert all(ISO.fullmatch(label) for label in labels)


def test_no_other_module_template_or_script_names_a_task_type() -> None:
    names = re.compile(r"[\"'](?:single_choice|multiple_choice|short_text|boxes|masks)[\"']")
    naming = set()
    for folder in ("annotation", "routing", "templates", "static"):
        for path in (ROOT / folder).rglob("*"):
            place = str(path.relative_to(ROOT))
            code = path.suffix in (".py", ".html", ".js", ".css") and "vendor" not in place
            if code and not any(part in place for part in ELSEWHERE) and names.search(path.read_text()):
                naming.add(place)
    assert naming == set()
