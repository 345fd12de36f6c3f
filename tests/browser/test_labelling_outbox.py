"""Answers in a real browser whose connection, page or lease goes: nothing is lost, all is told."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from annotation.labelling import queue
from annotation.models import Choice, Draft, Label, Membership, Skip, WorkItem
from testbed.factories import add_member, make_items
from tests.browser.test_labelling import annotator, ask, open_page, project, ready, shown
from tests.browser.waiting import skip

__all__ = ["annotator", "open_page", "project"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
OpenPage = Callable[..., Page]


def values() -> list[str]:
    return list(Label.objects.order_by("pk").values_list("value", flat=True))


def nothing_kept(page: Page) -> None:
    """Wait until no answer waits in the browser."""
    for _ in range(600):
        if page.evaluate("localStorage.length") == 0:
            return
        page.wait_for_timeout(100)
    raise AssertionError("answers are still waiting")


def held(page: Page, count: int) -> None:
    """Wait until the page holds so many items behind the one that it shows."""
    for _ in range(600):
        if WorkItem.objects.filter(state="leased").count() == count + 1:
            page.wait_for_load_state("networkidle")  # it has been told of them, too
            return
        page.wait_for_timeout(100)
    raise AssertionError("the items ahead were not leased")


def give(page: Page, *keys: str) -> list[str]:
    """Press these keys, each on an item of its own; returns the texts of the items."""
    texts = []
    for key in keys:
        ready(page)
        texts.append(shown(page))
        page.keyboard.press(key)
    return texts


def test_the_next_item_is_there_while_the_answer_is_still_on_its_way(
    open_page, context, project, annotator
) -> None:
    ask(project, make_items(project, 5))
    page = open_page(annotator)
    held(page, 2)
    waiting: list[Route] = []
    context.route("**/annotate/submit/", lambda route: waiting.append(route))
    first, second = give(page, "1", "2")
    ready(page)
    third = shown(page)
    assert len({first, second, third}) == 3
    assert Label.objects.count() == 0
    expect(page.locator("#said")).to_contain_text("Saving")
    expect(page.locator("#unsent")).to_contain_text("2")
    context.unroute("**/annotate/submit/")
    waiting[0].continue_()
    expect(page.locator("#said")).to_contain_text("Saved: dog")
    expect(page.locator("#unsent")).to_be_hidden()
    assert shown(page) == third
    labels = Label.objects.order_by("pk").values_list("item__text", "value")
    assert list(labels) == [(first, "cat"), (second, "dog")]


def test_what_is_held_can_be_answered_without_a_connection(open_page, context, project, annotator) -> None:
    ask(project, make_items(project, 5))
    page = open_page(annotator)
    held(page, 2)
    context.set_offline(True)
    texts = give(page, "1", "2", "1")
    expect(page.locator("#connection")).to_contain_text("No connection")
    expect(page.locator("#unsent")).to_contain_text("Waiting to be sent: 3")
    expect(page.locator(".item-waiting")).to_contain_text("as soon as the connection is back")
    assert Label.objects.count() == 0
    context.set_offline(False)
    expect(page.locator("#item-text")).to_be_visible()
    expect(page.locator("#connection")).to_be_hidden()
    nothing_kept(page)
    assert list(Label.objects.order_by("pk").values_list("item__text", "value")) == [
        (texts[0], "cat"),
        (texts[1], "dog"),
        (texts[2], "cat"),
    ]
    assert shown(page) not in texts


def test_an_answer_outlives_a_lost_connection(open_page, context, project, annotator) -> None:
    """It is kept, told in words, and sent again: also where the first one had arrived unseen."""
    ask(project, make_items(project, 3))
    page = open_page(annotator)
    ready(page)
    tries: list[str] = []

    def lose(route: Route) -> None:
        tries.append(route.request.post_data or "")
        if len(tries) == 1:
            route.fetch()  # it arrives; its answer does not
            route.abort()
        elif len(tries) == 2:
            route.fulfill(status=503, body="later")
        else:
            route.continue_()

    context.route("**/annotate/submit/", lose)
    page.keyboard.press("2")
    expect(page.locator("#connection")).to_contain_text("kept in this browser")
    expect(page.locator("#said")).to_contain_text("Saved: dog")
    expect(page.locator("#connection")).to_be_hidden()
    assert len(tries) == 3
    assert values() == ["dog"]
    assert page.evaluate("Object.keys(localStorage)") == []


def test_an_answer_is_sent_again_where_a_request_is_never_answered(
    open_page, context, project, annotator
) -> None:
    ask(project, make_items(project, 3))
    context.add_init_script(
        "const real = AbortSignal.timeout.bind(AbortSignal);"
        "AbortSignal.timeout = (ms) => real(window.hurried ? ms / 30 : ms);"
    )
    page = open_page(annotator)
    held(page, 2)
    tries: list[Route] = []

    def swallow(route: Route) -> None:
        tries.append(route)
        if len(tries) > 1:
            route.continue_()

    context.route("**/annotate/submit/", swallow)
    page.evaluate("window.hurried = true")
    give(page, "2")
    expect(page.locator("#connection")).to_contain_text("No connection")
    page.evaluate("window.hurried = false")
    expect(page.locator("#said")).to_contain_text("Saved: dog")
    expect(page.locator("#connection")).to_be_hidden()
    assert values() == ["dog"]


def test_an_answer_outlives_a_closed_page(open_page, context, project, annotator) -> None:
    ask(project, make_items(project, 4))
    page = open_page(annotator)
    held(page, 2)
    context.route("**/annotate/submit/", lambda route: route.fulfill(status=502, body="later"))
    first, second = give(page, "2", "1")
    expect(page.locator("#connection")).to_be_visible()
    assert Label.objects.count() == 0
    context.unroute("**/annotate/submit/")
    page.reload()
    nothing_kept(page)
    ready(page)
    assert shown(page) not in (first, second)
    assert list(Label.objects.order_by("pk").values_list("item__text", "value")) == [
        (first, "dog"),
        (second, "cat"),
    ]


def test_an_answer_that_comes_too_late_is_told_until_it_is_read(open_page, project, annotator) -> None:
    ask(project, make_items(project, 4))
    page = open_page(annotator)
    held(page, 2)
    work_item = WorkItem.objects.get(state="leased", item__text=shown(page))
    queue.release_all(project=project, user=annotator)
    other = add_member(project, "annotator")
    while (task := queue.claim(project=project, user=other)) and task.work_item.pk != work_item.pk:
        queue.submit(
            user=other,
            work_item_id=task.work_item.pk,
            token=task.token,
            value="cat",
            idempotency_key=f"k{task.work_item.pk}",
        )
    give(page, "2")
    for _ in range(2):
        expect(page.locator("#problems")).to_contain_text("kept as a draft. Your answer was: dog")
        page.reload()
    page.get_by_role("button", name="I have read this").click()
    expect(page.locator("#problems")).to_be_empty()
    assert not Label.objects.filter(annotator=annotator).exists()
    assert Draft.objects.get().value == "dog"


def test_a_withdrawn_item_is_told_and_the_next_one_stays(open_page, project, annotator) -> None:
    ask(project, make_items(project, 2))
    page = open_page(annotator)
    held(page, 1)
    queue.withdraw_batch(batch=project.work_batches.get())
    give(page, "1")
    expect(page.locator("#problems")).to_contain_text("no longer asked for")
    give(page, "2")
    expect(page.locator("#problems .problem")).to_have_count(2)
    expect(page.get_by_role("heading", name="Nothing left to label")).to_be_visible()


def test_an_answer_that_is_refused_brings_its_item_back(open_page, context, project, annotator) -> None:
    ask(project, make_items(project, 3))
    page = open_page(annotator)
    held(page, 2)
    Choice.objects.filter(project=project, key="dog").delete()
    held_back: list[Route] = []
    context.route("**/annotate/submit/", lambda route: held_back.append(route))
    (text,) = give(page, "2")
    ready(page)
    other = shown(page)
    assert other != text
    held_back[0].continue_()
    expect(page.locator("#said .trouble")).to_contain_text("not one of this project's labels")
    assert shown(page) == text
    context.unroute("**/annotate/submit/")
    give(page, "1")
    expect(page.locator("#said")).to_contain_text("Saved: cat")
    assert shown(page) == other


def test_what_is_still_unsent_can_be_corrected(open_page, context, project, annotator) -> None:
    ask(project, make_items(project, 3))
    page = open_page(annotator)
    held(page, 2)
    context.set_offline(True)
    first, second = give(page, "1", "1")
    third = shown(page)
    expect(page.locator("#connection")).to_be_visible()
    for text in (second, first):
        page.wait_for_timeout(300)
        page.keyboard.press("u")
        expect(page.locator("#task")).to_have_attribute("data-state", "unsent")
        expect(page.locator("#item-text")).to_have_text(text)
        expect(page.get_by_role("button", name="cat")).to_have_attribute("aria-pressed", "true")
    give(page, "2")
    expect(page.locator("#item-text")).to_have_text(third)
    context.set_offline(False)
    nothing_kept(page)
    assert dict(Label.objects.values_list("item__text", "value")) == {first: "dog", second: "cat"}


def test_a_correction_of_what_had_arrived_unseen_is_a_second_version(
    open_page, context, project, annotator
) -> None:
    ask(project, make_items(project, 3))
    page = open_page(annotator)
    held(page, 2)

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    def cut(route: Route) -> None:
        route.abort()

    context.route("**/annotate/submit/", cut)
    context.route("**/annotate/submit/", lose, times=1)
    context.route("**/annotate/ahead/", cut)
    give(page, "1")
    expect(page.locator("#connection")).to_be_visible()
    context.set_offline(True)
    page.keyboard.press("u")
    expect(page.locator("#task")).to_have_attribute("data-state", "unsent")
    give(page, "2")
    context.unroute("**/annotate/submit/", cut)
    context.set_offline(False)
    expect(page.locator("#said")).to_contain_text("Corrected: dog")
    assert list(Label.objects.order_by("pk").values_list("value", "version")) == [("cat", 1), ("dog", 2)]


def test_a_skip_that_was_not_sent_is_taken_back(open_page, context, project, annotator) -> None:
    ask(project, make_items(project, 3))
    page = open_page(annotator)
    held(page, 2)
    context.set_offline(True)
    ready(page)
    text = shown(page)
    skip(page)
    expect(page.locator("#connection")).to_be_visible()
    assert shown(page) != text
    page.keyboard.press("u")
    expect(page.locator("#item-text")).to_have_text(text)
    give(page, "1")
    context.set_offline(False)
    expect(page.locator("#said")).to_contain_text("Saved: cat")
    assert not Skip.objects.exists()
    assert Label.objects.get().item.text == text


def test_what_is_held_ahead_goes_back_when_the_page_is_left(open_page, project, annotator) -> None:
    ask(project, make_items(project, 6))
    page = open_page(annotator)
    held(page, 2)
    page.goto(f"/projects/{project.slug}/")
    expect(page.get_by_text("wait for a label")).to_be_visible()
    for _ in range(600):
        if WorkItem.objects.filter(state="leased").count() == 1:
            break
        page.wait_for_timeout(100)
    assert WorkItem.objects.filter(state="leased").count() == 1


def test_stopping_sends_what_waits_and_gives_everything_back(open_page, project, annotator) -> None:
    ask(project, make_items(project, 6))
    page = open_page(annotator)
    held(page, 2)
    give(page, "1")
    page.get_by_role("button", name="Stop for now").click()
    expect(page.get_by_text("You hold no item any more")).to_be_visible()
    assert values() == ["cat"]
    assert not WorkItem.objects.filter(state="leased").exists()


def test_the_most_that_somebody_may_label_is_told(open_page, project, annotator) -> None:
    ask(project, make_items(project, 6))
    Membership.objects.filter(user=annotator).update(max_per_day=2)
    page = open_page(annotator)
    give(page, "1", "2")
    expect(page.get_by_text("You have labelled 2 items today, as many as you may in a day.")).to_be_visible()
    assert values() == ["cat", "dog"]
    assert not WorkItem.objects.filter(state="leased").exists()
