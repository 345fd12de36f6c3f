"""Correcting a label beside the table by keys alone, and views of the table under a name."""

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from annotation.models import Label, Membership
from testbed.factories import make_items, make_project
from testbed.worlds import make_world
from tests.browser.sessions import log_in
from tests.routing.by_people.people import answer, asked

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_enter_opens_an_item_and_its_label_and_escape_leads_back(context: BrowserContext, page: Page) -> None:
    project = make_project(choices=("cat", "dog"))
    make_items(project, 3)
    asked(project)
    answer(project, project.created_by, "cat")
    log_in(context, project.created_by)
    page.goto(f"/projects/{project.slug}/items/?human=cat")
    page.get_by_text("Save view").click()
    page.get_by_label("Name of what is shown now").fill("Cats")
    page.get_by_role("button", name="Save this view").click()
    expect(page.get_by_role("link", name="Cats", exact=True)).to_have_attribute("aria-current", "page")
    page.get_by_role("link", name="All items", exact=True).click()
    expect(page).to_have_url(re.compile(r"/items/$"))
    page.wait_for_load_state(
        "domcontentloaded"
    )  # before its script runs, Enter leads to the page of the item
    expect(page.locator(".chips")).to_have_count(0)
    row = page.locator(".items-table tbody tr").nth(1).locator("th a")
    row.focus()
    page.keyboard.press("Enter")
    field = page.get_by_label("Correct the label")
    expect(field).to_be_visible()
    expect(row).to_be_focused()
    page.keyboard.press("Enter")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(row).to_be_focused()
    page.keyboard.press("Enter")
    field.select_option("dog")
    page.get_by_role("button", name="Save the correction").press("Enter")
    expect(page.get_by_role("status").filter(has_text="The label is corrected.")).to_be_visible()
    expect(page.locator(".items-table tbody tr").nth(1).locator(".of-label")).to_have_text("dog")
    expect(row).to_be_focused()
    assert Label.objects.filter(version=2, value="dog").count() == 1
    page.keyboard.press("Escape")
    expect(page.locator("#item-beside")).to_be_hidden()


def test_a_locked_label_asks_in_words_and_the_table_folds_beside_it(
    context: BrowserContext, page: Page
) -> None:
    world = make_world(120)
    run = world.complete(m=60)
    for item in world.project.items.all():
        item.text, item.external_id = (
            f"{item.external_id} " + "said at length " * 12,
            f"{item.external_id}-{'x' * 40}",
        )
        item.save()
    label = Label.objects.filter(work_item__batch=run.calibration_batch)[0]
    Membership.objects.filter(project=world.project, user=label.annotator).update(role="manager")
    log_in(context, label.annotator)
    page.set_viewport_size({"width": 1200, "height": 800})
    page.goto(f"/projects/{world.project.slug}/items/?q={label.item.external_id}")
    page.wait_for_load_state("load")
    page.locator(".items-table tbody tr th a").first.click()
    page.get_by_role("button", name="Save the correction").click()
    expect(page.get_by_role("alert")).to_have_text(
        "Not changed. Tick the box first to say that you want to change it."
    )
    box = page.get_by_label("This label has already been counted in a result.")
    expect(box).to_have_attribute("aria-invalid", "true")
    expect(box).to_have_accessible_description(re.compile("Tick the box first"))
    scroll = page.locator(".table-scroll")
    for width in (1200, 1040):
        page.set_viewport_size({"width": width, "height": 800})
        assert scroll.evaluate("all => all.scrollWidth - all.clientWidth") <= 0, width
    expect(page.get_by_role("columnheader", name="Uncertainty")).to_be_hidden()
    page.get_by_role("button", name="Close the item").click()
    page.set_viewport_size({"width": 1400, "height": 800})
    expect(page.get_by_role("columnheader", name="Uncertainty")).to_be_visible()
