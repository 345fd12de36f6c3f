"""Who makes a project that cannot go on is told so at once: what is missing, and what to do."""

from html import unescape

import pytest
from django.urls import reverse

from annotation.models import Project
from routing.services.sources import save_source
from testbed.factories import add_member, make_items, make_project, make_user

pytestmark = pytest.mark.django_db


def page_of(client, name: str, *args: object) -> str:
    return unescape(client.get(reverse(name, args=args)).content.decode())


@pytest.fixture
def bare(settings) -> None:
    """A server as it is set up: without a model for embeddings, and without losses of its own."""
    settings.HYPAC_EMBEDDINGS_URL = settings.HYPAC_EMBEDDINGS_MODEL = ""
    settings.HYPAC_LOSSES = []


@pytest.mark.parametrize(
    ("task_type", "setting"), [("long_text", "HYPAC_EMBEDDINGS_URL"), ("code", "HYPAC_LOSSES")]
)
def test_step_1_says_what_long_texts_and_code_need_and_that_it_is_not_there(
    client_of, bare, task_type: str, setting: str
) -> None:
    client = client_of(make_user())
    form = page_of(client, "project_new")
    assert setting in form
    assert "Until then no run of such a project can be planned." in form
    made = client.post(
        reverse("project_new"),
        {"name": "Summaries", "task_type": task_type, "human_cost": "1", "currency": "USD"},
        follow=True,
    )
    assert setting in unescape(made.content.decode())
    body = client.get(reverse("api_project", args=[Project.objects.get().slug])).json()
    assert setting in body["task_type_lacks"]


def test_a_server_that_has_it_says_so(client_of, settings) -> None:
    settings.HYPAC_EMBEDDINGS_URL, settings.HYPAC_EMBEDDINGS_MODEL = "http://127.0.0.1:1/v1", "m"
    settings.HYPAC_LOSSES = ["tests.routing.own_loss:apart"]
    form = page_of(client_of(make_user()), "project_new")
    assert "This server has an embedding model" in form
    assert "This server has a loss of its own" in form
    assert "Until then" not in form


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
    assert "What is missing" in page_of(client, "annotate", project.slug)
