"""A French browser in Auckland: the words are French, and from the second page on the zone is known."""

import re

import pytest
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from annotation import queue
from testbed.factories import PASSWORD, add_member, make_items, make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_language_and_zone_come_from_the_browser(chromium: Browser, live_server: LiveServer) -> None:
    project = make_project()
    items = [item.pk for item in make_items(project, 2)]
    queue.create_batch(project=project, item_ids=items, blind=False, priority=0, entropy=1)
    annotator = add_member(project)
    context = chromium.new_context(base_url=live_server.url, locale="fr-FR", timezone_id="Pacific/Auckland")
    page = context.new_page()
    page.goto(f"/projects/{project.slug}/annotate/")
    expect(page.locator("html")).to_have_attribute("lang", "fr")
    page.get_by_label("Nom d’utilisateur").fill(annotator.username)
    page.get_by_label("Mot de passe").fill(PASSWORD)
    page.get_by_role("button", name="Se connecter").click()
    expect(page.get_by_text("Étiquetés aujourd’hui")).to_be_visible()
    page.get_by_role("button", name=re.compile("cat")).click()
    page.wait_for_load_state("networkidle")
    cookies = {cookie["name"]: cookie["value"] for cookie in context.cookies()}
    assert cookies["time_zone"] == "Pacific/Auckland"
    # As the server wrote it: without the script that writes times anew.
    words = page.request.get("/").text()
    assert re.search(r"<time[^>]*>[^<]* NZ[SD]T</time>", words)
    context.close()
