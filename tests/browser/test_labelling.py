"""Labelling by keyboard in a real browser: one key, one label, and nothing lost.

The fixture `context` fails a test where a page breaks the content security policy or raises an error.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.urls import reverse
from playwright.sync_api import APIResponse, BrowserContext, Page, Route, expect

from annotation.labelling import queue
from annotation.models import Draft, Label, Project, Skip, User
from testbed.factories import PASSWORD, add_member, make_image_items, make_items, make_project
from testbed.worlds import submitted
from tests.browser.sessions import log_in
from tests.browser.waiting import skip, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def project() -> Project:
    return make_project(choices=("cat", "dog"), guidelines="Look **twice**.", lease_seconds=60)


@pytest.fixture
def annotator(project: Project) -> User:
    return add_member(project, "annotator")


def ask(project: Project, items: list) -> None:
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=True, priority=1, entropy=3
    )


@pytest.fixture
def open_page(context: BrowserContext, page: Page, project: Project) -> Callable[[User], Page]:
    """The annotate page of somebody who is logged in, ready for keys."""

    def open_(user: User) -> Page:
        log_in(context, user)
        page.goto(f"/projects/{project.slug}/annotate/")
        return page

    return open_


def ready(page: Page) -> None:
    """The item can be seen and keys count."""
    page.wait_for_selector("#task[data-ready]")


def time_stops(page: Page) -> None:
    """However long this test takes, on the page it is one moment; it needs `page.clock.install()` before."""
    page.clock.pause_at(datetime.now() + timedelta(minutes=1))


def time_goes_on(page: Page) -> None:
    """Until the page takes answers again, and all those that it took have arrived."""
    page.clock.resume()
    ready(page)
    wait_until(page, "() => localStorage.length === 0")


def shown(page: Page) -> str:
    return page.locator("#item-text").inner_text()


def test_a_person_logs_in_and_labels_twenty_images_by_keyboard(page: Page, project, annotator) -> None:
    ask(project, make_image_items(project, 20))
    page.goto(f"/projects/{project.slug}/")
    page.get_by_label("Username").fill(annotator.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_text("20 items wait for a label.")).to_be_visible()
    page.get_by_role("link", name="Label").first.click()
    for number in range(20):
        ready(page)
        expect(page.locator("#item-image")).to_be_visible()
        page.keyboard.press("1" if number % 2 else "2")
        expect(page.locator(".annotate-counts")).to_contain_text(f"Labelled today: {number + 1}")
        expect(page.locator("#said")).to_contain_text("Saved: " + ("cat" if number % 2 else "dog"))
    expect(page.get_by_role("heading", name="All done for now")).to_be_visible()
    labels = Label.objects.filter(annotator=annotator)
    assert labels.count() == 20
    assert sorted(labels.values_list("value", flat=True)) == ["cat"] * 10 + ["dog"] * 10
    assert all(label.lead_time_ms for label in labels)


def test_a_key_pressed_twice_gives_one_label(open_page, page, project, annotator) -> None:
    ask(project, make_items(project, 3))
    page.clock.install()
    open_page(annotator)
    ready(page)
    time_stops(page)
    page.keyboard.press("1")
    page.keyboard.press("1")
    expect(page.locator(".annotate-counts")).to_contain_text("Labelled today: 1")
    page.keyboard.press("1")  # at once after the next item came: meant for the last one
    time_goes_on(page)
    assert Label.objects.count() == 1


def test_a_double_click_gives_one_label(open_page, page, project, annotator) -> None:
    ask(project, make_items(project, 3))
    page.clock.install()
    open_page(annotator)
    ready(page)
    time_stops(page)
    page.get_by_role("button", name="dog").dblclick()
    time_goes_on(page)
    assert list(Label.objects.values_list("value", flat=True)) == ["dog"]


def test_undo_brings_the_last_one_back_for_correction(open_page, project, annotator) -> None:
    ask(project, make_items(project, 3))
    page = open_page(annotator)
    ready(page)
    first = shown(page)
    page.keyboard.press("1")
    expect(page.locator("#said")).to_contain_text("Saved")
    second = shown(page)
    ready(page)
    page.keyboard.press("u")
    expect(page.locator("#task")).to_have_attribute("data-state", "correcting")
    assert shown(page) == first
    expect(page.get_by_role("button", name="cat")).to_have_attribute("aria-pressed", "true")
    ready(page)
    page.keyboard.press("2")
    expect(page.locator("#said")).to_contain_text("Corrected: dog")
    assert shown(page) == second
    assert list(Label.objects.order_by("id").values_list("value", "version")) == [("cat", 1), ("dog", 2)]


def test_escape_leaves_a_label_as_it_is(open_page, project, annotator) -> None:
    ask(project, make_items(project, 2))
    page = open_page(annotator)
    ready(page)
    page.keyboard.press("1")
    expect(page.locator("#said")).to_contain_text("Saved")
    ready(page)
    page.keyboard.press("Backspace")
    expect(page.locator("#task")).to_have_attribute("data-state", "correcting")
    page.keyboard.press("Escape")
    expect(page.locator("#task")).to_have_attribute("data-state", "item")
    assert Label.objects.count() == 1


def test_skip_asks_why_and_a_label_s_key_means_nothing_else_there(open_page, project, annotator) -> None:
    ask(project, make_items(project, 2))
    page = open_page(annotator)
    ready(page)
    page.keyboard.press("s")
    expect(page.get_by_role("heading", name="Why?")).to_be_focused()
    page.keyboard.press("Enter")  # nothing is chosen yet
    page.locator("#skip-comment").press("Enter")
    page.wait_for_timeout(300)
    assert Skip.objects.count() == 0
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Cannot tell")).to_be_hidden()
    page.keyboard.press("s")
    page.locator("#skip-comment").fill("too dark 1")
    page.locator("#skip-comment").press("2")  # a digit of the comment, no reason
    assert Skip.objects.count() == 0
    page.locator("#skip-comment").press("Escape")
    page.keyboard.press("s")
    page.keyboard.press("2")  # the key of a label: it gives neither the label nor a reason
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name="No label fits")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Skipped")
    skip = Skip.objects.get()
    assert (skip.reason, skip.comment, Label.objects.count()) == ("no_label_fits", "too dark 12", 0)


def test_a_skipped_item_comes_back_by_undo(open_page, project, annotator) -> None:
    ask(project, make_items(project, 2))
    page = open_page(annotator)
    ready(page)
    first = shown(page)
    page.keyboard.press("1")
    expect(page.locator("#said")).to_contain_text("Saved")
    second = shown(page)
    ready(page)
    skip(page)
    expect(page.get_by_role("heading", name="All done for now")).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator("#item-text")).to_have_text(second)
    assert first != second
    assert not Skip.objects.filter(cleared_at__isnull=True).exists()


def test_after_a_skip_was_taken_back_the_next_answers_count(open_page, project, annotator) -> None:
    """Taking it back gives up what the page held, the item that was shown too."""
    ask(project, make_items(project, 6))
    page = open_page(annotator)
    ready(page)
    skipped = shown(page)
    skip(page)
    expect(page.locator("#item-text")).not_to_have_text(skipped)
    page.keyboard.press("u")
    expect(page.locator("#item-text")).to_have_text(skipped)
    for _ in range(5):
        ready(page)
        before = shown(page)
        page.keyboard.press("1")
        expect(page.locator("#item-text")).not_to_have_text(before)
        expect(page.locator("#said")).to_contain_text("Saved")
        assert Draft.objects.count() == 0
    ready(page)
    page.keyboard.press("1")
    expect(page.get_by_role("heading", name="All done for now")).to_be_visible()
    assert Label.objects.count() == 6


def test_the_sheet_of_shortcuts_opens_and_keeps_keys_away(open_page, project, annotator) -> None:
    ask(project, make_items(project, 2))
    page = open_page(annotator)
    ready(page)
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Shortcuts")).to_be_visible()
    page.keyboard.press("1")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Shortcuts")).to_be_hidden()
    assert Label.objects.count() == 0
    page.keyboard.press("Control+1")
    page.wait_for_timeout(200)
    assert Label.objects.count() == 0


def test_arrows_and_enter_label_too(open_page, project, annotator) -> None:
    ask(project, make_items(project, 2))
    page = open_page(annotator)
    ready(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="dog")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Saved: dog")


def test_a_reload_shows_the_same_item(open_page, project, annotator) -> None:
    ask(project, make_items(project, 5))
    page = open_page(annotator)
    for _ in range(2):
        before = shown(page)
        page.reload()
        assert shown(page) == before
        ready(page)
        page.keyboard.press("1")
        expect(page.locator("#said")).to_contain_text("Saved: cat")
    assert Label.objects.count() == 2


def test_the_empty_page_finds_new_work_by_itself(open_page, project, annotator) -> None:
    page = open_page(annotator)
    expect(page.get_by_role("heading", name="Nothing to label yet")).to_be_visible()
    ask(project, make_items(project, 1))
    expect(page.locator("#item-text")).to_be_visible()


def test_hostile_text_stays_text(open_page, project, annotator) -> None:
    text = "<img src=x onerror=\"document.title='hacked'\"> <b hx-get='/logout/' hx-trigger='load'>bold</b>"
    ask(project, make_items(project, [text]))
    page = open_page(annotator)
    ready(page)
    assert shown(page) == text
    assert "hacked" not in page.title()


def test_the_page_labels_without_javascript(chromium, live_server, project, annotator) -> None:
    ask(project, make_items(project, 2))
    context = chromium.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"/projects/{project.slug}/annotate/")
    page.locator("[name=username]").fill(annotator.username)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("main button").click()
    page.get_by_role("button", name="dog").click()
    expect(page.get_by_text("Saved: dog")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="cat").click()
    expect(page.get_by_text("Corrected: cat")).to_be_visible()
    page.locator("#skip summary").click()
    page.get_by_role("button", name="Cannot tell").click()
    expect(page.get_by_text("All done for now")).to_be_visible()
    context.close()
    assert list(Label.objects.order_by("id").values_list("value", flat=True)) == ["dog", "cat"]
    assert Skip.objects.get().reason == "unclear"


def test_where_others_have_labelled_everything_nothing_waits(open_page, page, project, annotator) -> None:
    """What was counted while items were left stood on the page that has none."""
    ask(project, make_items(project, 3))
    # The page holds nothing but what it shows, as after a long pause.
    address = reverse("annotate_ahead", args=[project.slug])
    page.route(f"**{address}", lambda route: route.fulfill(json={"ahead": []}))
    open_page(annotator)
    ready(page)
    expect(page.locator("[data-count=waiting]")).to_have_text("3")
    other = add_member(project, "annotator")
    while task := queue.claim(project=project, user=other):
        assert submitted(other, task, "cat", f"other-{task.work_item.pk}")
    page.keyboard.press("1")
    expect(page.locator("#task[data-state=empty]")).to_be_visible()
    # At once: the page asks again by itself a few seconds later.
    assert page.locator("[data-count=waiting]").text_content() == "0"


def test_counts_that_come_late_do_not_stand_on_the_page_without_work(
    open_page, page, project, annotator
) -> None:
    """What the page asked for while items were left may arrive once none is."""
    ask(project, make_items(project, 2))
    late: list[tuple[Route, APIResponse]] = []
    address = reverse("annotate_ahead", args=[project.slug])
    page.route(f"**{address}", lambda route: late.append((route, route.fetch())), times=1)
    open_page(annotator)
    for number in (1, 2):
        ready(page)
        page.keyboard.press("1")
        expect(page.locator("#task:not([data-state=waiting]) [data-count=today]")).to_have_text(str(number))
    expect(page.get_by_role("heading", name="All done for now")).to_be_visible()
    route, answer = late[0]
    with page.expect_response(f"**{address}"):
        route.fulfill(response=answer)
    page.wait_for_timeout(200)
    # At once: the page asks again by itself a few seconds later.
    assert page.locator("[data-count=waiting]").text_content() == "0"
