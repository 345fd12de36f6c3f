"""Numbers, texts and several labels by keyboard in a real browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Label, Project, Skip
from testbed.factories import add_member, make_items, make_project
from tests.browser.test_labelling import ask, open_page, ready
from tests.browser.waiting import skip

__all__ = ["open_page"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def project(request: pytest.FixtureRequest) -> Project:
    """A project of the task type that the test names, with three items that wait."""
    task_type = request.param
    choices = ("cat", "dog", "emu") if task_type.endswith("_choice") else ()
    project = make_project(task_type=task_type, choices=choices)
    ask(project, make_items(project, 3))
    return project


def labels() -> list[object]:
    return list(Label.objects.order_by("pk").values_list("value", flat=True))


@pytest.mark.parametrize("project", ["number"], indirect=True)
def test_a_number_is_typed_and_given_with_enter(open_page, project):
    page: Page = open_page(add_member(project))
    ready(page)
    field = page.get_by_label("Which number?")
    expect(field).to_be_focused()
    page.keyboard.press("Enter")  # nothing was typed: nothing is sent
    page.keyboard.type("1,500")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("without a comma")
    expect(field).to_have_value("1,500")
    ready(page)
    field.fill("1500.50")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Saved: 1500.5")
    ready(page)
    expect(field).to_be_focused()
    expect(field).to_have_value("")
    # Letters that are shortcuts belong to the field, until it is left.
    page.keyboard.type("us")
    expect(field).to_have_value("us")
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    expect(page.locator("#said")).to_contain_text("Your last answer is back")
    ready(page)
    expect(field).to_have_value("1500.5")
    field.fill("-2")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#said")).to_contain_text("Corrected: -2")
    assert labels() == ["1500.5", "-2"]


@pytest.mark.parametrize("project", ["number"], indirect=True)
def test_the_field_has_the_focus_after_loading_and_after_a_correction(open_page, project):
    page: Page = open_page(add_member(project))
    ready(page)
    expect(page.get_by_label("Which number?")).to_be_focused()
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Saved: 7")
    page.locator("form[data-undo] button").click()
    expect(page.locator("#said")).to_contain_text("Your last answer is back")
    ready(page)
    field = page.get_by_label("Which number?")
    expect(field).to_be_focused()
    expect(field).to_have_value("7")


@pytest.mark.parametrize("project", ["number"], indirect=True)
def test_what_is_given_before_the_item_can_be_seen_does_not_stay(open_page, project):
    page: Page = open_page(add_member(project))
    ready(page)
    page.evaluate("delete document.getElementById('task').dataset.ready")
    page.keyboard.type("12")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("before the item could be seen")
    field = page.get_by_label("Which number?")
    expect(field).to_have_value("")
    page.evaluate("document.getElementById('task').dataset.ready = ''")
    page.keyboard.type("34")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Saved: 34")
    assert labels() == ["34"]


@pytest.mark.parametrize("project", ["long_text"], indirect=True)
def test_a_text_has_lines_and_is_given_with_control_and_enter(open_page, project):
    page: Page = open_page(add_member(project))
    ready(page)
    page.keyboard.type("one")
    page.keyboard.press("Enter")
    page.keyboard.type("two")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#said")).to_contain_text("Saved: one two")
    assert labels() == ["one\ntwo"]
    ready(page)
    page.keyboard.press("Escape")
    skip(page)
    expect(page.locator("#said")).to_contain_text("Skipped")
    assert Skip.objects.count() == 1


@pytest.mark.parametrize("project", ["multiple_choice"], indirect=True)
def test_keys_tick_several_labels_and_enter_gives_them(open_page, project):
    page: Page = open_page(add_member(project))
    ready(page)
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Tick each label that fits")
    ready(page)
    for key in "1322":
        page.keyboard.press(key)
    expect(page.get_by_role("checkbox", name="dog")).not_to_be_checked()
    expect(page.get_by_role("checkbox", name=re.compile("cat"))).to_be_checked()
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Saved: cat, emu")
    ready(page)
    page.keyboard.press("0")
    expect(page.locator("#said")).to_contain_text("Saved: none of them")
    ready(page)
    # The space bar ticks what the arrow keys come to.
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="All done for now")).to_be_visible()
    assert labels() == [["cat", "emu"], [], ["dog"]]


@pytest.mark.parametrize("project", ["multiple_choice"], indirect=True)
def test_ticks_survive_a_lost_connection(open_page, project, context):
    page: Page = open_page(add_member(project))
    ready(page)
    page.keyboard.press("1")
    page.keyboard.press("2")
    context.set_offline(True)
    page.keyboard.press("Enter")
    expect(page.locator("#connection")).to_contain_text("No connection")
    context.set_offline(False)
    expect(page.locator("#said")).to_contain_text("Saved: cat, dog")
    assert labels() == [["cat", "dog"]]
