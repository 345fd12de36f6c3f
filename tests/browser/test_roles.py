"""The whole way of each role, by pages alone: what they may do is done, what they may not is not there."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.core.cache import cache
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.labelling.comments import add_comment
from annotation.models import AuditEvent, Comment, Item, Label, Project, Settlement, Skip, User, WorkItem
from annotation.projects.manage import update_project
from routing.models import Run
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import World, make_world
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.sessions import log_in
from tests.browser.test_labelling import ask, ready, shown
from tests.browser.waiting import skip
from tests.pages import test_access

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# What would send something that changes something.
CHANGES = "main form[method=post] :is(button, [type=submit]), main :is([hx-post], [hx-delete], [formaction])"

world = test_access.world
arguments = test_access.arguments


@pytest.fixture
def other(chromium: Browser, live_server: LiveServer) -> Iterator[Page]:
    """A page in somebody else's browser."""
    elsewhere = chromium.new_context(base_url=live_server.url)
    elsewhere.set_default_timeout(TIMEOUT_MS)
    yield elsewhere.new_page()
    elsewhere.close()


def enter(page: Page, user: User, project: Project) -> None:
    """From the list of projects, as somebody who has just logged in."""
    log_in(page.context, user)
    page.goto("/")
    page.get_by_role("link", name=project.name).first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(project.name)


def sections(page: Page) -> list[str]:
    """Names in the navigation of the project."""
    links = page.get_by_role("navigation", name="Project").get_by_role("link")
    return [" ".join(name.split()[:1]) for name in links.all_inner_texts()]


def go(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Project").get_by_role("link", name=name).click()


@contextmanager
def away_from(page: Page) -> Iterator[None]:
    """Leaves the page and comes back: it loads itself anew when a run gets on, which ends another loading."""
    address = page.url
    page.goto("about:blank")
    yield
    page.goto(address)


def work(project: Project) -> None:
    """What the worker would do."""
    for job in project.jobs.filter(state="queued").order_by("id"):
        assert jobs.run(job.pk)


def test_an_owner_invites_and_the_invited_labels(page: Page, other: Page) -> None:
    cache.clear()  # where tries to join are counted
    project = make_project(name="Birds", choices=("owl", "emu"), guidelines="Look **twice**.")
    ask(project, make_items(project, 2))
    enter(page, project.created_by, project)
    go(page, "People")
    page.get_by_role("button", name="Make the link").click()
    link = page.get_by_label("Link").input_value()

    other.goto(link)
    other.get_by_label("Username").fill("carl")
    other.get_by_label("Password", exact=True).fill("a-long-enough-4711")
    other.get_by_label("The password once more").fill("a-long-enough-4711")
    other.get_by_role("button", name="Make the account and join").click()
    expect(other.get_by_text("You take part in Birds now.")).to_be_visible()
    assert sections(other) == ["Overview", "Label"]
    expect(other.get_by_text("2 items wait for a label.")).to_be_visible()
    go(other, "Label")
    for key in ("1", "2"):
        ready(other)
        other.keyboard.press(key)
    expect(other.get_by_role("heading", name="All done for now")).to_be_visible()
    other.wait_for_load_state("networkidle")
    assert sorted(Label.objects.filter(annotator__username="carl").values_list("value", flat=True)) == [
        "emu",
        "owl",
    ]

    page.goto(f"/projects/{project.slug}/members/")
    carl = page.get_by_role("row", name="carl")
    expect(carl.get_by_role("cell").first).to_have_text("Annotator")
    expect(carl.get_by_role("cell").nth(1)).to_have_text("2")
    expect(page.locator("#invitations-made")).to_contain_text("1 of 1 joined")
    other.goto(link)
    expect(other.get_by_role("button", name="join")).to_have_count(0)


def test_a_manager_goes_from_the_plan_to_the_file(page: Page, tmp_path: Path) -> None:
    world = make_world(60)
    project, manager = world.project, add_member(world.project, "manager")
    enter(page, manager, project)
    go(page, "Runs")
    page.get_by_role("button", name="Plan the first run").click()
    page.wait_for_url("**/plan/")  # loaded: before, nothing listens to what is filled in
    page.locator("[name=epsilon]").fill("10")
    page.locator("[name=alpha]").fill("10")
    page.locator("[name=m]").fill("40")
    expect(page.locator("#outlook")).to_contain_text("40 drawn items")
    page.wait_for_load_state("networkidle")
    page.get_by_role("button", name="Start the run").click()
    page.get_by_role("dialog").get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("heading", name="Run 1")).to_be_visible()
    with away_from(page):
        work(project)
        world.finish()
    page.get_by_role("button", name="Analyse").click()
    page.get_by_role("dialog").get_by_role("button", name="Analyse").click()
    expect(page.get_by_text("The analysis has begun.")).to_be_visible()
    with away_from(page):
        work(project)
    expect(page.get_by_text("What is certified")).to_be_visible()
    page.get_by_role("button", name="Route").click()
    page.get_by_role("dialog").get_by_role("button", name="Route").click()
    expect(page.get_by_role("button", name="Route")).to_have_count(0)
    with away_from(page):
        work(project)
        world.finish()
    page.get_by_role("button", name="Deliver").click()
    work(project)
    go(page, "Deliveries")
    with page.expect_download() as download:
        page.get_by_role("link", name="labels.csv").click()
    download.value.save_as(tmp_path / "labels.csv")
    with (tmp_path / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["external_id"] for row in rows] == [f"t{n}" for n in range(60)]
    people = [row for row in rows if row["source"] == "person"]
    assert len(people) == Label.objects.count() > 0
    assert all(row["label"] == world.truth[row["external_id"]] for row in people)
    trail = AuditEvent.objects.filter(project=project, actor=manager)
    assert "run.started" in trail.values_list("action", flat=True)

    go(page, "People")
    expect(page.get_by_role("heading", name="Members")).to_be_attached()
    expect(page.get_by_role("button", name="Make the link")).to_have_count(0)


def one_dispute() -> tuple[World, Item]:
    """Two people have labelled a calibration set of 20 items; they differ on one of them."""
    world = make_world(40)
    update_project(project=world.project, user=world.manager, overlap=2)
    world.start(m=20)
    world.do("prepare_run")
    disputed = WorkItem.objects.filter(batch__project=world.project).order_by("pk")[0].item
    for number, person in enumerate(world.annotators):
        while task := queue.claim(project=world.project, user=person):
            truth = world.truth[task.item.external_id]
            differs = number == 1 and task.item == disputed
            queue.submit(
                user=person,
                work_item_id=task.work_item.pk,
                token=task.token,
                value=("dog" if truth == "cat" else "cat") if differs else truth,
                idempotency_key=f"{task.work_item.pk}",
            )
    return world, disputed


def test_a_reviewer_settles_a_dispute_of_the_calibration_set_and_a_flag(page: Page, other: Page) -> None:
    world, disputed = one_dispute()
    project, reviewer = world.project, add_member(world.project, "reviewer")
    asked = WorkItem.objects.filter(batch__project=project).values("item")
    free = project.items.exclude(pk__in=asked)[0]
    add_comment(item=free, author=world.annotators[0], text="Twice the same?", is_flag=True)
    analyse = other.get_by_role("button", name="Analyse")
    log_in(other.context, world.manager)
    other.goto(f"/projects/{project.slug}/runs/1/")
    expect(analyse).to_have_count(0)

    enter(page, reviewer, project)
    assert sections(page) == [
        "Overview",
        "Progress",
        "Label",
        "Review",
        "Items",
        "Runs",
        "People",
        "Activity",
    ]
    go(page, "Review")
    expect(page.locator("#item-text")).to_have_text(disputed.text)
    for person in world.annotators:
        expect(page.locator("main")).not_to_contain_text(person.username)
    page.locator("#task[data-ready]").wait_for(state="attached")
    right = world.truth[disputed.external_id]
    page.keyboard.press(str(1 + ["cat", "dog", "emu"].index(right)))
    expect(page.get_by_role("heading", name="Nothing to decide")).to_be_visible()
    settlement = Settlement.objects.get(superseded_by=None, item=disputed)
    assert (settlement.value, settlement.decided_by) == (right, reviewer)

    page.get_by_role("link", name="Flags").click()
    expect(page.locator(".flags")).to_contain_text("Twice the same?")
    page.get_by_role("button", name="Mark as resolved").click()
    expect(page.get_by_role("heading", name="No flag is open")).to_be_visible()
    flag = Comment.objects.get()
    assert (flag.resolved_by, flag.resolved_at is None) == (reviewer, False)

    other.reload()
    expect(analyse).to_be_enabled()
    assert Run.objects.get().state == Run.State.CALIBRATING
    assert page.goto(f"/projects/{project.slug}/sources/").status == 403


def test_an_annotator_labels_and_sees_no_page_of_a_manager(
    page: Page, world: World, arguments: dict[str, object]
) -> None:
    project, annotator = world.project, add_member(world.project, "annotator")
    enter(page, annotator, project)
    assert sections(page) == ["Overview", "Label"]
    go(page, "Label")
    ready(page)
    first = shown(page)
    page.keyboard.press("c")
    page.keyboard.type("2 of them")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    expect(page.locator("#said")).to_contain_text("Saved: cat")
    ready(page)
    page.keyboard.press("u")
    expect(page.locator("#item-text")).to_have_text(first)
    ready(page)
    page.keyboard.press("2")
    expect(page.locator("#said")).to_contain_text("Corrected: dog")
    ready(page)
    second = shown(page)
    page.keyboard.press("f")
    page.keyboard.type("Which of the two?")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Flagged")
    page.keyboard.press("Escape")
    skip(page)
    expect(page.locator("#said")).to_contain_text("Skipped")
    page.get_by_role("button", name="Stop for now").click()
    expect(page.get_by_text("You hold no item any more")).to_be_visible()

    labels = Label.objects.filter(annotator=annotator).order_by("pk")
    assert list(labels.values_list("item__text", "value", "comment")) == [
        (first, "cat", "2 of them"),
        (first, "dog", "2 of them"),
    ]
    assert Skip.objects.get(user=annotator).work_item.item.text == second
    assert Comment.objects.get(author=annotator).item.text == second

    foreign = make_project()
    for name, table in test_access.PAGES.items():
        if "GET" in table and "annotator" not in table["GET"]:
            path = test_access.address(name, arguments)
            assert page.goto(path).status == 403, name
            expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.goto(f"/projects/{foreign.slug}/").status == 404


def test_a_viewer_sees_and_changes_nothing(page: Page, world: World, arguments: dict[str, object]) -> None:
    project, viewer = world.project, add_member(world.project, "viewer")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method != "GET" else None)
    enter(page, viewer, project)
    expected = ["Overview", "Progress", "Agreement", "Items", "Runs", "Deliveries", "People", "Activity"]
    assert sections(page) == expected
    pages = [name for name, table in test_access.PAGES.items() if "viewer" in table.get("GET", ())]
    files = {"image", "run_certificate", "run_draw", "delivery_file", "delivery_zip", "job_problems"}
    files |= {"project_label_config", "run_final_certificate"}
    for name in pages:
        if name in files:
            continue
        assert page.goto(test_access.address(name, arguments)).status == 200, name
        # Views of the table under a name are for everybody who sees it.
        page.locator("#save-view").evaluate_all("parts => parts.forEach(part => part.remove())")
        expect(page.locator(CHANGES), name).to_have_count(0)
    assert len(pages) > 10
    with page.expect_download() as download:
        page.goto(f"/projects/{project.slug}/deliveries/")
        page.get_by_role("link", name="labels.csv").click()
    assert download.value.suggested_filename.endswith("labels.csv")
    assert page.goto(f"/projects/{project.slug}/annotate/").status == 403
    assert sent == []
    assert not AuditEvent.objects.filter(actor=viewer).exists()
