"""Passkeys in a real browser, with the authenticator that it has for tests."""

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Passkey
from testbed.factories import PASSWORD, make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def with_authenticator(page: Page) -> None:
    """A device that knows its holder by finger, and always finds it."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True}
    options |= {"hasUserVerification": True, "isUserVerified": True, "automaticPresenceSimulation": True}
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def with_password(page: Page) -> None:
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()


def log_out(page: Page) -> None:
    page.get_by_role("button", name="Log out").click()


def test_a_passkey_is_made_and_is_the_second_step_and_lets_in_by_itself(page: Page) -> None:
    make_user("ann")
    with_authenticator(page)
    page.goto("/account/second-step/passkeys/new/")
    with_password(page)
    page.get_by_label("Name", exact=True).fill("laptop")
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("button", name="Make the passkey").click()
    page.get_by_role("button", name="I have kept them").click()
    expect(page.get_by_role("rowheader", name="laptop")).to_be_visible()

    log_out(page)
    with_password(page)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()

    log_out(page)
    page.goto("/login/?next=/account/second-step/")
    page.get_by_role("link", name="Log in with a passkey").click()
    page.get_by_role("button", name="Choose a passkey").click()
    expect(page.get_by_role("rowheader", name="laptop")).to_be_visible()
    passkey = Passkey.objects.get()
    assert passkey.last_used_at
    assert passkey.sign_count > 0

    passkey.delete()
    log_out(page)
    page.goto("/login/passkey/")
    page.get_by_role("button", name="Choose a passkey").click()
    expect(page.get_by_text("That passkey does not let you in")).to_be_visible()
