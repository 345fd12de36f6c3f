"""The page of a run whose losses the team's own program measures, from the labels to the certificate."""

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from routing.elsewhere.losses import take_losses
from testbed.measured import MEASURE, PLAN, rows_given_out, with_losses, world_of_meshes
from tests.browser.sessions import log_in
from tests.browser.test_accessibility import AXE, LOOK

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def pressed(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()
    page.get_by_role("dialog").get_by_role("button", name=name).click()


def test_losses_are_asked_for_and_what_is_missing_is_shown(context: BrowserContext, page: Page) -> None:
    world = world_of_meshes(80)
    run = world.calibrated(**PLAN, m=40, epsilon="0.3")
    log_in(context, world.manager)
    page.goto(f"/projects/{world.project.slug}/runs/1/")
    pressed(page, "Ask for the losses")
    expect(page.get_by_text("The labels are locked, and can be measured against.")).to_be_visible()
    run.refresh_from_db()
    rows = [with_losses(row) for row in rows_given_out(run, world.manager)]
    expect(page.get_by_text(MEASURE)).to_be_visible()
    expect(page.get_by_text(rows[0]["name"])).to_be_visible()
    take_losses(run=run, actor=world.manager, rows=rows[:-1])
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"/projects/{world.project.slug}/runs/1/")
        expect(page.get_by_text(f"Losses are missing of: {rows[-1]['name']}.")).to_be_visible()
        page.evaluate(AXE)
        assert page.evaluate(LOOK, None) == []
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    take_losses(run=run, actor=world.manager, rows=rows)
    page.goto(f"/projects/{world.project.slug}/runs/1/")
    pressed(page, "Analyse")
    world.do("analyse_run")
    page.goto(f"/projects/{world.project.slug}/runs/1/")
    expect(page.get_by_text("the team's own program")).to_be_visible()
