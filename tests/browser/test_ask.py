"""The dialog that asks before what cannot be undone: by keyboard, before a page that
changes, without scripts.
"""

from itertools import pairwise

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotation.labelling import queue
from annotation.models import Membership
from testbed.factories import add_member, make_project
from testbed.worlds import make_world
from tests.browser.sessions import log_in
from tests.browser.test_accessibility import AXE, LOOK

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FOCUSED = "document.activeElement.textContent.trim()"


def member_page() -> tuple[Membership, str]:
    project = make_project()
    person = add_member(project, "annotator")
    member = Membership.objects.get(project=project, user=person)
    return member, reverse("member", args=[project.slug, person.pk])


def test_no_keeps_and_yes_does_by_keyboard_alone(page: Page) -> None:
    member, address = member_page()
    log_in(page.context, member.project.created_by)
    page.goto(address)
    button, dialog = page.get_by_role("button", name="Remove", exact=True), page.get_by_role("dialog")
    for key in ("Enter", "Escape"):  # in the dialog, "Cancel" has the focus where something is lost
        button.focus()
        page.keyboard.press("Enter")
        expect(dialog).to_have_accessible_name(f"Remove {member.user.username} from the project?")
        expect(dialog).to_have_accessible_description("Their labels stay, and they can be added again.")
        assert page.evaluate(FOCUSED) == "Cancel"
        page.keyboard.press(key)
        expect(dialog).to_be_hidden()
        assert page.evaluate(FOCUSED) == "Remove"
    assert Membership.objects.filter(pk=member.pk).exists()
    page.keyboard.press("Enter")
    page.evaluate(AXE)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        assert page.evaluate(LOOK, None) == []
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/members/")
    assert not Membership.objects.filter(pk=member.pk).exists()


@pytest.mark.parametrize("part", ["form[data-ask]", "form[data-ask] button"])
def test_what_the_page_replaced_meanwhile_is_sent_all_the_same(page: Page, part: str) -> None:
    member, address = member_page()
    log_in(page.context, member.project.created_by)
    page.goto(address)
    page.get_by_role("button", name="Remove", exact=True).click()
    page.evaluate("part => document.querySelector(part).outerHTML += ''", part)
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Remove", exact=True).first.focus()
    page.keyboard.press("Enter")
    page.evaluate("part => document.querySelector(part).remove()", part)
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    page.wait_for_url("**/members/")
    assert not Membership.objects.filter(pk=member.pk).exists()


def test_a_double_press_asks_once(page: Page) -> None:
    member, address = member_page()
    log_in(page.context, member.project.created_by)
    page.goto(address)
    page.get_by_role("button", name="Remove", exact=True).dblclick()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.mouse.click(5, 5)
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_a_press_before_the_other_scripts_are_there_is_asked_about(page: Page) -> None:
    member, address = member_page()
    log_in(page.context, member.project.created_by)
    page.route("**/htmx.min.js*", lambda _route: None)  # never answered: no deferred script runs
    page.goto(address, wait_until="commit")
    page.get_by_role("button", name="Remove", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert Membership.objects.filter(pk=member.pk).exists()


def test_without_scripts_the_form_is_sent(chromium: Browser, live_server: LiveServer) -> None:
    member, address = member_page()
    context = chromium.new_context(base_url=live_server.url, java_script_enabled=False)
    log_in(context, member.project.created_by)
    page = context.new_page()
    page.goto(address)
    page.get_by_role("button", name="Remove", exact=True).click()
    page.wait_for_url("**/members/")
    context.close()
    assert not Membership.objects.filter(pk=member.pk).exists()


def test_where_cancelling_is_the_deed_the_other_button_says_what_it_keeps(page: Page) -> None:
    world = make_world(40)
    run = world.calibrating(m=20)
    log_in(page.context, world.manager)
    page.goto(reverse("run", args=[world.project.slug, run.number]))
    page.get_by_text("Cancel this run", exact=True).click()
    page.get_by_role("button", name="Cancel the run").click()
    dialog = page.get_by_role("dialog")
    assert [one.strip() for one in dialog.get_by_role("button").all_inner_texts()] == [
        "Cancel the run",
        "Keep the run",
    ]
    dialog.get_by_role("button", name="Keep the run").click()
    expect(dialog).to_be_hidden()
    run.refresh_from_db()
    assert run.state == run.State.CALIBRATING


def test_buttons_of_a_decision_do_not_lie_on_each_other(page: Page) -> None:
    world = make_world(40)
    world.calibrating(m=20)
    world.project.items.update(text="The parcel has not arrived, and nobody answers. " * 3)
    for user in (*world.annotators, world.manager):
        task = queue.claim(project=world.project, user=user)
        queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
    log_in(page.context, world.manager)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(reverse("overview", args=[world.project.slug]))
    boxes = [one.bounding_box() for one in page.locator("#stuck td button").all()]
    assert len(boxes) > 1
    for upper, lower in pairwise(sorted(boxes, key=lambda box: (box["y"], box["x"]))):
        beside = upper["x"] + upper["width"] <= lower["x"]
        assert beside or upper["y"] + upper["height"] <= lower["y"]
