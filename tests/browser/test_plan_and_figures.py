"""The plan page follows what is typed, and figures are read by pointer, by keys and as tables."""

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotation.models import Item
from testbed.factories import PASSWORD
from testbed.worlds import World, make_world
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def sign_in(page: Page, username: str) -> None:
    page.goto("/login/")
    page.locator("[name=username]").fill(username)
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Projects")).to_be_visible()


@pytest.fixture
def planned(page: Page) -> tuple[Page, World]:
    world = make_world(200)
    items = list(world.project.items.order_by("position"))
    for number, item in enumerate(items):
        item.data["ask"] = ("0.9", "0.6")[number % 2]
    Item.objects.bulk_update(items, ["data"])
    world.project.columns = [*world.project.columns, "ask"]
    world.project.save()
    sign_in(page, world.manager.username)
    page.goto(f"/projects/{world.project.slug}/plan/")
    page.locator("#part-target summary").click()
    return page, world


@pytest.fixture
def certified(page: Page) -> Page:
    world = make_world(200)
    run = world.analysed(m=120)
    sign_in(page, world.manager.username)
    page.goto(f"/projects/{world.project.slug}/runs/{run.number}/evidence/")
    return page


def option(page: Page, menu: str, name: str) -> Locator:
    return page.locator(f".option:has([name={menu}][value='{name}'])")


def test_what_does_not_fit_is_refused_while_the_fields_change(planned) -> None:
    page, world = planned
    outlook = page.locator("#outlook")
    expect(outlook).to_contain_text("Can be certified")
    page.locator("[name=m]").press("Enter")  # only the button starts a run, whose draw is made once
    page.locator("summary", has_text="Rule and bound").click()
    assert not world.project.runs.exists()
    binomial = option(page, "bound", "binomial")
    expect(binomial.locator(".why")).to_contain_text("use 'hypergeometric'")

    why_not = page.locator("#part-rule .options:has([name=bound])").get_by_label(
        "Show what cannot be chosen here"
    )
    why_not.check()
    page.get_by_label("Exact count for new items").check()
    expect(page.locator("#id_bound_error")).to_contain_text("use 'hypergeometric'")
    expect(outlook).to_contain_text("use 'hypergeometric'")
    page.get_by_label("New items from the same source").check()
    expect(page.locator("#id_bound_error")).to_be_empty()
    expect(binomial.locator(".why")).to_be_empty()
    expect(option(page, "bound", "hypergeometric").locator(".why")).to_contain_text("binomial")
    expect(outlook).to_contain_text("Can be certified")

    page.locator("[name=p]").fill("")
    page.locator("[name=p_column]").select_option("ask")
    expect(page.locator("#id_bound_error")).to_contain_text("probabilit")
    expect(option(page, "rule", "split_fixed_sequence").locator(".why")).to_contain_text("one probability")
    page.get_by_label("The recommended one").check()
    expect(page.locator("#about-bound-0")).to_contain_text("Betting bound")
    expect(outlook).to_contain_text("labels")
    expect(page.locator("#id_bound_error")).to_be_empty()


def test_a_refusal_in_a_part_that_is_folded_in_opens_it(planned) -> None:
    page, _ = planned
    part = page.locator("#part-rule")
    expect(part).not_to_have_attribute("open", "")
    page.locator("[name=p]").fill("")
    page.locator("[name=p_column]").select_option("ask")
    page.locator("[name=split_share]").evaluate("field => { field.value = '2'; }")
    page.locator("[name=m]").fill("90")
    expect(page.locator("#id_split_share_error")).to_contain_text("between 0 and 1")
    expect(part).to_have_attribute("open", "")


def test_the_fields_are_walked_and_chosen_by_keys(planned) -> None:
    page, _ = planned
    page.locator("summary", has_text="Rule and bound").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("[name=rule][value=every_score]")).to_be_focused()
    for _rule in ("fixed_sequence", "multi_chain", "split_fixed_sequence"):
        page.keyboard.press("ArrowDown")
    learnt = page.locator("[name=rule][value=split_fixed_sequence]")
    expect(learnt).to_be_checked()
    expect(page.locator("#outlook")).to_contain_text("of these for the test itself")
    expect(learnt).to_be_focused()  # what is refreshed takes no focus away
    expect(page.locator("#outlook-told")).to_contain_text("drawn items go to people")


def test_without_javascript_a_button_tells_what_the_plan_means(
    chromium: Browser, live_server: LiveServer
) -> None:
    world = make_world(200)
    context = chromium.new_context(base_url=live_server.url, java_script_enabled=False)
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    sign_in(page, world.manager.username)
    page.goto(f"/projects/{world.project.slug}/plan/")
    page.locator("[name=m]").fill("100")
    page.get_by_role("button", name="Show what it means").click()
    expect(page.locator("#outlook")).to_contain_text("All 100 drawn items go to people")
    expect(page.locator("#outlook")).to_contain_text("which is assumed")
    page.locator("#part-rule > summary").click()
    why_not = page.locator("#part-rule .options:has([name=bound])").get_by_label(
        "Show what cannot be chosen here"
    )
    why_not.check()
    page.get_by_label("Exact count for new items").check()
    page.get_by_role("button", name="Show what it means").click()
    expect(page.locator("#id_bound_error")).to_contain_text("use 'hypergeometric'")
    assert not world.project.runs.exists()
    context.close()


def told(page: Page) -> Locator:
    return page.locator(".chart-tip")


def active(canvas: Locator) -> int:
    """How many values of a figure are marked."""
    return int(canvas.evaluate("canvas => Chart.getChart(canvas).getActiveElements().length"))


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Which thresholds would pass", r"u₁ = .*u₂ = .*errors observed"),
        ("Risk along the chain", r"Step \d+\s+observed .*upper bound"),
        ("Saving against epsilon", r"epsilon .*: expected routing saving"),
        ("How well the scores know", r"sure to .*right"),
    ],
)
def test_pointing_at_a_figure_tells_its_values(certified: Page, title: str, words: str) -> None:
    chart = certified.locator("section", has_text=title).last.locator("canvas[data-figure]")
    chart.scroll_into_view_if_needed()
    expect(told(certified)).to_be_empty()
    box = chart.bounding_box()
    assert box is not None
    certified.mouse.move(box["x"] + box["width"] * 0.45, box["y"] + box["height"] * 0.25)
    expect(told(certified)).to_have_text(re.compile(words, re.DOTALL))
    certified.mouse.move(5, 5)
    expect(told(certified)).to_be_empty()


def test_a_figure_is_read_by_keys(certified: Page) -> None:
    chart = certified.locator("section", has_text="Risk along the chain").last.locator("canvas[data-figure]")
    expect(chart).to_have_attribute("role", "application")
    before = certified.locator("section", has_text="Which thresholds would pass").last
    before.locator("summary").focus()
    certified.keyboard.press("Tab")
    expect(chart).to_be_focused()
    expect(told(certified)).to_contain_text("chosen")
    certified.keyboard.press("Home")
    expect(told(certified)).to_have_text(re.compile(r"^Step 0\n"))
    certified.keyboard.press("ArrowRight")
    expect(told(certified)).to_have_text(re.compile(r"^Step [1-9]"))
    certified.keyboard.press("ArrowLeft")
    expect(told(certified)).to_have_text(re.compile(r"^Step 0\n"))
    assert active(chart) == 1
    certified.keyboard.press("Escape")
    expect(told(certified)).to_be_empty()


def test_the_table_of_a_figure_says_what_the_tip_says(certified: Page) -> None:
    section = certified.locator("section", has_text="Risk along the chain").last
    section.locator("summary").focus()
    certified.keyboard.press("Enter")
    chosen = section.locator("tbody tr:has(td:last-child:text-is('chosen'))")
    expect(chosen).to_have_count(1)
    section.locator("canvas[data-figure]").focus()
    certified.keyboard.press("ArrowLeft")
    certified.keyboard.press("ArrowRight")
    step, observed, upper, saving, _ = chosen.locator("th, td").all_inner_texts()
    expect(told(certified)).to_contain_text(f"Step {step}")
    for term, value in (("observed", observed), ("upper bound", upper), ("expected routing saving", saving)):
        expect(told(certified)).to_contain_text(f"{term} {value}")


def test_tapping_a_figure_tells_its_values(chromium: Browser, live_server: LiveServer) -> None:
    world = make_world(200)
    run = world.analysed(m=120)
    context = chromium.new_context(
        base_url=live_server.url, viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True
    )
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    sign_in(page, world.manager.username)
    page.goto(f"/projects/{world.project.slug}/runs/{run.number}/evidence/")
    for title, words in (
        ("Which thresholds would pass", "errors observed"),
        ("Risk along the chain", "Step"),
    ):
        chart = page.locator("section", has_text=title).last.locator("canvas[data-figure]")
        chart.scroll_into_view_if_needed()
        expect(page.locator("#region-how")).to_contain_text("Point at or tap")
        chart.tap()
        expect(told(page)).to_contain_text(words)
        page.wait_for_timeout(300)  # what follows a tap (pointerleave, click, focus) leaves it there
        expect(told(page)).to_contain_text(words)
    assert sum(active(chart) for chart in page.locator("canvas[data-figure]").all()) == 1
    page.get_by_role("heading", name="Saving against epsilon").tap()
    expect(told(page)).to_be_empty()
    context.close()


def fitted(page: Page) -> None:
    """Wait until the figures have followed the size of the window."""
    wait_until(
        page,
        "() => [...document.querySelectorAll('canvas[data-figure]')].every(canvas => "
        "canvas.getBoundingClientRect().right <= innerWidth && canvas.clientWidth > 200)",
    )


def test_figures_fit_a_narrow_screen_and_keep_their_words(certified: Page) -> None:
    for width in (320, 390, 600):
        certified.set_viewport_size({"width": width, "height": 800})
        fitted(certified)
        sizes = certified.locator("canvas[data-figure]").evaluate_all(
            "all => all.map(canvas => Chart.getChart(canvas).scales.x.options.ticks.font.size)"
        )
        assert len(sizes) == 4
        assert min(sizes) >= 11, width
        assert certified.evaluate("document.documentElement.scrollWidth") <= width


def test_figures_follow_light_and_dark_and_are_light_on_paper(certified: Page) -> None:
    ink = "Chart.getChart(document.querySelector('canvas[data-figure]')).scales.x.options.ticks.color"
    certified.emulate_media(color_scheme="light")
    light = certified.evaluate(ink)
    certified.emulate_media(color_scheme="dark")
    wait_until(certified, f"() => {ink} !== '{light}'")
    dark = certified.evaluate(ink)
    certified.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert certified.evaluate(ink) == light
    certified.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert certified.evaluate(ink) == dark


def test_without_javascript_the_tables_stand_in_for_the_figures(
    chromium: Browser, live_server: LiveServer
) -> None:
    world = make_world(200)
    run = world.analysed(m=120)
    context = chromium.new_context(base_url=live_server.url, java_script_enabled=False)
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    sign_in(page, world.manager.username)
    page.goto(f"/projects/{world.project.slug}/runs/{run.number}/evidence/")
    expect(page.locator("canvas")).to_have_count(4)
    for canvas in page.locator("canvas").all():
        expect(canvas).to_be_hidden()
    for table in page.locator(".figure-table table").all():
        expect(table).to_be_visible()
    context.close()


def test_pairs_of_thresholds_are_walked_in_both_directions(certified: Page) -> None:
    chart = certified.locator("section", has_text="Which thresholds would pass").last.locator("canvas")
    chart.focus()
    certified.keyboard.press("PageDown")  # from the chosen pair to the chain
    expect(told(certified)).to_contain_text("of the chain")
    certified.keyboard.press("PageDown")
    expect(told(certified)).to_contain_text("does not hold its stated level")
    certified.keyboard.press("PageDown")
    certified.keyboard.press("Home")
    expect(told(certified)).to_contain_text("u₁ = none, u₂ = none")
    certified.keyboard.press("ArrowUp")
    expect(told(certified)).to_have_text(re.compile(r"^u₁ = none, u₂ = 0"))
    certified.keyboard.press("ArrowRight")
    expect(told(certified)).to_have_text(re.compile(r"^u₁ = 0"))


def test_the_outlook_comes_before_the_button_that_starts_the_run(planned) -> None:
    page, _ = planned
    start, outlook = page.get_by_role("button", name="Start the run"), page.locator("#outlook")
    expect(outlook).to_contain_text("Can be certified")
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        told_at, start_at = outlook.bounding_box(), start.bounding_box()
        assert told_at is not None
        assert start_at is not None
        if width == 390:
            assert told_at["y"] + told_at["height"] <= start_at["y"]
        else:
            assert told_at["x"] >= start_at["x"] + start_at["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_tip_stays_inside_a_narrow_window(certified: Page, scheme: str) -> None:
    certified.set_viewport_size({"width": 390, "height": 800})
    certified.emulate_media(color_scheme=scheme)
    fitted(certified)
    for chart in certified.locator("canvas[data-figure]").all():
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        assert box is not None
        area = chart.evaluate("canvas => Chart.getChart(canvas).chartArea")
        for across in (area["left"] + 2, area["right"] - 2):
            certified.mouse.move(box["x"] + across, box["y"] + (area["top"] + area["bottom"]) / 2)
            expect(told(certified)).not_to_be_empty()
            tip = told(certified).bounding_box()
            assert tip is not None
            assert tip["x"] >= 0
            assert tip["x"] + tip["width"] <= 390
    assert certified.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_comparison_names_every_rule(certified: Page) -> None:
    table = certified.locator("table.comparisons")
    for name in ("pointwise_argmin", "pac_labeling_1", "cse", "coannotating", "people_only"):
        expect(table).to_contain_text(name)
    expect(table.locator("tr.chosen")).to_contain_text("holds its level")


def test_the_button_stays_under_the_pointer_that_leaves_a_field_for_it(planned) -> None:
    page, _ = planned
    expect(page.locator("#outlook")).to_contain_text("Can be certified")
    meaning = page.locator("#meaning")
    page.locator("[name=m]").fill("120")
    expect(page.locator("#outlook")).to_contain_text("All 120 drawn items")
    page.wait_for_load_state("networkidle")
    before = meaning.bounding_box()
    meaning.evaluate("(aside) => { aside.ariaBusy = 'true'; }")
    assert meaning.bounding_box() == before
    meaning.evaluate("(aside) => { aside.ariaBusy = 'false'; }")
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("dialog").get_by_role("button", name="Start the run")).to_be_visible()
