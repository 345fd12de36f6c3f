"""Invitations and new passwords in a real browser: their pages send no referrer that holds a token."""

import pytest
from django.core.cache import cache
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotation.models import User
from testbed.factories import PASSWORD, made_account, make_project
from tests.browser.conftest import TIMEOUT_MS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
GOOD = "a-long-enough-4711"


def log_in(page: Page, user: User) -> None:
    page.goto("/login/")
    page.get_by_label("Username").fill(user.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Projects")).to_be_visible()


@pytest.fixture
def other(chromium: Browser, live_server: LiveServer):
    """Somebody else's browser."""
    context = chromium.new_context(base_url=live_server.url)
    context.set_default_timeout(TIMEOUT_MS)
    yield context.new_page()
    context.close()


def test_a_link_is_copied_and_somebody_joins_with_it(
    context: BrowserContext, page: Page, other: Page
) -> None:
    cache.clear()
    project = make_project(name="Birds")
    log_in(page, project.created_by)
    page.goto(f"/projects/{project.slug}/members/")
    invite = page.locator("#invitations")
    invite.get_by_label("Note").fill("for Carl")
    invite.get_by_role("button", name="Make the link").click()
    link = page.get_by_label("Link").input_value()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == link

    referrers: list[str] = []
    other.on("request", lambda request: referrers.append(request.headers.get("referer", "")))
    other.goto(link)
    expect(other.get_by_text("to take part in “Birds”")).to_be_visible()
    other.get_by_label("Username").fill("carl")
    other.get_by_label("Password", exact=True).fill(GOOD)
    other.get_by_label("The password once more").fill(GOOD)
    other.get_by_role("button", name="Make the account and join").click()
    expect(other.get_by_text("You take part in Birds now.")).to_be_visible()
    assert not any("/join/" in referrer and len(referrer) > 40 for referrer in referrers)
    assert project.memberships.get(user__username="carl").role == "annotator"


def test_somebody_sets_a_new_password_by_a_link(page: Page, other: Page) -> None:
    cache.clear()
    project = make_project()
    ann, _password = made_account(project)
    log_in(page, project.created_by)
    page.goto(f"/projects/{project.slug}/members/{ann.pk}/")
    page.get_by_role("button", name="Make the link").click()
    link = page.get_by_label("Link").input_value()
    other.goto(link)
    other.get_by_label("New password", exact=True).fill(GOOD)
    other.get_by_label("New password confirmation").fill(GOOD)
    other.get_by_role("button", name="Set the password").click()
    other.get_by_label("Username").fill(ann.username)
    other.get_by_label("Password").fill(GOOD)
    other.get_by_role("button", name="Log in").click()
    expect(other.get_by_role("heading", name="Projects")).to_be_visible()
