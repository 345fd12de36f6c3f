"""What the labelling page says about answers, and that it can be seen."""

import pytest
from playwright.sync_api import expect

from testbed.factories import make_items
from tests.browser.test_labelling import annotator, ask, open_page, project, ready
from tests.browser.test_labelling_outbox import held
from tests.browser.waiting import skip, wait_until

__all__ = ["annotator", "open_page", "project"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_sentence_that_is_said_aloud_ends_once(open_page, project, annotator) -> None:
    ask(project, make_items(project, 3))
    page = open_page(annotator)
    ready(page)
    skip(page)
    expect(page.locator("#announce")).to_contain_text("Next item:")
    expect(page.locator("#announce")).not_to_contain_text("..")
    ready(page)
    page.keyboard.press("u")  # what was said of the next item is not left behind
    expect(page.locator("#announce")).not_to_contain_text("Next item:")
    expect(page.locator("#announce")).not_to_be_empty()


def test_it_is_said_aloud_too_where_nothing_was_held_behind(context, open_page, project, annotator) -> None:
    """As on a slow connection: then the answer brings the next item."""
    ask(project, make_items(project, 3))
    context.route("**/annotate/ahead/", lambda route: route.abort())
    page = open_page(annotator)
    ready(page)
    skip(page)
    expect(page.locator("#announce")).to_contain_text("Next item:")


def test_an_earlier_answer_is_not_said_to_be_saved_while_the_connection_is_lost(
    open_page, project, annotator
) -> None:
    ask(project, make_items(project, 4))
    page = open_page(annotator)
    ready(page)
    page.keyboard.press("1")
    expect(page.locator("#said")).to_contain_text("Saved")
    held(page, 2)
    page.context.set_offline(True)
    ready(page)
    page.keyboard.press("2")
    expect(page.locator("#connection")).to_be_visible()
    expect(page.locator("#said")).to_be_empty()
    page.context.set_offline(False)
    expect(page.locator("#said")).to_contain_text("Saved")


def test_what_is_said_is_in_sight_after_a_flag(open_page, project, annotator) -> None:
    ask(project, make_items(project, 3))
    page = open_page(annotator)
    page.set_viewport_size({"width": 1280, "height": 360})
    ready(page)
    page.keyboard.press("f")
    page.evaluate("() => window.scrollTo(0, document.body.scrollHeight)")
    wait_until(page, "() => document.getElementById('task').getBoundingClientRect().top < 0")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Flagged")
    expect(page.locator("#said")).to_be_in_viewport()
    page.keyboard.press("1")
    expect(page.locator("#said")).to_contain_text("Saved")
    expect(page.locator("#said")).to_be_in_viewport()


def test_a_tap_leaves_no_mark_on_the_next_item(open_page, project, annotator, chromium, live_server) -> None:
    ask(project, make_items(project, 4))
    cookies = open_page(annotator).context.storage_state()
    phone = chromium.new_context(
        base_url=live_server.url,
        viewport={"width": 390, "height": 760},
        has_touch=True,
        is_mobile=True,
        storage_state=cookies,
    )
    page = phone.new_page()
    page.goto(f"/projects/{project.slug}/annotate/")
    ready(page)
    tapped, other = (page.locator(f"#label-form .choice >> nth={place}") for place in (0, 1))
    place = page.locator("#stage").bounding_box()
    colour = "element => getComputedStyle(element).backgroundColor"
    for _ in range(2):
        tapped.tap()
        expect(page.locator("#said")).to_contain_text("Saved")
        ready(page)
        expect(tapped).to_have_css("background-color", other.evaluate(colour))
    assert page.locator("#stage").bounding_box() == place  # nothing moved under the finger
    phone.close()
