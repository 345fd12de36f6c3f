"""A start that waits for a confirmation: its reason is in view beside the box, and the dialog follows it."""

import pytest
from playwright.sync_api import Page, expect

from testbed.worlds import make_world
from tests.browser.sessions import log_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_reason_stands_beside_the_box_and_start_still_asks(page: Page) -> None:
    world = make_world(100)
    log_in(page.context, world.manager)
    page.goto(f"/projects/{world.project.slug}/plan/")
    page.locator("[name=m]").fill("2")  # too few to certify anything
    expect(page.locator("#outlook")).to_contain_text("Too few labels")
    start, dialog = page.get_by_role("button", name="Start the run"), page.get_by_role("dialog")
    start.click()
    reason, box = page.get_by_text("Nothing was started"), page.locator("[name=anyway]")
    expect(reason).to_be_in_viewport()
    expect(box).to_be_in_viewport()
    expect(page.locator(".form-summary")).to_be_focused()
    assert page.locator("details.part[open]").count() == 0
    box.check()
    start.click()  # at once, before what the plan means has followed
    expect(dialog).to_contain_text("Start this run?")
    assert not world.project.runs.exists()
    dialog.get_by_role("button", name="Start the run").click()
    page.wait_for_url("**/runs/1/")
