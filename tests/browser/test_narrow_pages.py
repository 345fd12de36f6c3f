"""Filters of a delivery are whole fields; cells of the API's page stand below each other on a phone."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from routing.services.deliveries import deliver
from tests.browser.sessions import log_in
from tests.routing.worlds import make_world

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
