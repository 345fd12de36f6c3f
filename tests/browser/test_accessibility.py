"""Every page against WCAG 2.2 AA, as far as a machine can tell: by axe-core, light and dark, wide and narrow.

The pages are those of the table in tests/pages/test_access.py, so a page that is added is looked at here.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import axe_playwright_python
import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from annotation.labelling import queue
from annotation.mail.letters import WORK, ends_token
from annotation.models import Project, User
from annotation.people.invitations import create_invitation
from annotation.people.password_links import reset_link
from annotation.permissions import access_to
from routing.by_people.start import Wanted, start_people_run
from routing.held_out.manage import change_settings, hold_out, set_answer
from routing.label_set.replace import replace_label
from routing.rounds.start import add_note, close_round, start_round
from routing.runs.certify import analyse
from testbed.factories import (
    add_member,
    made_account,
    make_image_items,
    make_items,
    make_project,
    make_user,
)
from testbed.worlds import NUMBERS, SETS, World, make_world
from tests.pages import test_access
from tests.routing.by_people.people import answer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# A project with everything in it, and the parts of addresses that lead to its things.
world = test_access.world
arguments = test_access.arguments

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# The narrowest window in which nothing may need scrolling sideways (WCAG 1.4.10), in CSS pixels.
NARROW = 320
# What is asked of axe again where the colours are others, and where the page is narrow.
COLOURS, PLACES = ["color-contrast", "link-in-text-block"], ["target-size", "scrollable-region-focusable"]

# Of rows of one list that are built alike, with other words in them, the first three are looked at.
LOOK = """async (only) => {
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  const built = (part) => [part, ...part.querySelectorAll("*")].map((one) =>
    [one.tagName, one.getAttribute("class"), one.getAttributeNames()].join(" ")).join();
  document.querySelectorAll("[data-alike]").forEach((row) => row.removeAttribute("data-alike"));
  for (const list of document.querySelectorAll("tbody, ul, ol")) {
    const times = {};
    for (const row of list.children) {
      times[built(row)] = (times[built(row)] ?? 0) + 1;
      row.toggleAttribute("data-alike", times[built(row)] > 3);
    }
  }
  const run = only ? {type: "rule", values: only} : {type: "tag", values: TAGS};
  const found = await axe.run({exclude: ["[data-alike]"]}, {runOnly: run, resultTypes: ["violations"]});
  const said = (node) => [...node.any, ...node.all, ...node.none].map((check) => check.message).join("; ");
  const shown = (node) => `${node.html.slice(0, 160)} [${said(node).slice(0, 200)}]`;
  return found.violations.map((rule) =>
    `${rule.id} (${rule.nodes.length}): ${rule.help}: ${rule.nodes.slice(0, 3).map(shown).join(" | ")}`);
}""".replace("TAGS", str(TAGS))

# Colours are looked at as they come to be, not on their way there.
STILL = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("*, ::before, ::after { transition: none !important; animation: none !important; }");
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}"""
SEND = "part => { const form = part.form ?? part; form.noValidate = true; form.requestSubmit(); }"


class Looker:
    """Opens pages as one person after the other, and keeps what is wrong with them."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.client = Client()
        self.wrong: list[str] = []
        self.seen: set[str] = set()

    def be(self, user: User) -> None:
        self.page.goto("about:blank")  # a page that asks again by itself must not ask as somebody else
        self.client.force_login(user)
        name = settings.SESSION_COOKIE_NAME
        cookie = {"name": name, "value": self.client.cookies[name].value, "url": self.address}
        self.page.context.clear_cookies()
        self.page.context.add_cookies([cookie])

    def open(self, path: str) -> bool:
        """Whether there is a whole page; parts of pages, files and ways on to other pages are none."""
        answer = self.client.get(path)
        if answer.status_code == 302 or "text/html" not in answer.headers.get("Content-Type", ""):
            return False
        if answer.streaming or b"<html" not in answer.content:
            return False
        self.page.goto(path)
        return True

    def look(self, path: str, title: str = "") -> None:
        """Open a page and look at it: wide and light, wide and dark, narrow."""
        if self.open(path):
            self.look_here(title or path)

    def look_here(self, title: str) -> None:
        page = self.page
        self.seen.add(title)
        page.evaluate(STILL)
        page.evaluate(AXE)
        self._note(title, page.evaluate(LOOK, None))
        page.emulate_media(color_scheme="dark")
        self._note(f"{title}, dark", page.evaluate(LOOK, COLOURS))
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": NARROW, "height": 800})
        self._note(f"{title}, narrow", page.evaluate(LOOK, PLACES))
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > NARROW:
            self.wrong.append(f"{title}: {width} px wide in a window of {NARROW}")
        page.set_viewport_size({"width": 1280, "height": 800})

    def send_empty(self, path: str, title: str, *, form: str = "main form[method=post]") -> None:
        """Send a form as it is, without the browser's own checks, and look at what comes back."""
        self.page.goto(path)
        self.send(form)
        self.look_here(title)

    def send(self, field_or_form: str) -> None:
        """Send a form, whole or by htmx, without the browser's own checks."""
        with self.page.expect_response(lambda answer: answer.request.method == "POST") as answer:
            self.page.locator(field_or_form).first.evaluate(SEND)
        answer.value.finished()  # only now is the page that it brings, if any, the one that is waited for
        self.page.wait_for_load_state("networkidle")

    def judge(self) -> None:
        assert self.seen
        assert not self.wrong, "\n".join(self.wrong)

    def _note(self, title: str, found: Iterable[str]) -> None:
        self.wrong += [f"{title}: {words}" for words in found]


@pytest.fixture
def looker(page: Page, live_server: LiveServer) -> Looker:
    return Looker(page, live_server.url)


MATH = replace(NUMBERS, task_type="math")


def of(project: Project, *names: str, **parts: object) -> list[str]:
    return [reverse(name, kwargs={"slug": project.slug, **parts}) for name in names]


def test_every_page_of_a_project_that_has_everything(
    looker: Looker, world: World, arguments: dict[str, object]
) -> None:
    looker.be(world.manager)
    for name, table in test_access.PAGES.items():
        if "GET" in table:
            looker.look(test_access.address(name, arguments), name)
    looker.judge()
    assert len(looker.seen) > 20


def test_every_page_without_a_project(looker: Looker) -> None:
    project = make_project()
    member, _password = made_account(project)
    owner = project.created_by
    invitation = create_invitation(project=project, actor=owner, role="annotator", max_uses=1, days=1)[1]
    uid, token = reset_link(project=project, actor=owner, user=member)
    parts = {
        "join_link": {"token": invitation},
        "password_reset": {"uidb64": uid, "token": token},
        "mail_ends": {"token": ends_token(owner, WORK)},
        "mail_confirm": {"token": "x"},
        "help_document": {"document": "plans"},
    }
    for name, methods in test_access.PUBLIC.items():
        # Where a link of its own leads to is looked at: a link keeps its secret for the page behind it.
        # Those are for programs; the page that shows the API is drawn by Swagger UI, whose markup is its own.
        for_programs = name in ("health", "ready", "metrics", "security_txt", "image_link")
        if "GET" in methods and not for_programs and not name.startswith("api_"):
            looker.page.goto(reverse(name, kwargs=parts.get(name, {})))
            looker.look_here(name)
    looker.send_empty(reverse("login"), "login with an error")
    looker.be(make_user())
    for name, methods in test_access.SIGNED_IN.items():
        if "GET" in methods and name != "passkey_remove":  # of one's own; tests/browser/test_second_factor.py
            looker.look(reverse(name, kwargs=parts.get(name, {})), name)
    looker.page.goto("/nowhere/")
    looker.look_here("404")
    looker.judge()


def test_a_project_with_nothing_in_it(looker: Looker) -> None:
    project = make_project()
    looker.be(project.created_by)
    pages = (
        "overview",
        "progress",
        "annotate",
        "items",
        "sources",
        "plan",
        "runs",
        "deliveries",
        "jobs",
        "prices",
    )
    for path in of(project, *pages):
        looker.look(path)
    looker.judge()


def test_a_run_on_its_way(looker: Looker) -> None:
    """Waiting, being labelled, ready, analysed, complete: as a manager and as an annotator see it."""
    world = make_world(60)
    project, annotator = world.project, world.annotators[0]

    def look(state: str) -> None:
        for user, names in (
            (world.manager, ("overview", "progress", "jobs")),
            (annotator, ("overview", "annotate")),
        ):
            looker.be(user)
            for path in of(project, *names):
                looker.look(path, f"{path} {state}")
            if user == world.manager:
                looker.look(*of(project, "run", number=run.number), f"run {state}")

    run = world.start(m=40)
    look("waiting")
    world.do("prepare_run")
    world.label(limit=5)
    look("being labelled")
    queue.release_all(project=project, user=annotator)
    world.finish()
    look("ready")
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    look("analysed")
    looker.judge()


def test_a_complete_run(looker: Looker) -> None:
    world = make_world(60)
    run = world.routed(m=40)
    looker.be(world.manager)
    looker.look(*of(world.project, "run", number=run.number), "a run whose rest people label")
    world.finish()
    for path in [
        *of(world.project, "overview", "progress", "items"),
        *of(world.project, "run", number=run.number),
    ]:
        looker.look(path)
    looker.judge()


def test_a_closed_round_and_a_label_that_was_split(looker: Looker) -> None:
    project = make_project(choices=["cat", "dog", "emu"], guidelines="A cat purrs.")
    make_items(project, 6)
    access = access_to(project.created_by, project.slug)
    assert access is not None
    people = [add_member(project) for _ in range(2)]
    asked = start_round(access=access, size=3)
    for person, value in zip(people, ("cat", "dog"), strict=True):
        answer(project, person, value)
    looker.be(project.created_by)
    looker.look(*of(project, "round", number=1), "an open round")
    close_round(access=access, found=asked)
    add_note(access=access, found=asked, item=asked.items.all()[0].item, text="It purrs.", value="cat")
    looker.look(*of(project, "round", number=1), "a closed round")
    run = start_people_run(access=access, wanted=Wanted({}))
    answer(project, people[0], "cat")
    run.refresh_from_db()
    looker.page.goto(*of(project, "label_set"))
    looker.page.locator("#split_into").fill("lion\ntiger")
    looker.send("#split_key")
    looker.look_here("a label before it is split")
    replace_label(access=access, key="cat", into=["lion", "tiger"])
    for name in ("label_set", "label_set_choose"):
        looker.look(*of(project, name), f"{name}, after a split")
    looker.judge()
    assert len(looker.seen) == 5


def test_practice_and_gold_items(looker: Looker) -> None:
    project = make_project(choices=["cat", "dog"], guidelines="A cat purrs.")
    make_items(project, 8)
    access = access_to(project.created_by, project.slug)
    assert access is not None
    for purpose in ("gold", "practice"):
        held = hold_out(access=access, purpose=purpose, size=1)[0]
        set_answer(access=access, held=held, answer="cat", explanation="It purrs.")
    change_settings(access=access, practice_first=True)
    person = add_member(project)
    project.memberships.filter(user=person).update(paused_at=timezone.now())
    looker.be(project.created_by)
    looker.look(*of(project, "held_out"), "what is held out")
    looker.be(person)
    looker.look(*of(project, "practice"), "a practice item")
    looker.page.keyboard.press("2")
    looker.page.get_by_text("It purrs.").wait_for()
    looker.look_here("what was expected")
    looker.page.keyboard.press("Enter")
    looker.page.get_by_text("You are paused").wait_for()
    looker.look_here("paused")
    looker.judge()
    assert len(looker.seen) == 4


def test_each_kind_of_answer(looker: Looker) -> None:
    for answers in (SETS, NUMBERS, MATH):
        world = make_world(30, answers=answers)
        world.start(m=20)
        world.do("prepare_run")
        looker.be(world.annotators[0])
        looker.look(*of(world.project, "annotate"), f"annotate {answers.task_type}")
    looker.judge()


def test_forms_that_are_refused(looker: Looker) -> None:
    world = make_world(30)
    project = world.project
    make_image_items(project, 1)
    looker.be(world.manager)
    looker.send_empty(reverse("project_new"), "project_new")
    looker.send_empty(reverse("password"), "password")
    for name in ("source_new", "import_upload", "prices"):
        looker.send_empty(*of(project, name), name)
    looker.page.goto(*of(project, "plan"))
    looker.page.locator("[name=epsilon]").fill("0.05")
    looker.page.wait_for_load_state("networkidle")
    looker.send("[name=epsilon]")
    looker.look_here("plan")
    looker.page.goto(*of(project, "project_settings"))
    looker.page.locator("[name=name]").first.fill("")
    looker.send("[name=name]")
    looker.look_here("project_settings")
    looker.judge()


def test_an_annotator_and_a_viewer(looker: Looker, world: World, arguments: dict[str, object]) -> None:
    pages = ("overview", "annotate", "run", "items", "item", "members")
    for role in ("annotator", "viewer"):
        looker.be(add_member(world.project, role))
        for name in pages:
            if role in test_access.PAGES[name]["GET"]:
                looker.look(test_access.address(name, arguments), f"{name} as {role}")
    looker.judge()
