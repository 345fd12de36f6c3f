"""What helps to label, in a real browser: drafts, comments, flags, zoom, guidelines, the clock."""

from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Comment, Label, User, WorkItem
from testbed.factories import add_member, make_image, make_image_items, make_items, make_project
from tests.browser.test_labelling import annotator, ask, open_page, project, ready, shown
from tests.browser.test_labelling_outbox import held, nothing_kept
from tests.browser.waiting import wait_until

__all__ = ["annotator", "open_page", "project"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def texts(request):
    """A project whose answers are short texts."""
    project = make_project(task_type="short_text", choices=())
    ask(project, make_items(project, 4))
    return project


def open_other(open_page, page: Page, other) -> User:
    """Log somebody in and open the labelling page of this project instead of the usual one."""
    user = add_member(other)
    open_page(user)
    page.goto(f"/projects/{other.slug}/annotate/")
    ready(page)
    return user


def test_what_was_typed_is_there_after_a_reload_and_goes_to_no_other_item(open_page, page, texts) -> None:
    open_other(open_page, page, texts)
    field = page.get_by_label("Your answer", exact=True)
    page.keyboard.type("half an ans")
    wait_until(page, "() => JSON.stringify(localStorage).includes('half an ans')")
    page.reload()
    ready(page)
    expect(field).to_have_value("half an ans")
    held(page, 2)
    field.press("End")
    page.keyboard.type("wer")
    page.keyboard.press("Enter")
    ready(page)
    expect(field).to_have_value("")
    expect(page.locator("#said")).to_contain_text("Saved: half an answer")
    page.keyboard.type("next")
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    expect(page.locator("#task")).to_have_attribute("data-state", "correcting")
    expect(field).to_have_value("half an answer")
    ready(page)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("#task")).to_have_attribute("data-state", "item")
    expect(field).to_have_value("next")


@pytest.mark.parametrize("width", [1280, 390])
def test_what_skip_and_flag_open_covers_neither_item_nor_answers(
    open_page, project, annotator, width
) -> None:
    ask(project, make_items(project, 3))
    page = open_page(annotator)
    page.set_viewport_size({"width": width, "height": 800})
    ready(page)
    for panel in ("skip", "flag"):
        page.locator(f"#{panel} > summary").click()
        card = page.locator(f"#{panel} > .card")
        expect(card).to_be_in_viewport(ratio=1)
        top = card.bounding_box()["y"]
        for shown_beside in ("#stage", "#label-form", f"#{panel} > summary"):
            box = page.locator(shown_beside).bounding_box()
            assert box["y"] + box["height"] <= top, shown_beside
        expect(page.locator("#stage")).to_be_in_viewport(ratio=1)


def test_a_comment_goes_with_the_answer(open_page, project, annotator) -> None:
    ask(project, make_items(project, 3))
    page = open_page(annotator)
    ready(page)
    page.keyboard.press("c")
    page.keyboard.type("1 is near, 2 too")
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    expect(page.locator("#said")).to_contain_text("Saved: dog")
    assert Label.objects.get().comment == "1 is near, 2 too"
    expect(page.locator("#answer-comment")).to_have_value("")


def test_a_flag_is_set_by_key_and_the_item_stays(open_page, project, annotator) -> None:
    ask(project, make_items(project, 3))
    page = open_page(annotator)
    ready(page)
    text = shown(page)
    page.keyboard.press("f")
    page.keyboard.type("Two cats?")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Flagged")
    assert shown(page) == text
    flag = Comment.objects.get()
    assert (flag.text, flag.is_flag, flag.item.text) == ("Two cats?", True, text)


def test_single_keys_can_be_switched_off(open_page, project, annotator) -> None:
    ask(project, make_items(project, 3))
    page = open_page(annotator)
    ready(page)
    page.keyboard.press("?")
    page.get_by_role("button", name="Switch single keys off").click()
    expect(page.get_by_text("Single keys do nothing any more")).to_be_visible()
    ready(page)
    for key in "12us?":
        page.keyboard.press(key)
    page.wait_for_timeout(300)
    expect(page.get_by_role("heading", name="Shortcuts")).to_be_hidden()
    assert not Label.objects.exists()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Saved: cat")


def test_one_label_among_many_is_found(open_page, page) -> None:
    many = make_project(choices=[*(f"label {n}" for n in range(20)), "crème brûlée", "crumble"])
    ask(many, make_items(many, 3))
    open_other(open_page, page, many)
    page.keyboard.press("/")
    page.keyboard.type("creme")
    expect(page.locator("#label-form .choice:visible")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Saved: crème brûlée")
    ready(page)
    expect(page.locator("#label-form .choice:visible")).to_have_count(22)
    page.keyboard.press("/")
    page.keyboard.type("no such")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator("#label-form .choice:visible")).to_have_count(22)
    assert Label.objects.count() == 1


def test_an_image_is_made_larger_and_moved(open_page, project, annotator) -> None:
    ask(project, make_image_items(project, [make_image(n, size=(300, 200)) for n in range(3)]))
    page = open_page(annotator)
    ready(page)
    image = page.locator("#item-image")

    def width() -> float:
        box = image.bounding_box()
        assert box
        return box["width"]

    before = width()
    page.keyboard.press("z")
    assert width() > 2 * before
    box = page.locator(".item-image").bounding_box()
    assert box
    at = page.locator(".item-image").evaluate("box => box.scrollLeft")
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] + 60)
    page.mouse.up()
    assert page.locator(".item-image").evaluate("box => box.scrollLeft") == at + 100
    page.keyboard.press("-")
    page.keyboard.press("-")
    page.keyboard.press("-")
    assert width() == before
    page.keyboard.press("+")
    assert width() > before
    page.keyboard.press("1")
    expect(page.locator("#said")).to_contain_text("Saved")
    assert width() == before


def test_guidelines_stand_beside_the_item_and_stay_there(open_page, project, annotator) -> None:
    ask(project, make_items(project, 3))
    page = open_page(annotator)
    ready(page)

    def beside() -> bool:
        stage, guidelines = (page.locator(name).bounding_box() for name in ("#stage", "#guidelines"))
        assert stage
        return guidelines is not None and guidelines["x"] >= stage["x"] + stage["width"]

    assert beside()
    page.keyboard.press("g")
    assert not beside()
    page.reload()
    ready(page)
    assert not beside()
    page.keyboard.press("g")
    assert beside()
    page.set_viewport_size({"width": 1000, "height": 800})
    assert not beside()


def test_what_opens_moves_nothing_and_a_flagged_item_shows_it(open_page, page) -> None:
    long = make_project(choices=("Delivery was late", "Charged for something else", "None of the two"))
    ask(long, make_items(long, ["Where is it?", "Where is my parcel? " * 20, "Hello"]))
    open_other(open_page, page, long)
    places = (
        "() => [...document.querySelectorAll('.choice, .task-tools summary')].map((one) => one.offsetTop)"
    )
    before = page.evaluate(places)
    page.keyboard.press("s")
    assert page.evaluate(places) == before
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    assert page.evaluate(places) == before
    page.keyboard.type("Odd")
    page.keyboard.press("Enter")
    expect(page.locator("#item-flagged")).to_be_visible()
    flagged = page.locator("#item-name").inner_text()
    page.reload()
    ready(page)
    assert page.locator("#item-name").inner_text() == flagged
    expect(page.locator("#item-flagged")).to_be_visible()
    page.keyboard.press("1")
    ready(page)
    assert page.locator("#item-name").inner_text() != flagged
    expect(page.locator("#item-flagged")).to_be_hidden()


@pytest.mark.parametrize("width", [390, 800, 1100, 1440])
def test_no_label_breaks_within_a_word(open_page, page, width) -> None:
    words = (
        ["Complaint", "Shipping", "Cancellation"],
        ["Misunderstanding about a refund", "Delivery was late"],
    )
    for names in words:
        wide = make_project(choices=names)
        ask(wide, make_items(wide, 1))
        page.set_viewport_size({"width": width, "height": 800})
        page.context.clear_cookies()
        open_other(open_page, page, wide)
        broken = page.evaluate("""() => [...document.querySelectorAll(".choice .name")].flatMap((name) => {
          const text = name.firstChild;
          return [...text.data.matchAll(/\\S+/g)].filter(({ 0: word, index }) => {
            const range = document.createRange();
            range.setStart(text, index);
            range.setEnd(text, index + word.length);
            return range.getClientRects().length > 1;
          }).map(({ 0: word }) => word);
        })""")
        assert broken == []


@pytest.mark.parametrize(("waits", "counted"), [(30, 30), (200, 60)])
def test_the_clock_stands_still_when_nobody_does_anything(
    open_page, page, project, annotator, waits, counted
) -> None:
    ask(project, make_items(project, 3))
    page.clock.install()
    page.clock.pause_at(datetime.now() + timedelta(minutes=1))
    open_page(annotator)
    page.clock.run_for(1000)
    ready(page)
    page.mouse.move(100, 100)
    page.clock.run_for(waits * 1000)
    page.keyboard.press("1")
    page.clock.run_for(1000)
    expect(page.locator("#said")).to_contain_text("Saved: cat")
    assert abs(Label.objects.get().lead_time_ms - counted * 1000) < 3000


def test_the_stage_fits_its_items_and_nothing_moves_up_again(open_page, project, annotator) -> None:
    ask(project, make_items(project, ["short", "long " * 300, "two\nlines"] * 3))
    page = open_page(annotator)
    held(page, 2)
    place, longest = 0.0, 0
    for _ in range(8):
        ready(page)
        box = page.get_by_role("button", name="cat").bounding_box()
        assert box
        length = len(page.locator("#stage").inner_text())
        # Two short lines may have room where one had it.
        assert box["y"] > place if length > 500 > longest > 0 else box["y"] >= place
        if length < longest:
            assert box["y"] == place
        place, longest = box["y"], max(longest, length)
        page.keyboard.press("1")
    expect(page.locator("#said")).to_contain_text("Saved")


def test_what_is_said_aloud_waits_for_a_pause(open_page, project, annotator) -> None:
    ask(project, make_items(project, 6))
    page = open_page(annotator)
    held(page, 2)
    for _ in range(3):
        ready(page)
        page.keyboard.press("1")
    expect(page.locator("#announce")).to_contain_text("Next item: text")
    nothing_kept(page)
    assert WorkItem.objects.filter(state="done").count() == 3
