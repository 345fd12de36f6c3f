"""The two journeys that people make most, without a mouse: to fifty labels, and from a file to a running
calibration.
"""

import csv
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import Job, Label, Project
from routing.models import Run
from testbed.factories import PASSWORD, add_member, make_items, make_project, make_user
from tests.browser.keyboard import Keyboard
from tests.browser.test_roles import away_from

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MOST_ACTIONS = 13  # the last one answers what a start freezes


def work() -> None:
    """What the worker would do."""
    for job in Job.objects.filter(state="queued").order_by("id"):
        assert jobs.run(job.pk)


def test_from_the_login_page_through_fifty_labels(page: Page) -> None:
    project = make_project(name="Animals", choices=("cat", "dog"), guidelines="Look twice.")
    annotator = add_member(project, "annotator")
    items = make_items(project, 60)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=True, priority=1, entropy=1
    )
    keys = Keyboard(page)
    page.goto("/login/")
    keys.log_in(annotator.username, PASSWORD)
    keys.press("Animals", opens="Animals")
    keys.press("Label", opens="Which label?")
    for number in range(50):
        page.wait_for_selector("#task[data-ready]")
        shown = page.locator("#item-text").inner_text()
        page.keyboard.press("1" if number % 2 else "2")
        expect(page.locator("#item-text")).not_to_have_text(shown)
    expect(page.locator(".annotate-counts")).to_contain_text("50")
    labels = Label.objects.filter(annotator=annotator)
    # Answers go out in the background, behind the next item.
    end = time.monotonic() + 120
    while labels.count() < 50 and time.monotonic() < end:
        page.wait_for_timeout(50)
    assert labels.count() == 50
    assert labels.filter(value="cat").count() == 25
    assert labels.values("item").distinct().count() == 50
    assert keys.actions == 4  # two fields, two links: Enter in the second field logs in


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Five hundred texts with the answers of two models, the second one better and dearer."""
    path = tmp_path / "reviews.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "review", "pred1", "conf1", "cost1", "pred2", "conf2", "cost2"])
        for number in range(500):
            truth = "good" if number % 3 else "bad"
            other = "bad" if truth == "good" else "good"
            first, sure = (other, 0.55) if number % 8 == 0 else (truth, 0.6 + (number % 40) / 100)
            second = other if number % 50 == 0 else truth
            writer.writerow(
                [f"r{number}", f"Review {number} of a film.", first, sure, "0.001", second, 0.9, 0.01]
            )
    return path


def test_from_a_file_to_a_running_calibration(page: Page, table: Path) -> None:
    manager = make_user("meg")
    page.goto("/login/")
    Keyboard(page).log_in(manager.username, PASSWORD)

    keys = Keyboard(page)
    keys.press("New project", opens="New project")
    keys.write("Name", "Films")
    keys.write("Labels", "good\nbad")
    keys.press("Make the project", opens="Bring in data")
    keys.choose_file("Drop a file", str(table))
    keys.press("Show the first rows", opens="Which column is what?")
    keys.press("Import", opens="Background work")
    work()
    page.reload()
    keys.press("Sources", opens="Sources of labels")
    keys.press("Use them", opens="Sources of labels")
    expect(page.get_by_text("Added, in this order: Model 1, Model 2.")).to_be_visible()
    keys.press("Go on to the plan", opens="Plan")
    expect(page.locator("#outlook")).to_contain_text("drawn items")
    page.wait_for_load_state("networkidle")
    keys.press("Start the run", opens="Plan")
    expect(page.get_by_role("dialog")).to_be_visible()
    keys.press("Start the run", opens="Run 1")
    with away_from(page):
        work()
    keys.press("Label", opens="Which label?")
    page.wait_for_selector("#task[data-ready]")

    run = Run.objects.get()
    assert run.state == Run.State.CALIBRATING
    assert [row.source.name for row in run.run_sources.order_by("position")] == ["Model 1", "Model 2"]
    assert Project.objects.get().items.count() == 500
    assert keys.actions <= MOST_ACTIONS, keys.actions
