"""Measuring first, in a browser: from "Not measured" to a forecast, with what was typed kept."""

import os

import pytest
from playwright.sync_api import Page, expect

from testbed.worlds import make_world
from tests.browser.sessions import log_in
from tests.browser.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_what_is_measured_is_foretold_and_its_proposals_are_taken_by_click(page: Page) -> None:
    world = make_world(
        1_000, human_cost="10", costs=("3", "0.1"), error=(lambda u: 0.6, lambda u: 0.3 * u**3)
    )
    log_in(page.context, world.manager)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"/projects/{world.project.slug}/plan/")
    forecast = page.locator("#forecast")
    expect(forecast).to_contain_text("Not measured")
    page.locator("[name=epsilon]").fill("4 %")
    shot(page, "before")
    page.get_by_role("button", name="Measure first").click()
    expect(forecast).to_contain_text("Expected net saving")
    expect(page.locator("[name=epsilon]")).to_have_value("4")
    shot(page, "after")
    page.emulate_media(color_scheme="dark")
    shot(page, "dark")
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Leave Model 1 out").click()
    expect(page.get_by_label("Model 1")).to_be_checked()
    expect(page.get_by_role("button", name="Leave Model 1 out")).to_have_count(0)
    page.set_viewport_size({"width": 390, "height": 844})
    shot(page, "390")
    # What is swapped in is as wide as it is until its figures have been fitted.
    wait_until(page, "document.documentElement.scrollWidth <= 390")
    assert not world.project.runs.exists()


def shot(page: Page, name: str) -> None:
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)
