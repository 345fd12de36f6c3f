"""Candidate prompts in a browser: labelled by keyboard, followed while they run, and seen by axe-core."""

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from annotation.jobs import jobs
from routing.workshop.candidates import candidates_of, job_of
from tests.browser.test_accessibility import Looker
from tests.routing.workshop.conftest import server
from tests.routing.workshop.workshop import Workshop

__all__ = ["server"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_pages_of_candidates(page: Page, live_server: LiveServer, server) -> None:
    workshop, looker = Workshop(server), Looker(page, live_server.url)
    base = f"/projects/{workshop.project.slug}/sources/{workshop.source.pk}/prompts/"
    looker.be(workshop.project.created_by)
    looker.look(base, "before any item")
    held = workshop.drawn(labelled=False)
    looker.look(f"{base}label/", "an item to label")
    page.keyboard.press("1")
    expect(page.get_by_text("1 of 20 labelled")).to_be_visible()
    assert workshop.results[0].items == 1
    workshop.label(held[1:])
    looker.look(f"{base}new/", "another candidate")
    page.get_by_label("What is asked about an item").fill("Animal: {{ text }}")
    page.get_by_role("button", name="Keep as a candidate").click()
    page.get_by_role("button", name="Run it").click()
    expect(page.get_by_text("0 of 20")).to_be_visible()
    made = candidates_of(workshop.source)[1]
    job = job_of(made)
    assert job is not None
    jobs.run(job.pk)
    expect(page.get_by_role("button", name="Use this prompt")).to_be_visible()
    looker.look_here("a candidate that was run")
    workshop.ran(candidates_of(workshop.source)[0])
    looker.look(f"{base}?first=1&second=2", "two side by side")
    looker.judge()
    assert len(looker.seen) == 5
