"""Logging in by an OpenID Connect provider and out again, in a real browser and at a real provider."""

import pytest
from django.conf import LazySettings
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from annotation.models import Membership, User
from testbed.factories import make_project
from tests.browser.conftest import TIMEOUT_MS
from tests.openid_provider import CLIENT, openid_provider

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_somebody_comes_by_the_provider_and_leaves_it_again(
    chromium: Browser, live_server: LiveServer, settings: LazySettings
) -> None:
    project = make_project(name="Reviews")
    settings.HYPAC_OIDC_GROUPS = {"labellers": {project.slug: "annotator"}}
    settings.HYPAC_OIDC_NAME, settings.HYPAC_OIDC_CLIENT_ID = "the lab", CLIENT
    settings.HYPAC_OIDC_CLIENT_SECRET = "s3cret"
    with openid_provider() as provider:
        settings.HYPAC_OIDC_ISSUER = provider.issuer
        provider.knows("4711", preferred_username="grace", groups=["labellers"])
        # No fixture of ours: this browser has to ask another host.
        context = chromium.new_context(base_url=live_server.url)
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        page.goto(f"/projects/{project.slug}/annotate/")
        page.get_by_role("button", name="Log in with the lab").click()
        page.get_by_role("textbox").fill("4711")
        page.get_by_role("button", name="Authorize").click()
        page.wait_for_url(f"{live_server.url}/projects/{project.slug}/annotate/")
        grace = User.objects.get(username="grace")
        assert Membership.objects.get(project=project, user=grace).role == "annotator"

        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_text("still logged in with the lab")).to_be_visible()
        page.get_by_role("link", name="Log out of the lab, too").click()
        page.wait_for_url(lambda address: not address.startswith(f"{live_server.url}/login"))
        context.close()
