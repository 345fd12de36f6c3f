"""Whose answers they are, in a real browser: sessions that end, others who log in, a second window."""

import re

import pytest
from django.conf import settings
from playwright.sync_api import BrowserContext, Page, Route, expect

from annotation.labelling import queue
from annotation.models import Draft, Label, Skip, WorkItem
from annotation.people.members import remove_member
from testbed.factories import PASSWORD, add_member, make_items
from tests.browser.test_labelling import (
    annotator,
    ask,
    open_page,
    project,
    ready,
    shown,
    time_goes_on,
    time_stops,
)
from tests.browser.test_labelling_outbox import give, held, nothing_kept
from tests.browser.waiting import skip

__all__ = ["annotator", "open_page", "project"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def log_in(page: Page, username: str) -> None:
    page.locator("[name=username]").fill(username)
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")


def test_a_session_that_ended_is_told_and_its_answers_go_out_after_logging_in(
    open_page, context: BrowserContext, project, annotator
) -> None:
    ask(project, make_items(project, 5))
    page = open_page(annotator)
    held(page, 2)
    context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    first, second = give(page, "1", "2")
    expect(page.locator("#connection")).to_contain_text("You have been logged out")
    assert Label.objects.count() == 0
    page.locator("#connection a").click()
    log_in(page, annotator.username)
    ready(page)
    nothing_kept(page)
    assert dict(Label.objects.values_list("item__text", "value")) == {first: "cat", second: "dog"}


def test_somebody_else_in_the_same_browser_does_not_send_them(open_page, context, project, annotator) -> None:
    ask(project, make_items(project, 5))
    page = open_page(annotator)
    held(page, 2)
    other = add_member(project, "annotator")
    context.clear_cookies()
    second = context.new_page()
    second.goto("/login/")
    log_in(second, other.username)
    expect(second.get_by_role("button", name="Log out")).to_be_visible()
    give(page, "1")
    expect(page.locator("#connection")).to_contain_text("Somebody else has logged in")
    assert not Label.objects.exists()
    assert not Draft.objects.exists()
    # Logging in again needs the other one to log out first, which is offered where the link leads.
    page.locator("#connection a").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    assert "/annotate/" not in page.url


def test_a_page_takes_and_takes_back_nothing_of_somebody_else_in_the_same_browser(
    open_page, context, project, annotator
) -> None:
    ask(project, make_items(project, 5))
    other = add_member(project, "annotator")
    task = queue.claim(project=project, user=other)
    queue.skip(user=other, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
    page = open_page(annotator)
    held(page, 2)
    context.clear_cookies()
    second = context.new_page()
    second.goto("/login/")
    log_in(second, other.username)
    expect(second.get_by_role("button", name="Log out")).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator("#connection")).to_contain_text("Somebody else has logged in")
    assert Skip.objects.get().cleared_at is None
    assert not WorkItem.objects.filter(leased_to=other).exists()


def test_a_page_without_work_shows_none_of_somebody_elses(open_page, context, project, annotator) -> None:
    page = open_page(annotator)
    expect(page.get_by_role("heading", name="Nothing to label yet")).to_be_visible()
    other = add_member(project, "annotator")
    ask(project, make_items(project, 2))
    context.clear_cookies()
    second = context.new_page()
    second.goto("/login/")
    log_in(second, other.username)
    expect(second.get_by_role("button", name="Log out")).to_be_visible()
    # It looks for work by itself, and is loaded again as the page of who is logged in now.
    expect(page.locator("#task-area")).to_have_attribute("data-person", str(other.pk))
    ready(page)
    page.keyboard.press("1")
    expect(page.locator("#said")).to_contain_text("Saved: cat")
    assert Label.objects.get().annotator == other


def test_a_window_that_was_left_tells_what_became_of_the_answer_that_was_on_its_way(
    open_page, context, project, annotator
) -> None:
    ask(project, make_items(project, 6))
    page = open_page(annotator)
    held(page, 2)
    work_item = WorkItem.objects.get(state="leased", item__text=shown(page))
    on_their_way: list[Route] = []
    context.route("**/annotate/submit/", lambda route: on_their_way.append(route))
    with page.expect_request("**/annotate/submit/"):
        give(page, "1")
    # Somebody else has had the item meanwhile, so that the answer comes too late.
    queue.release(user=annotator, work_item_id=work_item.pk, token=work_item.lease_token)
    task = queue.claim(project=project, user=add_member(project, "annotator"))
    assert task.work_item == work_item
    other = context.new_page()
    other.goto(page.url)
    expect(page.get_by_role("alert").get_by_text("in another window now")).to_be_visible()
    context.unroute("**/annotate/submit/")
    on_their_way[0].continue_()
    expect(page.locator("#problems")).to_contain_text("kept as a draft. Your answer was: cat")


def test_a_window_that_was_left_tells_of_the_only_item_that_its_answer_was_stored(
    open_page, context, project, annotator
) -> None:
    """With nothing to go on with, the answer is a part of the page, which nobody sees any more."""
    ask(project, make_items(project, 1))
    page = open_page(annotator)
    on_their_way: list[Route] = []
    context.route("**/annotate/submit/", lambda route: on_their_way.append(route))
    with page.expect_request("**/annotate/submit/"):
        give(page, "1")
    other = context.new_page()
    other.goto(page.url)
    expect(page.get_by_role("alert").get_by_text("in another window now")).to_be_visible()
    context.unroute("**/annotate/submit/")
    on_their_way[0].continue_()
    expect(page.locator("#said")).to_contain_text("Saved: cat")
    expect(page.locator("#problems")).to_be_empty()


def test_a_window_that_was_left_sends_what_the_browser_would_not_store(
    open_page, context, project, annotator
) -> None:
    ask(project, make_items(project, 6))
    page = open_page(annotator)
    held(page, 2)
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new DOMException('full') } }")
    page.route("**/annotate/submit/", lambda route: route.fulfill(status=503, body="later"))
    texts = give(page, "1", "2")
    expect(page.locator("#connection")).to_contain_text("Leave this window open")
    other = context.new_page()
    other.goto(page.url)
    note = page.get_by_role("alert").filter(has_text="in another window now")
    expect(note).to_contain_text("in this window alone")
    expect(page.locator("#unsent")).to_contain_text("2")
    # What the other one stores under the same name is none of it.
    other.route("**/annotate/skip/", lambda route: route.fulfill(status=503, body="later"))
    ready(other)
    skip(other)
    expect(other.locator("#connection")).to_contain_text("kept in this browser")
    page.unroute("**/annotate/submit/")
    expect(page.locator("#said")).to_contain_text("Saved: dog")
    expect(page.locator("#unsent")).to_be_hidden()
    labels = Label.objects.order_by("pk").values_list("item__text", "value")
    assert list(labels) == list(zip(texts, ["cat", "dog"], strict=True))
    assert other.evaluate("Object.keys(localStorage).some((name) => name.startsWith('hypac-outbox'))")


def test_only_the_window_that_was_opened_last_labels(open_page, context, project, annotator) -> None:
    ask(project, make_items(project, 6))
    page = open_page(annotator)
    held(page, 2)
    context.route("**/annotate/submit/", lambda route: route.fulfill(status=503, body="later"))
    (first,) = give(page, "1")
    second = shown(page)
    expect(page.locator("#connection")).to_be_visible()
    context.unroute("**/annotate/submit/")
    other = context.new_page()
    other.goto(page.url)
    expect(page.get_by_role("alert").get_by_text("in another window now")).to_be_visible()
    ready(other)
    expect(other.locator("#item-text")).to_have_text(second)
    expect(other.locator("#unsent")).to_be_hidden()
    page.keyboard.press("2")
    give(other, "2")
    expect(other.locator("#said")).to_contain_text("Saved: dog")
    assert list(Label.objects.order_by("pk").values_list("item__text", "value")) == [
        (first, "cat"),
        (second, "dog"),
    ]
    assert WorkItem.objects.filter(state="leased").count() <= 3
    page.get_by_role("button", name="Label here").click()
    ready(page)
    expect(other.get_by_text("in another window now")).to_be_visible()


def test_a_window_that_is_left_as_an_item_appears_stops_without_an_error(
    open_page, context, project, annotator
) -> None:
    ask(project, make_items(project, 6))
    context.clock.install()
    page = open_page(annotator)
    held(page, 2)
    time_stops(page)  # what has just appeared takes no answer yet
    give(page, "1")
    other = context.new_page()
    other.goto(page.url)
    expect(page.get_by_role("alert").get_by_text("in another window now")).to_be_visible()
    page.clock.run_for(1000)
    page.keyboard.press("2")
    time_goes_on(other)
    assert [label.value for label in Label.objects.all()] == ["cat"]


def test_what_something_in_between_answers_is_no_answer_of_the_server(
    open_page, context, project, annotator
) -> None:
    """A proxy's page of maintenance comes with 200, and has stored nothing."""
    ask(project, make_items(project, 4))
    page = open_page(annotator)
    held(page, 2)
    replies = [
        {"status": 200, "body": "<html><body>Back soon</body></html>", "content_type": "text/html"},
        {"status": 200, "body": '{"status": "ok"}', "content_type": "application/json"},
        {"status": 421, "body": ""},
    ]
    context.route("**/annotate/submit/", lambda route: route.fulfill(**replies[0]))
    texts = give(page, "1", "2")
    expect(page.locator("#connection")).to_contain_text("will be sent again")
    while replies[1:]:
        replies.pop(0)
        with page.expect_response("**/annotate/submit/"):
            pass
        expect(page.locator("#unsent")).to_contain_text("2")
    context.unroute("**/annotate/submit/")
    nothing_kept(page)
    assert dict(Label.objects.values_list("item__text", "value")) == dict(
        zip(texts, ["cat", "dog"], strict=True)
    )


def test_a_page_without_work_goes_on_looking_for_it_whatever_is_in_between(
    open_page, context, project, annotator
) -> None:
    page = open_page(annotator)
    expect(page.get_by_role("heading", name="Nothing to label yet")).to_be_visible()
    told = {"body": "<html><body>Back soon</body></html>", "content_type": "text/html"}
    context.route("**/annotate/?person=*", lambda route: route.fulfill(status=200, **told))
    with page.expect_response("**/annotate/?person=*"):
        pass
    context.unroute("**/annotate/?person=*")
    ask(project, make_items(project, 2))
    ready(page)


def test_what_is_wanted_of_a_person_first_loses_no_answer(
    open_page, context, project, annotator, settings
) -> None:
    """The second step of the log-in becomes required while they label."""
    ask(project, make_items(project, 4))
    page = open_page(annotator)
    held(page, 2)
    settings.HYPAC_REQUIRE_SECOND_FACTOR = "everyone"
    give(page, "1", "2")
    expect(page.locator("#connection")).to_contain_text("Something is wanted of you")
    expect(page.locator("#unsent")).to_contain_text("2")
    assert not Label.objects.exists()
    page.locator("#connection a").click()
    expect(page).to_have_url(re.compile("/account/"))
    settings.HYPAC_REQUIRE_SECOND_FACTOR = "none"
    page.go_back()
    nothing_kept(page)
    assert [label.value for label in Label.objects.order_by("pk")] == ["cat", "dog"]


def test_whoever_was_removed_is_told_so_and_keeps_what_was_not_sent(
    open_page, context, project, annotator
) -> None:
    ask(project, make_items(project, 4))
    page = open_page(annotator)
    held(page, 2)
    remove_member(project=project, user=annotator, actor=project.created_by)
    give(page, "1")
    expect(page.locator("#connection")).to_contain_text("You take no part in this project any more")
    expect(page.locator("#connection a")).to_have_attribute("href", "/")
    expect(page.locator("#problems")).to_be_empty()
    add_member(project, user=annotator)
    expect(page.locator("#problems")).to_contain_text("kept as a draft. Your answer was: cat")
