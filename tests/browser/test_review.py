"""Deciding by keyboard alone in a real browser, and by two reviewers at once."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotation import queue
from annotation.models import Project, Settlement
from testbed.factories import add_member, make_items, make_project
from tests.browser.sessions import log_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def disputed(rows: list[tuple], **fields) -> Project:
    """A project in which two people have answered about items, a row of answers each."""
    fields.setdefault("choices", ("cat", "dog", "emu"))
    project = make_project(**fields)
    items = make_items(project, len(rows))
    queue.create_batch(
        project=project, item_ids=[i.pk for i in items], blind=False, priority=1, entropy=3, overlap=2
    )
    for index, person in enumerate([add_member(project), add_member(project)]):
        while task := queue.claim(project=project, user=person):
            queue.submit(
                user=person,
                work_item_id=task.work_item.pk,
                token=task.token,
                value=rows[items.index(task.item)][index],
                idempotency_key=f"{task.work_item.pk}",
            )
    return project


@pytest.fixture
def open_review(context: BrowserContext, page: Page) -> Callable[[Project], Page]:
    def open_(project: Project) -> Page:
        log_in(context, add_member(project, "reviewer"))
        page.goto(f"/projects/{project.slug}/review/")
        page.wait_for_load_state("networkidle")
        return page

    return open_


def press(page: Page, key: str) -> None:
    """When what is there can have been seen: keys that come too soon are not taken."""
    page.locator("#task[data-ready]").wait_for(state="attached")
    page.keyboard.press(key)


def decided() -> list:
    rows = Settlement.objects.filter(superseded_by__isnull=True).order_by("pk")
    return list(rows.values_list("value", "comment"))


def test_a_key_decides_and_the_next_one_comes(open_review) -> None:
    page = open_review(disputed([("cat", "dog"), ("dog", "emu"), ("emu", "cat")]))
    expect(page.get_by_text("3 items wait for a decision")).to_be_visible()
    first = page.locator("#item-text").inner_text()
    press(page, "s")
    expect(page.locator("#item-text")).not_to_have_text(first)
    second = page.locator("#item-text").inner_text()
    press(page, "c")
    page.keyboard.type("2 of them, see?")  # no key in the field decides
    page.keyboard.press("Escape")
    press(page, "2")
    expect(page.locator("#said")).to_contain_text("Decided: dog")
    expect(page.locator("#item-text")).not_to_have_text(second)
    press(page, "3")
    expect(page.get_by_text("1 item waits for a decision")).to_be_visible()
    expect(page.locator("#item-text")).to_have_text(first)
    expect(page.locator("#left-badge")).to_have_text("1")
    press(page, "1")
    expect(page.get_by_role("heading", name="Nothing to decide")).to_be_visible()
    assert decided() == [("dog", "2 of them, see?"), ("emu", ""), ("cat", "")]


def test_enter_in_the_comment_decides_nothing(open_review) -> None:
    page = open_review(disputed([("cat", "dog")]))
    press(page, "c")
    page.keyboard.type("who knows")
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    expect(page.locator("#comment")).to_have_value("who knows")
    assert decided() == []


def test_a_key_that_comes_before_the_item_can_be_seen_decides_nothing(open_review) -> None:
    page = open_review(disputed([("cat", "dog"), ("dog", "emu")]))
    page.locator("#task[data-ready]").wait_for(state="attached")
    # Two presses within one moment: the second was meant for nothing.
    page.evaluate("""() => {
      const press = () => document.body.dispatchEvent(
        new KeyboardEvent("keydown", {key: "1", bubbles: true, cancelable: true}));
      document.addEventListener("htmx:afterSettle", press);
      press();
      press();
    }""")
    expect(page.get_by_text("1 item waits for a decision")).to_be_visible()
    page.locator("#task[data-ready]").wait_for(state="attached")
    assert decided() == [("cat", "")]


def test_an_answer_is_taken_over_changed_and_saved(open_review) -> None:
    page = open_review(disputed([("a red house", "a blue house")], task_type="long_text", choices=()))
    press(page, "2")
    field = page.locator("#answer")
    expect(field).to_have_value("a blue house")
    expect(field).to_be_focused()
    page.keyboard.press("Control+End")
    page.keyboard.type(" of 1890")
    press(page, "Control+Enter")
    expect(page.get_by_role("heading", name="Nothing to decide")).to_be_visible()
    assert decided() == [("a blue house of 1890", "")]


def test_several_labels_are_ticked_and_saved(open_review) -> None:
    page = open_review(disputed([(["cat"], ["dog"])], task_type="multiple_choice"))
    press(page, "1")
    press(page, "3")
    press(page, "Enter")
    expect(page.get_by_role("heading", name="Nothing to decide")).to_be_visible()
    assert decided() == [(["cat", "emu"], "")]


def test_the_second_of_two_reviewers_is_told(open_review, chromium: Browser, live_server: LiveServer) -> None:
    project = disputed([("cat", "dog"), ("dog", "emu")])
    page = open_review(project)
    elsewhere = chromium.new_context(base_url=live_server.url)
    log_in(elsewhere, add_member(project, "reviewer"))
    other = elsewhere.new_page()
    other.goto(f"/projects/{project.slug}/review/")
    same = page.locator("#item-text").inner_text()
    expect(other.locator("#item-text")).to_have_text(same)
    press(page, "1")
    expect(page.locator("#said")).to_contain_text("Decided: cat")
    press(other, "2")
    expect(other.locator("#said")).to_contain_text("Somebody else has decided")
    expect(other.locator("#item-text")).not_to_have_text(same)
    elsewhere.close()
    assert decided() == [("cat", "")]


def test_it_fits_a_small_screen(open_review) -> None:
    page = open_review(disputed([("cat " * 200, "x" * 900)], task_type="long_text", choices=()))
    page.set_viewport_size({"width": 320, "height": 640})
    for address in ("review/", "review/flags/", "agreement/"):
        page.goto(page.url.split("review/")[0].split("agreement/")[0] + address)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0, address
