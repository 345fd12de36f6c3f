"""A part of the items is delivered from the page: on a phone, and without scripts."""

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from routing.delivery.deliver import deliver
from routing.models import Delivery
from testbed.worlds import World, make_world
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.sessions import log_in

pytestmark = pytest.mark.django_db(transaction=True)
SIDEWAYS = "box => box.scrollWidth - box.clientWidth"


@pytest.fixture
def world() -> World:
    world = make_world(60)
    run = world.routed(m=30)
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    world.label(limit=2)
    return world


@pytest.mark.parametrize("width", [320, 1280])
def test_what_is_new_is_asked_for_on_a_phone_as_on_a_desk(page: Page, world: World, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    log_in(page.context, world.manager)
    page.goto(reverse("deliveries", args=[world.project.slug]))
    page.get_by_text("Make another delivery").click()
    page.get_by_text("Only a part of the items").click()
    assert page.locator("html").evaluate(SIDEWAYS) == 0
    page.get_by_label("What is new since").select_option(index=1)
    page.get_by_role("button", name="Deliver again").click()
    expect(page.get_by_text("The files are being written").first).to_be_visible()
    world.do("deliver_run")
    page.reload()
    expect(page.get_by_text("2 of the 60 of the project")).to_be_visible()
    expect(page.get_by_text("A part: 2 of 60 items.")).to_be_visible()
    assert page.locator("html").evaluate(SIDEWAYS) == 0


def test_without_scripts_filters_are_chosen_as_well(
    chromium: Browser, live_server: LiveServer, world: World
) -> None:
    context = chromium.new_context(base_url=live_server.url, java_script_enabled=False)
    context.set_default_timeout(TIMEOUT_MS)
    log_in(context, world.manager)
    page = context.new_page()
    page.goto(reverse("deliveries", args=[world.project.slug]))
    page.get_by_text("Make another delivery").click()
    page.get_by_text("Only a part of the items").click()
    page.get_by_label("Delivered label is by").select_option("person")
    page.get_by_role("button", name="Deliver again").click()
    expect(page.get_by_text("The files are being written").first).to_be_visible()
    world.do("deliver_run")
    page.goto(reverse("deliveries", args=[world.project.slug]))
    part = Delivery.objects.latest("pk")
    assert part.filters == {"by": "person"}
    expect(page.get_by_text(f"{part.rows} of the 60 of the project")).to_be_visible()
    context.close()
