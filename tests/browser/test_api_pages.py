"""Pages for whoever writes programs: the API, its tokens, webhooks, connections."""

import re
from typing import Any

import httpx
import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.models import ApiToken, Connection, Webhook, WebhookDelivery
from annotation.outside.secrets import decrypt, encrypt
from annotation.outside.webhooks.manage import create_webhook, send_test
from annotation.people.tokens import make_token
from testbed.factories import make_project
from tests.browser.sessions import log_in

pytestmark = pytest.mark.django_db(transaction=True)
REFUSED = "Nobody accepts connections at hooks.example.org: is the server running, and is it the right port?"
ENDED = {"next_attempt_at": None, "duration_ms": 83}
SIDEWAYS = "box => box.scrollWidth - box.clientWidth"


@pytest.fixture
def webhook() -> Webhook:
    """One that took a message, refused another, and waits for a third."""
    project = make_project()
    made = create_webhook(
        project=project,
        actor=project.created_by,
        url=f"https://hooks.example.org/{'a-long-path-' * 8}",
        events=["run.calibration_done"],
    )[0]
    states: list[dict[str, Any]] = [
        {"state": "delivered", "attempts": 1, "status": 200, **ENDED},
        {"state": "failed", "attempts": 10, "error": REFUSED, **ENDED},
        {"state": "pending"},
    ]
    for state in states:
        sent = send_test(webhook=made, actor=project.created_by)
        WebhookDelivery.objects.filter(pk=sent.pk).update(event="run.calibration_done", **state)
    return made


@pytest.mark.parametrize("width", [320, 360, 390, 1280])
def test_messages_of_a_webhook_are_read_without_scrolling_sideways(
    page: Page, webhook: Webhook, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    log_in(page.context, webhook.created_by)
    page.goto(reverse("webhook", args=[webhook.project.slug, webhook.pk]))
    rows = page.locator("table.messages tbody tr")
    pending, failed, delivered = (rows.nth(number) for number in range(3))
    assert page.locator("html").evaluate(SIDEWAYS) == 0
    assert page.locator(".table-scroll").evaluate(SIDEWAYS) == 0
    for row, height in ((pending, 100), (failed, 240), (delivered, 135)):
        box = row.bounding_box()
        assert box is not None
        assert box["height"] < height
    for words in ("run.calibration_done", "Failed", "is it the right port?", "Send again"):
        expect(failed.get_by_text(words).first).to_be_in_viewport(ratio=1)
    delivered.locator("summary").click()
    assert page.locator("html").evaluate(SIDEWAYS) == 0
    expect(delivered.get_by_text('"type":"webhook.test"')).to_be_visible()


@pytest.mark.parametrize("width", [320, 390])
def test_a_token_is_found_and_revoked_on_a_phone(page: Page, width: int) -> None:
    user = make_project().created_by
    make_token(user=user, name="export of the warehouse, every Monday", role="viewer")
    page.set_viewport_size({"width": width, "height": 800})
    log_in(page.context, user)
    page.goto("/account/tokens/")
    assert page.locator("html").evaluate(SIDEWAYS) == 0
    assert page.locator(".table-scroll").evaluate(SIDEWAYS) == 0
    heading = "cell => getComputedStyle(cell, '::before').content"
    assert page.locator("tbody td").first.evaluate(heading) == '"Role "'  # and not "As", before "as you"
    page.get_by_role("button", name="Revoke export of the warehouse").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("The token is revoked")).to_be_visible()


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_words_of_a_box_stand_beside_it(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    log_in(page.context, make_project().created_by)
    page.goto("/account/")
    words = "Single keys give labels and commands"
    box, label = page.get_by_label(words).bounding_box(), page.get_by_text(words).bounding_box()
    assert box is not None
    assert label is not None
    assert label["x"] >= box["x"] + box["width"]
    page.get_by_text(words).click()
    expect(page.get_by_label(words)).not_to_be_checked()
    expect(page.get_by_label(words)).to_have_accessible_description(re.compile("Switch it off"))


def test_a_connection_is_changed_and_keeps_its_secret(page: Page) -> None:
    project = make_project()
    connection = Connection.objects.create(
        project=project,
        name="lake",
        endpoint="https://store.example.org",
        bucket="bucket",
        access_key="key",
        secret=encrypt("what nobody sees"),
        created_by=project.created_by,
    )
    log_in(page.context, project.created_by)
    page.goto(reverse("connections", args=[project.slug]))
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_label("Secret key")).to_have_value("")
    page.get_by_label("Name", exact=True).fill("river")
    page.get_by_label("Folder in the bucket").fill("in/bound")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The connection is saved")).to_be_visible()
    expect(page.get_by_text("bucket/in/bound/")).to_be_visible()
    connection.refresh_from_db()
    assert (connection.name, connection.prefix) == ("river", "in/bound/")
    assert decrypt(connection.secret) == "what nobody sees"
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert Connection.objects.exists()


def test_the_api_is_dark_where_the_browser_is(page: Page) -> None:
    page.goto("/api/v1/docs/")
    page.locator("#operations-tag-projects").wait_for()
    expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
    page.emulate_media(color_scheme="dark")
    expect(page.locator("body")).to_have_css("background-color", "rgb(28, 32, 34)")


def test_the_api_can_be_read_and_tried_with_files_of_this_server_alone(page: Page) -> None:
    """The fixture `page` fails on a breach of the content security policy and on other hosts."""
    project = make_project()
    log_in(page.context, project.created_by)
    page.goto("/api/v1/docs/")
    # The description is made when it is first asked for: with some hundred addresses that takes its time.
    page.locator("#operations-tag-projects").click()
    operation = page.locator("#operations-projects-get_projects")
    operation.locator("button").first.click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table .microlight").first).to_contain_text(project.slug)


def test_a_token_is_made_shown_once_and_revoked(page: Page, live_server) -> None:
    project = make_project()
    log_in(page.context, project.created_by)
    page.goto("/account/")
    page.get_by_role("button", name="Your tokens").click()
    page.get_by_label("What it is for").fill("nightly import")
    page.get_by_role("button", name="Make a token").click()
    secret = page.get_by_label("Token").input_value()
    asked = {"Authorization": f"Token {secret}"}
    assert httpx.get(f"{live_server.url}/api/v1/projects/", headers=asked).status_code == 200
    page.get_by_role("button", name="I have copied it").click()
    assert secret not in page.content()
    page.get_by_role("button", name="Revoke nightly import").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("The token is revoked")).to_be_visible()
    assert httpx.get(f"{live_server.url}/api/v1/projects/", headers=asked).status_code == 401
    assert not ApiToken.objects.exists()
