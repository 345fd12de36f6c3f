"""The table of items in a real browser: ticking, changing what was ticked, taking it back, on a phone."""

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from annotation.models import Comment, Project
from testbed.factories import make_items, make_project
from tests.browser.sessions import log_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def project() -> Project:
    project = make_project(choices=("cat", "dog"))
    make_items(project, [f"{'red' if n % 2 else 'blue'} {n}" for n in range(12)])
    return project


@pytest.fixture
def table(context: BrowserContext, page: Page, project: Project) -> Page:
    log_in(context, project.created_by)
    page.goto(f"/projects/{project.slug}/items/")
    return page


def test_ticked_items_are_flagged_and_it_is_taken_back(table: Page) -> None:
    boxes = table.locator('input[name="item"]')
    boxes.nth(1).click()
    boxes.nth(4).click(modifiers=["Shift"])
    expect(table.locator("#ticked")).to_have_text("4 ticked")
    table.get_by_label("All on this page").check()
    expect(table.locator("#ticked")).to_have_text("12 ticked")
    table.get_by_label("All on this page").uncheck()
    boxes.nth(2).check()
    table.get_by_label("What to do with them").select_option("flag")
    table.get_by_role("button", name="Go on…").click()
    table.get_by_label("Comment").fill("odd")
    table.get_by_role("button", name="Yes, for 1 item").click()
    expect(table.locator("#messages")).to_contain_text("Done: 1 item.")
    assert Comment.objects.get().item.external_id == "t2"
    table.get_by_role("link", name="Take it back").click()
    table.get_by_role("button", name="Take it back").click()
    expect(table.locator("#messages")).to_contain_text("Taken back.")
    assert Comment.objects.filter(resolved_at__isnull=False).count() == 1


def test_filters_leave_a_short_address_and_fit_a_phone(table: Page) -> None:
    table.set_viewport_size({"width": 320, "height": 700})
    # No button is needed.
    table.get_by_label("Search in names and texts").fill("red")
    expect(table.locator(".chips li")).to_have_count(1)
    # Empty filters and the usual order are not in the address.
    expect(table).to_have_url(re.compile(r"/items/\?q=red$"))
    table.wait_for_load_state("networkidle")
    assert table.evaluate("document.documentElement.scrollWidth") == 320
    table.get_by_label("All on this page").check()
    expect(table.locator("#ticked")).to_have_text("6 ticked")
    table.get_by_role("link", name="Take away the filter").click()
    expect(table.locator('input[name="item"]')).to_have_count(12)


def test_an_item_stands_beside_its_row_and_keys_go_on_from_it(table: Page, project: Project) -> None:
    rows = table.locator(".items-table tbody tr")
    assert rows.first.bounding_box()["y"] <= 300
    assert rows.first.bounding_box()["height"] == 36
    table.get_by_role("link", name="t2", exact=True).click()
    beside = table.get_by_role("complementary", name="The item that was chosen")
    expect(beside).to_contain_text("blue 2")
    # The page stays; the item's own address is a link in it.
    expect(table).to_have_url(re.compile(r"/items/$"))
    table.keyboard.press("ArrowDown")
    expect(beside).to_contain_text("red 3")
    expect(beside.get_by_role("link", name="t3")).to_have_attribute("href", re.compile(r"/items/\d+/$"))
    table.keyboard.press("Space")
    expect(table.locator("#ticked")).to_have_text("1 ticked")
    expect(rows.nth(3).locator("input")).to_be_checked()
    table.keyboard.press("Escape")
    expect(beside).to_be_hidden()
    expect(table.get_by_role("link", name="t3", exact=True)).to_be_focused()
