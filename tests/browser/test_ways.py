"""The dialog that goes to places, by keyboard; and where the focus is when a form comes back."""

import re

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from testbed.factories import add_member, make_project
from tests.browser.sessions import log_in
from tests.browser.test_accessibility import AXE, LOOK

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_ctrl_k_leads_to_a_page_by_a_part_of_its_name(page: Page) -> None:
    project = make_project()
    log_in(page.context, project.created_by)
    page.goto(reverse("overview", args=[project.slug]))
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog", name="Go to")
    expect(dialog.get_by_role("link", name="Items", exact=False).first).to_be_visible()
    page.evaluate(AXE)
    assert page.evaluate(LOOK, None) == []
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.get_by_role("link", name="Go to").click()
    page.keyboard.type("deliv")
    expect(dialog.get_by_role("link")).to_have_count(2)
    page.keyboard.press("ArrowDown")
    expect(dialog.get_by_role("link").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"{reverse('deliveries', args=[project.slug])}$"))


def test_the_desk_keeps_its_keys(page: Page) -> None:
    project = make_project()
    log_in(page.context, add_member(project, "annotator"))
    page.goto(reverse("annotate", args=[project.slug]))
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Go to")).to_be_visible()


def test_a_form_that_comes_back_has_the_focus_on_what_is_wrong_and_leads_there(page: Page) -> None:
    project = make_project()
    log_in(page.context, project.created_by)
    page.goto(reverse("project_settings", args=[project.slug]))
    page.get_by_label("Name", exact=True).first.fill("")
    page.get_by_role("button", name="Save").first.click()
    expect(page.locator(".form-summary")).to_be_focused()
    expect(page.locator(".form-summary")).to_be_in_viewport()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name", exact=True).first).to_be_focused()
