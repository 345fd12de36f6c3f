"""The panel with the document of a page: by keyboard, from document to document, without scripts."""

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from testbed.factories import make_project
from tests.browser.sessions import log_in
from tests.browser.test_accessibility import AXE, LOOK

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_help_opens_beside_the_page_and_leads_to_other_documents(page: Page) -> None:
    project = make_project()
    log_in(page.context, project.created_by)
    address = reverse("members", args=[project.slug])
    page.goto(address)
    link, panel = page.get_by_role("link", name="Help", exact=True), page.get_by_role("dialog", name="Help")
    link.focus()
    page.keyboard.press("Enter")
    expect(panel.get_by_role("heading", name="People and projects")).to_be_focused()
    page.evaluate(AXE)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        assert page.evaluate(LOOK, None) == []
    panel.get_by_role("link", name="All documents").click()
    panel.get_by_role("link", name="What can be chosen").click()
    expect(panel.get_by_role("heading", name="What can be chosen")).to_be_focused()
    assert page.url.endswith(address)
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(link).to_be_focused()


def test_it_fits_a_phone_and_begins_at_its_heading(page: Page) -> None:
    project = make_project()
    log_in(page.context, project.created_by)
    page.set_viewport_size({"width": 390, "height": 700})
    page.goto(reverse("prices", args=[project.slug]))
    page.get_by_role("link", name="Help", exact=True).click()
    heading = page.get_by_role("heading", name="What a model costs")
    expect(heading).to_be_in_viewport()
    expect(heading).to_be_focused()
    assert page.evaluate("document.querySelector('#help > article').scrollWidth") <= 390


def test_without_scripts_it_is_a_page(chromium: Browser, live_server: LiveServer) -> None:
    project = make_project()
    context = chromium.new_context(base_url=live_server.url, java_script_enabled=False)
    log_in(context, project.created_by)
    page = context.new_page()
    page.goto(reverse("deliveries", args=[project.slug]))
    page.get_by_role("link", name="Help", exact=True).click()
    expect(page.get_by_role("heading", name="Deliveries", level=1)).to_be_visible()
    context.close()
