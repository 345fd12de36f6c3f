"""Bringing data in with a browser: drop, progress, what is shown, and what an import would do, live."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from annotation.jobs import jobs
from annotation.models import Job, Project
from routing.delivery.deliver import deliver
from testbed.factories import PASSWORD, make_project
from testbed.worlds import make_world

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ROWS = "id,subject,body,label\n" + "".join(
    f"t{n},Subject {n},*Body* {n},{label}\n" for n, label in enumerate(["cat", "dog"] * 4)
)


@pytest.fixture
def project(page: Page) -> Project:
    project = make_project()
    page.goto("/login/")
    page.locator("[name=username]").fill(project.created_by.username)
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Projects")).to_be_visible()
    return project


def drop(page: Page, selector: str, name: str, content: str) -> None:
    """As somebody who lets go of a file above the element."""
    data = page.evaluate_handle(
        """([name, content]) => {
            const data = new DataTransfer();
            data.items.add(new File([content], name, { type: "text/csv" }));
            return data;
        }""",
        [name, content],
    )
    for event in ("dragenter", "dragover", "drop"):
        page.dispatch_event(selector, event, {"dataTransfer": data})


# By how many pixels the chosen option of a select is wider than its room.
CUT_OFF = """(select) => {
  const style = getComputedStyle(select);
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.font = style.font;
  const text = canvas.measureText(select.selectedOptions[0].text).width;
  return text - (select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
}"""


@pytest.mark.parametrize("place", ["#upload .actions", "#id_text", "#upload .drop"])
def test_a_file_is_dropped_anywhere_on_the_card(page: Page, project: Project, place: str) -> None:
    page.goto(f"/projects/{project.slug}/import/")
    drop(page, place, "dropped.csv", ROWS)
    expect(page.locator("#upload-words")).to_have_text("dropped.csv · 1 kB")
    page.get_by_role("button", name="Show the first rows").click()
    expect(page.get_by_role("heading", name="Which column is what?")).to_be_visible()
    expect(page.locator(".lead")).to_contain_text("dropped.csv")
    assert page.locator("#id_format").evaluate(CUT_OFF) <= 0


def test_a_file_that_is_too_large_is_not_sent(page: Page, project: Project, settings) -> None:
    settings.HYPAC_MAX_UPLOAD_BYTES = 1000
    page.goto(f"/projects/{project.slug}/import/")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    drop(page, "#upload", "large.csv", ROWS * 20)
    expect(page.locator("#upload-words")).to_contain_text("This file is too large")
    page.get_by_role("button", name="Show the first rows").click()
    page.wait_for_timeout(300)
    assert "POST" not in sent
    assert page.locator("#upload").get_attribute("aria-busy") is None


def test_the_progress_of_an_upload_is_shown(page: Page, project: Project, tmp_path: Path) -> None:
    path = tmp_path / "big.csv"
    path.write_text("id,text\n" + "".join(f"{n},{'word ' * 20}\n" for n in range(30_000)))
    page.goto(f"/projects/{project.slug}/import/")
    page.evaluate(
        """() => {
            window.seen = [];
            const bar = document.getElementById("upload-progress");
            const note = () => {
                window.seen.push([bar.hidden, bar.getAttribute("value")]);
                sessionStorage.setItem("seen", JSON.stringify(window.seen));
            };
            new MutationObserver(note).observe(bar, { attributes: true });
        }"""
    )
    page.locator("[type=file]").set_input_files(path)
    page.get_by_role("button", name="Show the first rows").click()
    expect(page.get_by_role("heading", name="Which column is what?")).to_be_visible()
    seen = page.evaluate("JSON.parse(sessionStorage.getItem('seen'))")
    assert [False, "0"] in seen  # it appeared,
    assert seen[-1] == [False, None]  # and at the end the file was being read
    expect(page.locator(".check-figures")).to_contain_text("30,000")


def test_an_error_stays_on_the_page(page: Page, project: Project) -> None:
    page.goto(f"/projects/{project.slug}/import/")
    drop(page, "#upload", "odd.csv", "id,text\n")
    page.get_by_role("button", name="Show the first rows").click()
    expect(page.get_by_role("alert")).to_contain_text("no rows")
    drop(page, "#upload", "better.csv", ROWS)  # what was swapped in works as before
    page.get_by_role("button", name="Show the first rows").click()
    expect(page.get_by_role("heading", name="Which column is what?")).to_be_visible()


def heard(page: Page, selector: str) -> None:
    """The new part of the page is there, and htmx listens to it: some milliseconds later."""
    page.wait_for_selector(f"#mapping:not(.htmx-settling) {selector}")


def test_what_is_chosen_is_shown_at_once(page: Page, project: Project) -> None:
    page.goto(f"/projects/{project.slug}/import/")
    page.locator("#id_text").fill(ROWS)
    page.get_by_role("button", name="Show the first rows").click()
    item = page.locator("#item-text")
    expect(item).to_have_text("*Body* 0")
    heard(page, "#id_text_format")
    page.locator("#id_text_format").focus()  # choosing by script alone would leave the focus where it was
    page.locator("#id_text_format").select_option("markdown")
    expect(item.locator("em")).to_have_text("Body")
    expect(page.locator("#id_text_format")).to_be_focused()
    page.get_by_role("button", name="Show another column").click()
    heard(page, "#id_text_column_2")
    page.locator("#id_text_column_2").select_option("subject")
    expect(item.locator("dt")).to_have_text(["body", "subject"])
    page.get_by_role("button", name="Move subject up").click()
    expect(item.locator("dt")).to_have_text(["subject", "body"])
    page.get_by_role("button", name="Show another column").click()
    heard(page, "#id_text_column_3")
    page.locator("#id_text_column_3").select_option("label")
    expect(page.locator(".shown-columns [role=alert].note")).to_contain_text("seems to hold answers")
    page.get_by_role("button", name="Do not show label").click()
    expect(item.locator("dt")).to_have_text(["subject", "body"])
    expect(page.locator(".check-figures")).to_contain_text("8")
    assert not Job.objects.exists()
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", name="Background work")).to_be_visible()
    jobs.run(Job.objects.get().pk)
    button = page.get_by_role("button", name="Take this import back")
    expect(button).to_be_visible()
    assert project.items.first().fields == [["subject", "Subject 0"], ["body", "*Body* 0"]]
    button.click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert not Job.objects.filter(kind="import_undo").exists()
    button.click()
    page.get_by_role("dialog").get_by_role("button", name="Take this import back").click()
    expect(page.get_by_role("heading", name="Import taken back")).to_be_visible()
    jobs.run(Job.objects.get(kind="import_undo").pk)
    assert not project.items.exists()


def test_answers_that_came_with_the_file_become_sources(page: Page, project: Project) -> None:
    page.goto(f"/projects/{project.slug}/import/")
    rows = "".join(f"A text {n},{'cat' if n % 3 else 'dog'},0.{n + 1},dog,0.{n}\n" for n in range(8))
    page.locator("#id_text").fill(f"text,guess,guess_conf,large_guess,large_guess_conf\n{rows}")
    page.get_by_role("button", name="Show the first rows").click()
    told = page.locator(".note.success")
    expect(told).to_contain_text("This file holds the answers of 2 models")
    expect(told.get_by_role("listitem")).to_have_text(
        ["guess, and how sure it is: guess_conf", "large_guess, and how sure it is: large_guess_conf"]
    )
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", name="Background work")).to_be_visible()
    jobs.run(Job.objects.get().pk)
    page.get_by_role("button", name="Make them sources").click()
    expect(page.get_by_role("heading", name="Your data holds the answers of 2 models")).to_be_visible()
    for number in range(2):
        page.locator(f"#id_suggested-price-{number}").fill("1")
    page.get_by_role("button", name="Use them").click()
    expect(page.get_by_text("Added, in this order")).to_be_visible()
    assert list(project.sources.values_list("params__label_column", flat=True)) == ["guess", "large_guess"]


@pytest.mark.parametrize("width", [320, 1280])
def test_no_page_is_wider_than_the_window(page: Page, project: Project, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"/projects/{project.slug}/import/")
    names = ",".join(f"{'a_long_name_' * 26}{n}" for n in range(40))
    page.locator("#id_text").fill(f"{names}\n" + ",".join("word " * 40 for _ in range(40)))
    page.get_by_role("button", name="Show the first rows").click()
    for place in (2, 3):
        page.get_by_role("button", name="Show another column").click()
        expect(page.locator(f"#id_text_column_{place}")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_hash_is_copied(page: Page, context) -> None:
    world = make_world(60)
    run = world.complete(m=30)
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/login/")
    page.locator("[name=username]").fill(world.manager.username)
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Projects")).to_be_visible()
    page.goto(f"/projects/{world.project.slug}/deliveries/")
    button = page.get_by_role("button", name="Copy the SHA-256 of draw.jsonl")
    button.click()
    expect(page.locator("#copied")).to_have_text("Copied")
    file = run.deliveries.get().files.get(name="draw.jsonl").file
    assert page.evaluate("navigator.clipboard.readText()") == file.sha256
    with page.expect_download() as download:
        page.get_by_role("button", name="Download all as ZIP").click()
    assert download.value.suggested_filename == f"{world.project.slug}-run-1-delivery-1.zip"
