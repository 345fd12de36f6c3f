"""Sizes of text and of controls, as a browser lays them out."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from testbed.factories import add_member, make_items, make_project
from tests.browser.sessions import log_in
from tests.browser.test_labelling import ask, ready

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MEASURED = "part => [part.getBoundingClientRect().height, parseFloat(getComputedStyle(part).fontSize)]"


def test_tables_and_controls_have_one_height_and_text_of_14_pixels(page: Page) -> None:
    project = make_project()
    add_member(project)
    log_in(page.context, project.created_by)
    page.goto(reverse("members", args=[project.slug]))
    row, cell = page.locator("table.people tbody tr").first, page.locator("table.people tbody td").first
    assert row.evaluate(MEASURED)[0] == pytest.approx(36, abs=1)
    assert cell.evaluate(MEASURED)[1] == 14
    for control in ("main button:not(.small)", "main select", "main input:not([type=hidden])"):
        assert page.locator(control).first.evaluate(MEASURED) == [36, 14]


def test_whoever_labels_chooses_the_size_of_the_text_and_finds_it_again(page: Page) -> None:
    project = make_project()
    ask(project, make_items(project, 1))
    log_in(page.context, add_member(project))
    page.goto(reverse("annotate", args=[project.slug]))
    ready(page)
    item = page.locator("#item-text")
    usual = item.evaluate(MEASURED)[1]
    assert usual >= 16
    larger = page.get_by_role("button", name="Larger text")
    larger.click()
    chosen = item.evaluate(MEASURED)[1]
    assert chosen > usual
    page.reload()
    assert item.evaluate(MEASURED)[1] == chosen
    for _ in range(5):
        larger.press("Enter")
    expect(larger).to_have_attribute("aria-disabled", "true")
    for _ in range(9):
        page.get_by_role("button", name="Smaller text").press("Enter")
    assert item.evaluate(MEASURED)[1] == 16


def test_what_happened_is_said_over_the_page_and_errors_stay(page: Page) -> None:
    project = make_project()
    member = add_member(project)
    log_in(page.context, project.created_by)
    page.clock.install()
    page.goto(reverse("member", args=[project.slug, member.pk]))
    top = "document.querySelector('h1').getBoundingClientRect().top"
    before = page.evaluate(top)
    page.get_by_role("button", name="Save the limits").click()
    said = page.locator("#messages .note")
    expect(said).to_contain_text("The limits of")
    assert page.evaluate(top) == before
    page.clock.fast_forward(60_000)
    expect(said).to_have_count(0)
    page.goto(reverse("member", args=[project.slug, project.created_by_id]))
    page.get_by_role("button", name="Remove", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(page.locator("#messages .error")).to_contain_text("only owner")
    page.clock.fast_forward(60_000)
    dismiss = page.get_by_role("button", name="Dismiss")
    dismiss.press("Enter")
    expect(said).to_have_count(0)
    expect(page.locator("main")).to_be_focused()
