"""Filters of a delivery are whole fields; cells of the API's page stand below each other on a phone."""

import pytest
from django.urls import reverse
from playwright.sync_api import BrowserContext, Page, expect

from annotation.labelling import queue
from annotation.models import Project
from routing.delivery.deliver import deliver
from routing.sources.manage import save_source
from testbed.factories import make_items, make_project
from testbed.worlds import make_world
from tests.browser.sessions import log_in

pytestmark = pytest.mark.django_db(transaction=True)
SIDEWAYS = "box => box.scrollWidth - box.clientWidth"
CORNERS = """fields => fields.map(field => getComputedStyle(field)).map(
    style => style.borderTopLeftRadius === style.borderTopRightRadius)"""


def test_filters_of_a_delivery_are_fields_of_their_own(page: Page) -> None:
    world = make_world(60)
    deliver(run=world.routed(m=30), user=world.manager)
    world.do("deliver_run")
    log_in(page.context, world.manager)
    page.goto(reverse("deliveries", args=[world.project.slug]))
    page.get_by_text("Make another delivery").click()
    page.get_by_text("Only a part of the items").click()
    group = page.get_by_role("group", name="What filters find")
    expect(group).to_be_visible()
    corners = group.locator("input, select").evaluate_all(CORNERS)
    assert len(corners) > 5
    assert all(corners)
    page.get_by_label("Delivered label is by").focus()
    assert group.evaluate("box => getComputedStyle(box).boxShadow") == "none"


def test_the_api_is_read_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/api/v1/docs/")
    # The description is made when it is first asked for: with some hundred addresses that takes its time.
    page.locator("#operations-tag-projects").click()
    operation = page.locator("#operations-projects-get_projects")
    operation.locator("button").first.click()
    parameter = operation.locator("tr[data-param-name=q]")
    answer = operation.locator("tr.response[data-code='200']")
    for row in (parameter, answer):
        name, description = (row.locator("> td").nth(number).bounding_box() for number in (0, 1))
        assert name is not None
        assert description is not None
        assert description["y"] >= name["y"] + name["height"]
        assert description["width"] > 300
    expect(answer.get_by_text("No links")).to_be_hidden()
    assert page.locator("html").evaluate(SIDEWAYS) == 0


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_long_badge_stays_in_its_card(page: Page, width: int, language: str) -> None:
    project = make_project(human_cost=1)
    for guess in ("cat", "dog", "bird"):
        for number in range(40):
            make_items(project, 1, data={"guess": guess, "sure": f"{0.5 + number / 100}"})
    Project.objects.filter(pk=project.pk).update(columns=["guess", "sure"])
    project.created_by.language = language
    project.created_by.save()
    params = {"label_column": "guess", "confidence_column": "sure"}
    save_source(
        project=project,
        user=project.created_by,
        name="fast",
        backend="recorded",
        params=params,
        cost_per_label=0,
    )
    page.set_viewport_size({"width": width, "height": 800})
    log_in(page.context, project.created_by)
    page.goto(reverse("plan", args=[project.slug]))
    badge = page.locator("#outlook .badge.warn")
    expect(badge).to_be_visible()
    inside, around = badge.bounding_box(), page.locator("#outlook").bounding_box()
    assert inside is not None
    assert around is not None
    assert inside["x"] + inside["width"] <= around["x"] + around["width"]
    assert page.locator("html").evaluate(SIDEWAYS) == 0


def test_the_size_of_the_text_stands_beside_the_question(context: BrowserContext, page: Page) -> None:
    project = make_project(guidelines="Read all of it.")
    queue.create_batch(
        project=project,
        item_ids=[item.pk for item in make_items(project, 2)],
        blind=False,
        priority=1,
        entropy=1,
    )
    log_in(context, project.created_by)
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/projects/{project.slug}/annotate/")
    question, larger, links, said = (
        found.bounding_box()
        for found in (
            page.get_by_role("heading", level=1),
            page.get_by_role("button", name="Larger text"),
            page.get_by_role("button", name="My labels"),
            page.locator("#said"),
        )
    )
    assert question
    assert larger
    assert links
    assert said
    assert larger["y"] < question["y"] + question["height"]
    assert said["y"] < links["y"] + links["height"]
    assert links["y"] < said["y"] + said["height"], "no line for what is said alone"


def test_what_has_happened_leaves_the_header_free(context: BrowserContext, page: Page) -> None:
    project = make_project()
    log_in(context, project.created_by)
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/projects/{project.slug}/sources/")
    page.get_by_role("button", name="Save").click()
    toast = page.locator(".toasts .note")
    expect(toast).to_contain_text("Saved.")
    # It is taken out and put back before (toasts.js).
    expect(toast.get_by_role("button", name="Dismiss")).to_be_visible()
    header, shown = page.locator(".site-header").bounding_box(), toast.bounding_box()
    assert header
    assert shown
    assert shown["y"] >= header["y"] + header["height"]
