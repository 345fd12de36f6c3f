"""What a model suggests, in a real browser: one key takes it, and it travels with its item."""

from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from annotation.models import Label, ShownSuggestion
from testbed.worlds import LONG, NUMBERS, ONE_OF_THREE, SETS, Answers, World, make_world
from tests.browser.sessions import log_in
from tests.browser.test_accessibility import AXE, LOOK
from tests.browser.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PLAN = {"m": 40, "suggestions": True}


@pytest.fixture
def desk(context: BrowserContext, page: Page) -> Callable[..., World]:
    """The annotate page of somebody in a world whose routed items wait."""

    def open_(answers: Answers, **plan: object) -> World:
        world = make_world(90, answers=answers)
        world.routed(**PLAN, **plan)
        log_in(context, world.annotators[0])
        page.goto(f"/projects/{world.project.slug}/annotate/")
        return world

    return open_


def held(page: Page) -> None:
    """What comes behind the item that is shown has arrived."""
    loaded = "performance.getEntriesByType('resource')"
    wait_until(page, f"{loaded}.some((one) => one.name.includes('/ahead/') && one.responseEnd)")


def ready(page: Page) -> None:
    page.wait_for_selector("#task[data-ready]")


def shown_first(page: Page) -> ShownSuggestion:
    number = page.locator("#label-form input[name=work_item]").input_value()
    return ShownSuggestion.objects.get(work_item=int(number))


def stored(page: Page, shown: ShownSuggestion) -> Label:
    """What has arrived, once nothing is on its way any more."""
    wait_until(page, "!Object.keys(localStorage).some((name) => name.startsWith('hypac-outbox'))")
    return Label.objects.filter(work_item=shown.work_item_id).latest("pk")


def test_one_key_takes_it_and_undo_brings_it_back(desk: Callable[..., World], page: Page) -> None:
    desk(ONE_OF_THREE)
    ready(page)
    first = shown_first(page)
    panel = page.locator("#offer .suggestion")
    expect(panel).to_contain_text(f"Suggested by {first.source}: {first.value}")
    expect(page.locator("#label-form [aria-pressed]")).to_have_count(0)  # it is nobody's answer yet
    page.evaluate(AXE)
    assert page.evaluate(LOOK, None) == []
    page.keyboard.press("a")
    page.wait_for_selector(
        f"#label-form input[name=work_item]:not([value='{first.work_item_id}'])", state="attached"
    )
    label = stored(page, first)
    assert (label.value, label.suggestion) == (first.value, "taken")
    ready(page)
    second = shown_first(page)
    assert second.work_item_id != first.work_item_id
    expect(panel).to_contain_text(f"Suggested by {second.source}: {second.value}")
    page.keyboard.press("u")
    expect(page.locator("#task")).to_have_attribute("data-state", "correcting")
    expect(panel).to_contain_text(str(first.value))
    ready(page)
    other = next(name for name in ("cat", "dog", "emu") if name != first.value)
    page.locator(f"#label-form button.choice[value={other}]").click()
    label = stored(page, first)
    assert (label.value, label.suggestion) == (other, "other")


def test_it_is_kept_without_a_connection_and_sent_as_any_answer(
    desk: Callable[..., World], context: BrowserContext, page: Page
) -> None:
    desk(ONE_OF_THREE)
    ready(page)
    first = shown_first(page)
    held(page)
    context.set_offline(True)
    page.keyboard.press("a")
    expect(page.locator("#connection")).to_be_visible()
    ready(page)
    second = shown_first(page)
    assert second.work_item_id != first.work_item_id
    expect(page.locator("#offer .suggestion")).to_contain_text(f"{second.source}: {second.value}")
    page.keyboard.press("u")  # not sent yet: the item is back with what was suggested for it
    expect(page.locator("#task")).to_have_attribute("data-state", "unsent")
    expect(page.locator("#offer .suggestion")).to_contain_text(f"{first.source}: {first.value}")
    ready(page)
    page.keyboard.press("a")
    context.set_offline(False)
    assert stored(page, first).suggestion == "taken"


def test_lists_and_texts_are_taken_by_the_button_and_from_within_the_field(
    desk: Callable[..., World], page: Page
) -> None:
    desk(SETS)
    for _ in range(4):
        ready(page)
        shown = shown_first(page)
        page.get_by_role("button", name="Accept").click()
        label = stored(page, shown)
        assert (label.value, label.suggestion) == (shown.value, "taken")


def test_a_text_is_taken_from_within_its_field(desk: Callable[..., World], page: Page) -> None:
    desk(LONG, loss="token_f1", target="pool")
    ready(page)
    shown = shown_first(page)
    page.locator("#answer").fill("a")  # the letter is a letter there
    page.keyboard.press("a")
    expect(page.locator("#answer")).to_have_value("aa")
    assert not Label.objects.filter(work_item=shown.work_item_id).exists()
    page.keyboard.press("Control+Shift+Enter")
    label = stored(page, shown)
    assert (label.value, label.suggestion) == (shown.value, "taken")


def test_enter_in_a_field_gives_what_was_typed_and_not_what_was_suggested(
    desk: Callable[..., World], page: Page
) -> None:
    desk(NUMBERS)
    ready(page)
    shown = shown_first(page)
    page.locator("#answer").fill("4711")
    page.keyboard.press("Enter")
    label = stored(page, shown)
    assert (label.value, label.suggestion) == ("4711", "other")


def test_nothing_moves_where_an_item_has_none(desk: Callable[..., World], page: Page) -> None:
    world = desk(ONE_OF_THREE)
    ready(page)
    world.project.refresh_from_db()
    held(page)
    before = page.locator("#label-form").bounding_box()
    page.evaluate("() => { document.getElementById('offer').innerHTML = ''; }")
    after = page.locator("#label-form").bounding_box()
    assert before
    assert after
    assert abs(before["y"] - after["y"]) < 1
    page.keyboard.press("a")  # means nothing without one
    assert page.locator("#task").get_attribute("data-state") == "item"
