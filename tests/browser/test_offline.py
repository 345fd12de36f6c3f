"""Labelling through what happens to connections, sessions and leases between two people and two browsers.

tests/browser/test_labelling_outbox.py tries the same one by one, with one person; here they come together.
"""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotation.models import Draft, Label, Project, User, WorkItem
from testbed.factories import PASSWORD, add_member, make_items, make_project
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.sessions import log_in
from tests.browser.test_labelling import annotator, ask, ready, shown
from tests.browser.test_labelling_outbox import give, held, nothing_kept

__all__ = ["annotator"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def project() -> Project:
    return make_project(choices=("cat", "dog"), lease_seconds=60)


@pytest.fixture
def other(chromium: Browser, live_server: LiveServer) -> Iterator[Page]:
    """A page in somebody else's browser."""
    elsewhere = chromium.new_context(base_url=live_server.url)
    elsewhere.set_default_timeout(TIMEOUT_MS)
    yield elsewhere.new_page()
    elsewhere.close()


def open_as(page: Page, user: User, project: Project) -> None:
    log_in(page.context, user)
    page.goto(f"/projects/{project.slug}/annotate/")
    ready(page)


def given() -> list[tuple[str, str]]:
    return list(Label.objects.order_by("pk").values_list("item__text", "value"))


def test_a_reload_without_a_connection_loses_no_answer(
    page: Page, context: BrowserContext, project: Project, annotator: User
) -> None:
    ask(project, make_items(project, 6))
    open_as(page, annotator, project)
    held(page, 2)
    context.set_offline(True)
    first, second = give(page, "1", "2")
    expect(page.locator("#unsent")).to_contain_text("2")
    with pytest.raises(Error, match="ERR_INTERNET_DISCONNECTED"):
        page.reload()
    assert not Label.objects.exists()
    context.set_offline(False)
    page.goto(f"/projects/{project.slug}/annotate/")
    nothing_kept(page)
    ready(page)
    assert given() == [(first, "cat"), (second, "dog")]
    assert shown(page) not in (first, second)
    (third,) = give(page, "1")
    expect(page.locator("#said")).to_contain_text("Saved: cat")
    assert given()[2:] == [(third, "cat")]


def test_a_session_that_ends_while_there_is_no_connection(
    page: Page, context: BrowserContext, project: Project, annotator: User
) -> None:
    ask(project, make_items(project, 5))
    open_as(page, annotator, project)
    held(page, 2)
    context.set_offline(True)
    first, second = give(page, "2", "1")
    expect(page.locator("#connection")).to_contain_text("No connection")
    Session.objects.all().delete()
    context.set_offline(False)
    expect(page.locator("#connection")).to_contain_text("You have been logged out")
    assert not Label.objects.exists()
    page.locator("#connection a").click()
    page.get_by_label("Username").fill(annotator.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    ready(page)
    nothing_kept(page)
    assert given() == [(first, "dog"), (second, "cat")]


def test_who_comes_back_after_the_lease_finds_the_item_with_somebody_else(
    page: Page, other: Page, context: BrowserContext, project: Project, annotator: User
) -> None:
    ask(project, make_items(project, 1))
    open_as(page, annotator, project)
    text = shown(page)
    context.set_offline(True)
    give(page, "1")
    expect(page.locator("#connection")).to_contain_text("No connection")
    WorkItem.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    open_as(other, add_member(project, "annotator"), project)
    assert shown(other) == text
    other.keyboard.press("2")
    expect(other.locator("#said")).to_contain_text("Saved: dog")
    context.set_offline(False)
    problem = page.locator("#problems .problem")
    expect(problem).to_contain_text("kept as a draft. Your answer was: cat")
    expect(page.get_by_role("heading", name="Nothing left to label")).to_be_visible()
    assert given() == [(text, "dog")]
    draft = Draft.objects.get()
    assert (draft.value, draft.user) == ("cat", annotator)


def test_two_people_at_once_get_no_item_twice_and_leave_none(
    page: Page, other: Page, context: BrowserContext, project: Project, annotator: User
) -> None:
    """One of them loses the connection for a while."""
    ask(project, make_items(project, 14))
    second = add_member(project, "annotator")
    open_as(page, annotator, project)
    open_as(other, second, project)
    held(page, 5)  # both of them together
    other.wait_for_load_state("networkidle")
    mine, theirs = [], []
    for number in range(3):
        assert shown(page) != shown(other)
        mine += give(page, "1")
        theirs += give(other, "2")
        if number == 0:
            context.set_offline(True)
    context.set_offline(False)
    nothing_kept(page)
    for labeller, key, texts in ((page, "1", mine), (other, "2", theirs)):
        while True:
            expect(labeller.locator("#task[data-ready], #task[data-state=empty]")).to_be_attached()
            if labeller.locator("#task[data-state=empty]").count():
                break
            texts += give(labeller, key)
            expect(labeller.locator(f"#item-text:text-is('{texts[-1]}')")).to_have_count(0)
    expect(page.get_by_role("heading", name="All done for now")).to_be_visible()
    nothing_kept(other)
    assert len({*mine, *theirs}) == len(mine) + len(theirs) == Label.objects.count() == 14
    assert set(Label.objects.filter(annotator=annotator).values_list("item__text", "value")) == {
        (text, "cat") for text in mine
    }
    assert set(Label.objects.filter(annotator=second).values_list("item__text", "value")) == {
        (text, "dog") for text in theirs
    }
