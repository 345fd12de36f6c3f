"""A language model is added, its prompt seen filled in, and tried on five items, in a browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotation.jobs import jobs
from annotation.models import Project
from testbed.factories import make_items, make_project
from testbed.scripted_server import ScriptedServer
from tests.browser.test_plan_and_figures import sign_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def server(settings) -> Iterator[ScriptedServer]:
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    with ScriptedServer("cat", models=["tiny"]) as running:
        yield running


@pytest.fixture
def project() -> Project:
    project = make_project(choices=("cat", "dog"), guidelines="Ears decide.")
    make_items(project, 8)
    project.columns = ["text"]
    project.save()
    return project


def work(project: Project) -> None:
    """Do what waits, as a worker would."""
    jobs.run(project.jobs.latest("id").pk)


def test_a_model_is_added_asked_and_tried(page: Page, server: ScriptedServer, project: Project) -> None:
    sign_in(page, project.created_by.username)
    page.goto(f"/projects/{project.slug}/sources/new/")
    page.get_by_label("Where its answers come from").select_option("recorded")
    expect(page.get_by_label("Address of the server")).to_be_hidden()
    page.get_by_label("Where its answers come from").select_option("openai_api")
    page.get_by_label("Name", exact=True).fill("Tiny")
    page.get_by_label("Address of the server").fill(server.url)
    page.get_by_label("Model", exact=True).fill("tiny")
    page.locator("summary", has_text="How it writes").click()
    page.get_by_label("Settings as its makers").select_option("qwen3-instruct-2507")
    page.get_by_role("button", name="Fill in what is recommended").click()
    expect(page.get_by_label("Top-k")).to_have_value("20")
    page.get_by_label("Most tokens of an answer").fill("16")
    page.get_by_label("How its labels are charged").select_option("tokens")
    page.get_by_label("Price of a token").fill("0.25")
    page.get_by_label("Price of one label").fill("1")
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_role("heading", name="How Tiny is asked")).to_be_visible()
    page.get_by_label("What is asked about an item").fill("Cat or dog? {{ guidelines }}\n{{ text }}")
    page.get_by_label("Item to show it with").fill("t4")
    page.get_by_role("button", name="Show it filled in").click()
    expect(page.locator("#preview")).to_contain_text("Cat or dog? Ears decide.\ntext 4")
    page.get_by_role("button", name="Save").click()

    server.script("**Cat**", "<think>Ears up.</think>\ndog", "cow")
    page.get_by_role("button", name="Try it on 5 items").click()
    expect(page.locator("#try progress")).to_be_visible()
    work(project)
    expect(page.locator(".try-row")).to_have_count(5)
    expect(page.locator(".try-figures")).to_contain_text("4 of 5")
    expect(page.locator("#try")).to_contain_text("unknown label 'cow'")
    page.locator("summary", has_text="What it thought").click()
    expect(page.get_by_text("Ears up.")).to_be_visible()
    page.locator("summary", has_text="What it was asked").first.click()
    page.get_by_role("button", name="Use the mean cost as price per label").click()
    expect(page.locator("#messages")).to_contain_text("Plans now reckon with")


def test_it_works_without_javascript(
    chromium: Browser, live_server: LiveServer, server: ScriptedServer, project: Project
) -> None:
    context = chromium.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, project.created_by.username)
    page.goto(f"/projects/{project.slug}/sources/new/")
    page.get_by_label("Where its answers come from").select_option("openai_api")
    page.get_by_label("Name", exact=True).fill("Tiny")
    page.get_by_label("Address of the server").fill(server.url)
    page.get_by_label("Model", exact=True).fill("tiny")
    page.get_by_label("Price of one label").fill("1")
    page.keyboard.press("Enter")  # saves, and does not press the button of the presets
    expect(page.get_by_role("heading", name="How Tiny is asked")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Try it on 5 items").click()
    expect(page.locator("#try progress")).to_be_visible()
    work(project)
    page.reload()
    expect(page.locator(".try-row")).to_have_count(5)
    context.close()
