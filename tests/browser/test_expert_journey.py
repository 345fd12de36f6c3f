"""Three roles at once: a manager plans a run with an expert, annotators label, and the expert decides."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotation.jobs import jobs
from annotation.models import Label, User
from routing.models import Run
from testbed.experts import ExpertWorld
from testbed.worlds import CHOICES
from tests.browser.sessions import log_in
from tests.browser.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """Where pictures of the journey go: a folder that SHOTS_FOLDER names, for whoever wants to look."""
    folder = Path(os.environ.get("SHOTS_FOLDER", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def phones(chromium: Browser, live_server: LiveServer) -> Iterator[list[BrowserContext]]:
    """Profiles of two people who label on their phones."""
    made = [
        chromium.new_context(base_url=live_server.url, viewport={"width": 390, "height": 800})
        for _ in range(2)
    ]
    yield made
    for profile in made:
        profile.close()


def work(here: ExpertWorld) -> None:
    for job in here.world.project.jobs.filter(state="queued"):
        jobs.run(job.pk)


def label_one(page: Page, here: ExpertWorld, user: User) -> None:
    """Label the item that is shown, as the person would."""
    page.wait_for_selector("#task[data-ready]")
    before = Label.objects.filter(annotator=user).count()
    shown = page.locator("#item-text").inner_text().strip()
    truth = here.world.truth[here.world.project.items.get(text=shown).external_id]
    page.keyboard.press(str(CHOICES.index(str(truth)) + 1))
    expect(page.locator(".annotate-counts")).to_contain_text(f"Labelled today: {before + 1}")


def in_a_new_tab(page: Page) -> Page:
    """The same page as it is now. A page that loads itself anew at a new stage may do so in the middle of a
    reload, which then fails.
    """
    fresh = page.context.new_page()
    fresh.goto(page.url)
    return fresh


def test_three_roles_bring_a_run_with_an_expert_to_its_end(
    page: Page, context: BrowserContext, phones: list[BrowserContext], shots: Path
) -> None:
    here = ExpertWorld(240, error=0.15)
    slug, annotator = here.world.project.slug, here.world.annotators[0]
    log_in(context, here.world.manager)
    log_in(phones[0], annotator)
    log_in(phones[1], here.expert)
    hand, desk = phones[0].new_page(), phones[1].new_page()

    page.goto(f"/projects/{slug}/plan/")
    page.locator("[name=epsilon]").fill("10")
    page.locator("[name=alpha]").fill("10")
    page.locator("[name=m]").fill("120")
    page.locator("#part-reference > summary").click()
    expect(page.locator("[name=expert]").first).to_be_hidden()
    page.locator("[name=reference][value=expert]").check()
    expect(page.locator("#outlook")).to_contain_text("Choose who the expert is")
    page.locator(f"[name=expert][value={here.expert.username}]").check()
    expect(page.locator("#outlook")).to_contain_text(f"{here.expert.username} labels 60 in any case")
    page.screenshot(path=shots / "plan.png", full_page=True)
    page.wait_for_load_state("networkidle")
    page.get_by_role("button", name="Start the run").click()
    page.get_by_role("dialog").get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("heading", name="Run 1")).to_be_visible()

    work(here)
    desk.goto(f"/projects/{slug}/annotate/")
    expect(desk.locator("#item-text")).to_have_count(0)  # nothing waits for the expert yet
    hand.goto(f"/projects/{slug}/annotate/")
    label_one(hand, here, annotator)
    hand.screenshot(path=shots / "annotator.png", full_page=True)
    page = in_a_new_tab(page)
    page.screenshot(path=shots / "calibrating.png", full_page=True)
    here.label(*here.world.annotators)
    page = in_a_new_tab(page)
    page.get_by_role("button", name="Ask the expert").click()
    page.get_by_role("dialog").get_by_role("button", name="Ask the expert").click()
    expect(page.get_by_text("The labels are locked, and the expert is asked next.")).to_be_visible()

    work(here)
    run = Run.objects.get(project=here.world.project)
    desk.goto(f"/projects/{slug}/annotate/")
    label_one(desk, here, here.expert)
    label_one(desk, here, here.expert)
    desk.screenshot(path=shots / "expert.png", full_page=True)
    page = in_a_new_tab(page)
    page.screenshot(path=shots / "checking.png", full_page=True)
    here.label(here.expert)
    page = in_a_new_tab(page)
    page.get_by_role("button", name="Analyse").click()
    page.get_by_role("dialog").get_by_role("button", name="Analyse").click()
    work(here)
    page.screenshot(path=shots / "analysed.png", full_page=True)
    page.get_by_role("link", name="Evidence").click()
    expect(page.get_by_text("How often people differ from the expert")).to_be_visible()
    page.screenshot(path=shots / "evidence.png", full_page=True)
    page.get_by_role("link", name="Result").click()
    page.get_by_role("button", name="Route", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Route", exact=True).click()
    work(here)
    expect(page.get_by_role("heading", name="The expert", exact=True)).to_be_visible()
    here.label(*here.world.annotators)
    page = in_a_new_tab(page)
    page.screenshot(path=shots / "labelling.png", full_page=True)
    here.finish(run)
    page = in_a_new_tab(page)
    expect(page.get_by_text("Every item has its label.")).to_be_visible()
    page.screenshot(path=shots / "complete.png", full_page=True)
    page.goto(f"/projects/{slug}/runs/1/certificate/")
    page.screenshot(path=shots / "certificate.png", full_page=True)
    page.goto(f"/projects/{slug}/items/?sort=u")
    page.screenshot(path=shots / "items.png", full_page=True)
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/projects/{slug}/runs/1/")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.screenshot(path=shots / "run-390.png", full_page=True)


def test_what_each_reference_costs_is_seen_before_one_is_chosen(page: Page, shots: Path) -> None:
    here = ExpertWorld(1_000, human_cost="40")
    log_in(page.context, here.world.manager)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"/projects/{here.world.project.slug}/plan/")
    expect(page.locator("#references")).to_have_count(0)
    page.get_by_role("button", name="Measure first").click()
    table = page.locator("#references")
    expect(table).to_contain_text("An expert for everything")
    expect(table).to_contain_text("reckoned at 120.00 USD")
    page.screenshot(path=shots / "references.png", full_page=True)
    page.locator("#part-reference > summary").click()
    page.locator("[name=reference][value=expert]").check()
    page.locator(f"[name=expert][value={here.expert.username}]").check()
    page.locator("[name=expert_cost]").fill("60")
    expect(table).to_contain_text("reckoned at 60.00 USD")
    expect(page.locator("#forecast")).to_contain_text("What they foretell of each reference")
    table.locator("details > summary").click()
    page.set_viewport_size({"width": 390, "height": 844})
    page.screenshot(path=shots / "references-390.png", full_page=True)
    wait_until(page, "document.documentElement.scrollWidth <= 390")
