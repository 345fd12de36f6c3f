"""What a screen reader meets on the two pages where most is decided, and in which order.

The snapshots name what must be there and leave out what may change (Playwright's partial matching).
"""

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from annotation.models import Project
from testbed.factories import add_member, make_image_items, make_items, make_project
from testbed.worlds import make_world
from tests.browser.sessions import log_in
from tests.browser.test_labelling import ask, ready

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def open_label_page(context: BrowserContext, page: Page, project: Project) -> None:
    log_in(context, add_member(project))
    page.goto(f"/projects/{project.slug}/annotate/")
    ready(page)


def test_the_page_where_one_label_is_chosen(context: BrowserContext, page: Page) -> None:
    project = make_project(name="Animals", choices=("cat", "dog"), guidelines="Look twice.")
    ask(project, make_items(project, ["A tail, and it barks."]))
    open_label_page(context, page, project)
    expect(page.locator("body")).to_match_aria_snapshot("""
        - link "Skip to the content"
        - banner:
          - link "HyPAC"
          - navigation "Breadcrumb":
            - list:
              - listitem:
                - link "Animals"
              - listitem:
                - link "Label"
          - link "Go to"
          - button "Log out"
          - navigation "Project":
            - list:
              - listitem:
                - link "Overview"
              - listitem:
                - link "Label"
        - main:
          - heading "Which label?" [level=1]
          - status
          - button "Smaller text"
          - button "Larger text"
          - button "My labels"
          - button "Guidelines g"
          - button "Shortcuts ?"
          - paragraph:
            - progressbar "Your progress today"
          - article "Item": A tail, and it barks.
          - group "Which label?":
            - button "cat 1"
            - button "dog 2"
          - group: Comment c
          - group: Skip s
          - group: Flag f
          - button "Stop for now"
          - region "Guidelines":
            - heading "Guidelines" [level=2]
            - paragraph: Look twice.
    """)
    page.keyboard.press("s")
    expect(page.locator("#skip")).to_match_aria_snapshot("""
        - group:
          - heading "Why?" [level=2]
          - text: Comment (if you like)
          - textbox "Comment (if you like)"
          - group "Why?":
            - button "Cannot tell"
            - button "Cannot be shown or read"
            - button "No label fits"
    """)


def test_the_page_where_labels_are_ticked_under_an_image(context: BrowserContext, page: Page) -> None:
    project = make_project(task_type="multiple_choice", choices=("cat", "dog"))
    ask(project, make_image_items(project, 1))
    open_label_page(context, page, project)
    page.keyboard.press("2")
    expect(page.get_by_role("main")).to_match_aria_snapshot("""
        - main:
          - heading "Which labels fit?" [level=1]
          - article "Item":
            - img "The image to label"
          - group "Which labels fit?":
            - checkbox "cat 1"
            - checkbox "dog 2" [checked]
          - button "Save Enter"
          - button "None of them 0"
          - button "Smaller"
          - button "Zoom z"
          - button "Larger"
    """)


def test_the_page_where_a_number_is_typed(context: BrowserContext, page: Page) -> None:
    project = make_project(task_type="number", choices=())
    ask(project, make_items(project, ["Two and two?"]))
    open_label_page(context, page, project)
    expect(page.get_by_role("main")).to_match_aria_snapshot("""
        - main:
          - heading "Label" [level=1]
          - article "Item": Two and two?
          - textbox "Which number?"
          - button "Save Enter"
    """)
    field = page.get_by_label("Which number?")
    expect(field).to_have_accessible_description("Two and two? Digits, with a point before decimals and "
                                                 "without commas or units: 1234.5")  # fmt: skip


def test_the_page_where_a_run_is_planned(context: BrowserContext, page: Page) -> None:
    world = make_world(60)
    log_in(context, world.manager)
    page.goto(f"/projects/{world.project.slug}/plan/")
    page.locator("[name=m]").fill("40")
    expect(page.locator("#outlook")).to_contain_text("40 drawn items")
    expect(page.get_by_role("main")).to_match_aria_snapshot("""
        - main:
          - heading "Plan a run" [level=1]
          - textbox /ε/
          - textbox /α/
          - textbox /\\(m\\)/: "40"
          - textbox /\\(p\\)/
          - textbox /USD/
          - textbox /\\(s\\)/
          - group: /What the promise is about/
          - group: /Rule and bound/
          - group: /Loss and uncertainty score/
          - complementary "What this plan means"
          - button "Start the run"
          - status
    """)
    page.locator("[name=epsilon]").fill("0.05")
    epsilon = page.locator("[name=epsilon]")
    expect(epsilon).to_have_accessible_description(re.compile("Do you mean 0.05 % or 5 %"))
