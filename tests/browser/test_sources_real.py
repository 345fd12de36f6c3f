"""The try page against a real model server: the fast tiny model of the repository behind vLLM."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from annotation.jobs import jobs
from routing.models import Source
from testbed.factories import make_items, make_project
from tests.browser.test_plan_and_figures import sign_in
from tests.llm import MODELS, VllmServer, llm_python
from tests.support import missing

pytestmark = [pytest.mark.llm, pytest.mark.browser, pytest.mark.django_db(transaction=True)]
QUESTIONS = ("12+7", "93-8", "6x7", "140+25", "31-40")


@pytest.fixture
def url(settings) -> Iterator[str]:
    """Of a server of the model `fast`: HYPAC_TEST_LLM_URL, else one of the test's own."""
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    if named := os.environ.get("HYPAC_TEST_LLM_URL"):
        yield named
        return
    python = llm_python()
    if python is None or not (MODELS / "fast").exists():
        missing("llm", "There is no engine, or no model for it: run `make setup-llm`.")
    with VllmServer(python, "fast", "--generation-config", "vllm") as server:
        yield server.url


def test_five_items_are_tried_on_a_real_model(page: Page, url: str) -> None:
    project = make_project(choices=(), task_type="number")
    make_items(project, QUESTIONS)
    sign_in(page, project.created_by.username)
    page.goto(f"/projects/{project.slug}/sources/new/")
    page.get_by_label("Where its answers come from").select_option("openai_api")
    page.get_by_label("Name", exact=True).fill("Fast")
    page.get_by_label("Address of the server").fill(url)
    page.get_by_label("Model", exact=True).fill("fast")
    page.locator("summary", has_text="How it writes").click()
    page.get_by_label("Most tokens of an answer").fill("24")
    page.get_by_label("How its labels are charged").select_option("tokens")
    page.get_by_label("Price of one label").fill("1")
    page.get_by_role("button", name="Save").click()
    page.get_by_label("System message").fill("")
    page.get_by_label("What is asked about an item").fill("{{ text }}")
    page.get_by_role("button", name="Save").click()

    page.get_by_role("button", name="Try it on 5 items").click()
    assert jobs.run(project.jobs.latest("id").pk)
    expect(page.locator(".try-row")).to_have_count(5)
    rows = Source.objects.get().tries.get().rows
    assert sorted(row["asked"][0]["content"] for row in rows) == sorted(QUESTIONS)
    assert all(row["tokens_in"] > 0 and 0 < row["tokens_out"] <= 24 for row in rows)
    assert all(row["served_model"] == "fast" and row["latency_ms"] > 0 for row in rows)
    # A real engine's probabilities: not the same for every answer.
    assert len({row["score"] for row in rows}) > 1 or not any(row["value"] for row in rows)
    page.get_by_role("button", name="Use the mean cost as price per label").click()
    expect(page.locator("#messages")).to_contain_text("Plans now reckon with")
