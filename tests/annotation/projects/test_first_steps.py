"""Who makes a project that cannot go on is told so at once: what is missing, and what to do."""

import re
from html import unescape

import pytest
from django.urls import reverse

from annotation.models import Project
from annotation.projects.lifecycle import duplicate_project
from routing.runs.plan_options import loss_of
from routing.sources.manage import save_source
from testbed.factories import add_member, make_items, make_project, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def page_of(client, name: str, *args: object) -> str:
    return unescape(client.get(reverse(name, args=args)).content.decode())


@pytest.fixture
def bare(settings) -> None:
    """A server as it is set up: without a model for embeddings, and without losses of its own."""
    settings.HYPAC_EMBEDDINGS_URL = settings.HYPAC_EMBEDDINGS_MODEL = ""
    settings.HYPAC_LOSSES = []


def checked_losses(page: str) -> set[str]:
    return set(re.findall(r'name="(loss_\w+)" value="(\w+)"[^>]* checked', page))


def make(client, **fields: str) -> Project:
    answer = client.post(
        reverse("project_new"), {"name": "Some", "human_cost": "1", "currency": "USD", **fields}, follow=True
    )
    assert Project.objects.exists(), unescape(answer.content.decode())
    project = Project.objects.latest("pk")
    project.answer = unescape(answer.content.decode())
    return project


def test_step_1_tells_all_that_is_wrong_at_once(client_of) -> None:
    data = {
        "task_type": "single_choice",
        "labels": "one",
        "currency": "U\x07",
        "question": "a\x07",
        "human_cost": "-1",
    }
    page = client_of(make_user()).post(reverse("project_new"), data).content.decode()
    wrong = re.findall(r'<a href="#id_(\w+)">', page)
    assert wrong == ["name", "question", "labels", "human_cost", "currency"]
    assert "Give at least two labels" in page


def test_step_1_offers_long_texts_and_code_a_loss_that_works_at_once_and_says_what_the_other_needs(
    client_of, bare, settings
) -> None:
    client = client_of(make_user())
    page = page_of(client, "project_new")
    assert "HYPAC_EMBEDDINGS_URL" in page
    assert {("loss_long_text", "token_f1"), ("loss_code", "token_f1")} <= checked_losses(page)
    for task_type, loss in (("long_text", "exact_match"), ("code", "zero_one"), ("code", "")):
        chosen = {f"loss_{task_type}": loss} if loss else {}
        project = make(client, task_type=task_type, **chosen)
        assert (project.loss, project.loss_params) == (loss, {})
        assert "HYPAC_EMBEDDINGS_URL" not in project.answer
    # What the server lacks can be chosen: it may come. One is told at once, and by the API.
    project = make(client, task_type="long_text", loss_long_text="cosine_distance")
    assert "HYPAC_EMBEDDINGS_URL" in project.answer
    body = client.get(reverse("api_project", args=[project.slug])).json()
    assert "HYPAC_EMBEDDINGS_URL" in body["task_type_lacks"]
    assert "HYPAC_EMBEDDINGS_URL" in page_of(client, "overview", project.slug)
    settings.HYPAC_EMBEDDINGS_URL, settings.HYPAC_EMBEDDINGS_MODEL = "http://127.0.0.1:1/v1", "m"
    assert ("loss_long_text", "cosine_distance") in checked_losses(page_of(client, "project_new"))


def test_the_tolerance_of_a_number_is_typed_at_step_1_and_plans_begin_with_it(client_of, bare) -> None:
    client = client_of(make_user())
    page = page_of(client, "project_new")
    assert "With 0.5, 10.4 is right where the label is 10." in page
    project = make(client, task_type="number", tolerance="0.50", tolerance_percent="1")
    assert (project.loss, project.loss_params) == ("numeric", {"absolute": "0.5", "relative": "0.01"})
    plan = page_of(client, "plan", project.slug)
    assert re.search(r'name="tolerance" value="0.5"', plan)
    assert re.search(r'name="tolerance_percent" value="1"', plan)
    refused = client.post(
        reverse("project_new"),
        {"name": "x", "human_cost": "1", "currency": "USD", "task_type": "number", "tolerance": "-1"},
    )
    assert refused.status_code == 200
    assert Project.objects.count() == 1


def test_the_api_takes_a_loss_with_its_parameters_and_refuses_what_does_not_suit(client_of, bare) -> None:
    client, url = client_of(make_user()), reverse("api_projects")
    body = {"name": "n", "task_type": "number", "loss": "numeric", "loss_params": {"absolute": "0.1"}}
    made = client.post(url, body, content_type="application/json").json()
    assert (made["loss"], made["loss_params"]) == ("numeric", {"absolute": "0.1"})
    for wrong, where in (
        ({"loss": "jaccard"}, "loss"),
        ({"loss_params": {"absolute": "-1"}}, "loss_params"),
        ({"loss": "os:remove"}, "loss"),
    ):
        refused = client.post(url, {**body, **wrong}, content_type="application/json")
        assert refused.status_code == 400
        assert where in str(refused.json()["faults"]), refused.json()
    assert Project.objects.count() == 1
    own = reverse("api_project", args=[made["slug"]])
    changed = client.patch(own, {"loss_params": {"relative": "0.02"}}, content_type="application/json")
    assert changed.json()["loss_params"] == {"relative": "0.02"}
    assert client.patch(own, {"loss": "jaccard"}, content_type="application/json").status_code == 400
    project = Project.objects.get()
    assert project.loss == "numeric"
    assert loss_of(project, "", {}).params == {"relative": "0.02"}
    assert loss_of(project, "numeric", {}).params == {}
    copy = duplicate_project(project=project, actor=project.created_by, name="copy")
    assert (copy.loss, copy.loss_params) == ("numeric", {"relative": "0.02"})


def test_who_has_no_model_is_told_on_the_page_where_people_label(client_of) -> None:
    project = make_project()
    client = client_of(project.created_by)
    assert "Bring in the data." in page_of(client, "annotate", project.slug)
    make_items(project, 3)
    for name in ("annotate", "overview"):
        page = page_of(client, name, project.slug)
        assert "There is no model yet" in page
        assert "columns of your data, or a file that you send" in page
    page = page_of(client_of(add_member(project, "annotator")), "annotate", project.slug)
    assert "A manager has to go on: There is no model yet" in page
    params = {"label_column": "text"}
    save_source(
        project=project,
        user=project.created_by,
        name="m",
        backend="recorded",
        params=params,
        cost_per_label=0,
    )
    assert "There is no model yet" not in page_of(client, "annotate", project.slug)
    page = page_of(client, "annotate", project.slug)
    assert "What is missing" in page
    assert f'<a role="button" href="{reverse("plan", args=[project.slug])}">Plan</a>' in page
