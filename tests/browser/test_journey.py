"""A manager sees the stages move, from the plan to the delivery, and what the run page shows on the way."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from annotation.jobs import jobs
from testbed.factories import PASSWORD
from testbed.worlds import make_world

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def log_in(page: Page) -> Callable[[str], None]:
    def log_in_(username: str) -> None:
        page.goto("/login/")
        page.locator("[name=username]").fill(username)
        page.locator("[name=password]").fill(PASSWORD)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Projects")).to_be_visible()

    return log_in_


def test_the_stages_move_from_plan_to_delivery(page: Page, log_in: Callable[[str], None]) -> None:
    world = make_world(200)
    slug = world.project.slug

    def work() -> None:
        for job in world.project.jobs.filter(state="queued"):
            jobs.run(job.pk)

    def current(title: str) -> None:
        stage = page.locator(".stages > li.current h3", has_text=title)
        expect(stage).to_be_visible()

    log_in(world.manager.username)
    page.goto(f"/projects/{slug}/")
    current("Plan")
    page.get_by_role("link", name="Plan", exact=True).last.click()
    page.wait_for_url("**/plan/")  # loaded: before, nothing listens to what is filled in
    page.locator("[name=epsilon]").fill("10")
    page.locator("[name=alpha]").fill("10")
    page.locator("[name=m]").fill("100")
    expect(page.locator("#outlook")).to_contain_text("All 100 drawn items go to people")
    page.locator("[name=m]").fill("1000")
    expect(page.locator("#outlook")).to_contain_text("cannot be drawn from a pool of 200")
    page.locator("[name=m]").fill("100")
    expect(page.locator("#outlook")).to_contain_text("All 100 drawn items go to people")
    page.wait_for_load_state("networkidle")  # htmx reports a request that leaving the page cuts off
    page.get_by_role("button", name="Start the run").click()
    page.get_by_role("dialog").get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("heading", name="Run 1")).to_be_visible()

    page.goto(f"/projects/{slug}/")
    current("Predict and draw")
    work()
    current("Calibration labels")  # the page asks by itself
    world.label(limit=5)
    expect(page.locator(".stages")).to_contain_text("5 /")
    world.finish()
    expect(page.get_by_role("button", name="Analyse")).to_be_visible()

    page.get_by_role("button", name="Analyse").click()
    page.get_by_role("dialog").get_by_role("button", name="Analyse").click()
    expect(page.get_by_text("The analysis has begun.")).to_be_visible()
    work()
    expect(page.get_by_text("What is certified")).to_be_visible()
    page.get_by_role("link", name="Evidence").click()
    expect(page.locator(".figure canvas").first).to_be_visible()
    page.get_by_role("link", name="Result").click()
    page.get_by_role("button", name="Route").click()
    asked = page.get_by_role("dialog")
    expect(asked).to_contain_text("Still to be paid")
    asked.get_by_role("button", name="Route").click()
    work()
    world.finish()
    expect(page.get_by_text("Every item has its label.")).to_be_visible()
    page.get_by_role("button", name="Deliver").click()
    work()
    expect(page.get_by_role("link", name="labels.csv")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="labels.csv").click()
    assert download.value.suggested_filename == f"{world.project.slug}-run-1-delivery-1-labels.csv"


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_page_is_wider_than_the_window(page: Page, log_in: Callable[[str], None], width: int) -> None:
    world = make_world(60)
    run = world.routed(m=40)
    page.set_viewport_size({"width": width, "height": 800})
    log_in(world.manager.username)
    base = f"/projects/{world.project.slug}"
    ends = ("", "annotate", "items", "sources", "sources/new", "plan", f"runs/{run.number}",
            f"runs/{run.number}/evidence", f"runs/{run.number}/plan", "runs",
            "deliveries", "members", "jobs", "audit", "settings", "import")  # fmt: skip
    paths = ["/", "/projects/new/", *(f"{base}/{end}/".replace("//", "/") for end in ends)]
    for path in paths:
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_the_page_that_asks_by_itself_leaves_the_focus_where_it_is(
    page: Page, log_in: Callable[[str], None]
) -> None:
    world = make_world(60)
    world.start(m=40)
    world.do("prepare_run")
    log_in(world.manager.username)
    page.goto(f"/projects/{world.project.slug}/")
    link = page.get_by_role("link", name="Look at the run")
    link.focus()
    for count in (3, 6):
        world.label(limit=3)
        expect(page.locator(".stages")).to_contain_text(f"{count} /")
        expect(link).to_be_focused()
