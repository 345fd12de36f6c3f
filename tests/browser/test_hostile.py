"""What people, files and models write is text on every page: no script, element or request comes of it.

The pages are those of the table in tests/pages/test_access.py, so a page that is added is looked at here. The
fixture `context` fails the test where a page breaks the content security policy or asks another host.
"""

import io
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import BrowserContext, Page, Request

from annotation.common.files import store_file
from annotation.labelling.comments import add_comment
from annotation.models import Choice, Item, Job, JobProblem, Label, Project, Skip, User, WorkItem
from annotation.people.invitations import create_invitation
from routing.models import ModelPrice, Prediction, Run, Source, SourceTry
from testbed.factories import add_member
from testbed.worlds import World
from tests.browser.sessions import log_in
from tests.pages import test_access

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

world = test_access.world
arguments = test_access.arguments

# In the one or the other of them is every way out of an attribute, an element, a script or a template, and
# what htmx and Markdown would act upon. Each has the word by which it is looked for as text.
MARK = "h4x"
PAYLOADS = (
    "\"'></title></textarea></select><img class=h4x src=x onerror=hacked()>",
    "</script><script class=h4x>hacked()</script>{{ 7|add:7 }}",
    "<b class=h4x hx-get=/logout/ hx-trigger=load hx-on:click=hacked()>",
    "[h4x](javascript:hacked()) ![h4x](https://elsewhere.example/h4x.png)",
)
ALL = " ".join(PAYLOADS)
MIDDLE = ALL[:200]
SHORT = PAYLOADS[0][:100]
ROWS = f"id,{PAYLOADS[2]},text\n" + "".join(f"{PAYLOADS[1]} {n},{PAYLOADS[3]},{n}\n" for n in range(3))

INJECTED = f"""() => {{
  const bad = document.querySelectorAll(
    ".{MARK}, [onerror], [onload], [hx-get='/logout/'], a[href^='javascript:' i], img[src*='elsewhere']");
  return [...bad].map((element) => element.outerHTML.slice(0, 200));
}}"""


@pytest.fixture
def poisoned(world: World, arguments: dict[str, object]) -> dict[str, object]:
    """`arguments` of a project in which everything that somebody can write is hostile."""
    project = world.project
    run = project.runs.get()
    User.objects.filter(memberships__project=project).update(first_name=SHORT, last_name="Doe")
    Project.objects.filter(pk=project.pk).update(
        name=MIDDLE, guidelines=ALL, columns=[*project.columns, PAYLOADS[2]], currency="<b>h4x</b>"
    )
    project.choices.update(name=SHORT)
    Choice.objects.create(project=project, key=SHORT, name=SHORT, position=9, hotkey="<")
    for source in project.sources.all():
        Source.objects.filter(pk=source.pk).update(name=f"{source.position} {PAYLOADS[0]}")
    ModelPrice.objects.filter(project=project).update(name=SHORT)
    Run.objects.filter(pk=run.pk).update(invalid_reasons=[{"code": "", "params": {}, "words": ALL}])
    asked = WorkItem.objects.filter(batch__project=project, state="open").order_by("pk")[0]
    _of_items(world, asked)
    Job.objects.filter(project=project).update(error=ALL, stage=SHORT, result={"note": ALL})
    job = project.jobs.get(pk=arguments["job_id"])
    JobProblem.objects.create(job=job, where=SHORT, message=ALL)
    failed = project.jobs.order_by("pk").last()
    Job.objects.filter(pk=failed.pk).update(state="failed")
    project.invitations.update(note=MIDDLE)
    _tried(world, arguments)
    stored = store_file(
        project=project,
        content=io.BytesIO(ROWS.encode()),
        original_name=f"{SHORT}.csv",
        media_type="text/csv",
    )
    return {**arguments, "file_id": stored.pk, "item_id": asked.item_id}


def _of_items(world: World, asked: WorkItem) -> None:
    """Items, and what people and models have said about one of them."""
    first, (one, other) = asked.item, world.annotators
    for item in world.project.items.filter(image=None):
        Item.objects.filter(pk=item.pk).update(
            external_id=f"{SHORT} {item.pk}",
            text=f"{ALL} {item.pk}",
            data={**item.data, "text": ALL, PAYLOADS[2]: ALL, "model1": ALL},
        )
    for is_flag in (True, False):
        add_comment(item=first, author=one, text=ALL, is_flag=is_flag)
    Skip.objects.create(work_item=asked, user=one, reason="other", comment=ALL)
    WorkItem.objects.filter(pk=asked.pk).update(state="done")
    Label.objects.create(
        item=first, work_item=asked, annotator=other, value=SHORT, idempotency_key="h", comment=ALL
    )
    Prediction.objects.create(
        item=first,
        source=world.project.sources.first(),
        fingerprint="f" * 64,
        value=None,
        reason=MIDDLE,
        raw={"text": ALL, PAYLOADS[1]: ALL},
        served_model=SHORT,
        served_revision=SHORT,
        cost_note=SHORT,
        cost=0,
    )


def _tried(world: World, arguments: dict[str, object]) -> None:
    """What the source of `arguments` answered when it was tried."""
    source = Source.objects.get(pk=arguments["source_id"])
    numbers = dict.fromkeys(("value", "score", "tokens_in", "tokens_out", "latency_ms"))
    words = dict.fromkeys(("reason", "text", "reasoning", "cost_note", "served_model", "name"), ALL)
    row = {**numbers, **words, "item": arguments["item_id"], "score_name": "", "score_reason": ""}
    job = world.project.jobs.create(kind="try_source", state="done")
    SourceTry.objects.create(job=job, source=source, rows=[{**row, "cost": "0", "finish_reason": ""}])


class Walker:
    """Opens pages and keeps what came of hostile words there, and which pages have shown them."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        self.shown: set[str] = set()
        page.on("request", self._asked)

    def _asked(self, request: Request) -> None:
        if "/logout/" in request.url or "elsewhere" in request.url:
            self.wrong.append(f"asked for {request.url}")

    def walk(self, name: str, path: str) -> None:
        self.page.goto(path)
        self.wrong += [f"{name}: {element}" for element in self.page.evaluate(INJECTED)]
        if MARK in self.page.locator("main").inner_text() or self.page.locator(f'[value*="{MARK}"]').count():
            self.shown.add(name)


@pytest.fixture
def walker(page: Page) -> Iterator[Walker]:
    page.on("dialog", lambda dialog: dialog.dismiss())
    walker = Walker(page)
    yield walker
    assert walker.wrong == []


def pages(client: Client, names: list[str], arguments: dict[str, object]) -> Iterator[tuple[str, str]]:
    """(name, path) of those that are whole pages for this person."""
    for name in names:
        path = test_access.address(name, arguments)
        answer = client.get(path)
        assert answer.status_code < 500, name
        if not answer.streaming and b"<html" in answer.content:
            yield name, path


def test_hostile_words_stay_words_on_every_page(
    context: BrowserContext, walker: Walker, world: World, poisoned: dict[str, object]
) -> None:
    log_in(context, world.manager)
    client = Client()
    client.force_login(world.manager)
    names = [name for name, table in test_access.PAGES.items() if "GET" in table]
    for name, path in pages(client, names, poisoned):
        walker.walk(name, path)
    for name in ("project_list", "account"):
        walker.walk(name, reverse(name))
    # Where the words must be seen, or the walk would prove nothing.
    assert walker.shown >= {
        "account", "annotate", "deliveries", "import_mapping", "item", "items", "job", "member", "members",
        "overview", "plan", "price_edit", "prices", "project_list", "project_manage", "project_settings",
        "review_flags", "run", "source_edit", "source_try", "sources",
    }  # fmt: skip


@pytest.mark.parametrize("role", ["annotator", "viewer"])
def test_for_those_who_see_less(
    context: BrowserContext, walker: Walker, world: World, poisoned: dict[str, object], role: str
) -> None:
    user = add_member(world.project, role)
    log_in(context, user)
    client = Client()
    client.force_login(user)
    names = [
        name for name in ("overview", "annotate", "item", "run") if role in test_access.PAGES[name]["GET"]
    ]
    for name, path in pages(client, names, poisoned):
        walker.walk(name, path)
    assert walker.shown == set(names)


def test_markdown_and_named_fields(
    context: BrowserContext, walker: Walker, world: World, poisoned: dict[str, object]
) -> None:
    log_in(context, world.manager)
    Project.objects.filter(pk=world.project.pk).update(text_format=Project.TextFormat.MARKDOWN)
    names = ("annotate", "item", "review_flags", "import_mapping")
    for fields in ([], [[PAYLOADS[0], ALL], [PAYLOADS[2], PAYLOADS[3]]]):
        world.project.items.filter(image=None).update(fields=fields)
        for name in names:
            walker.walk(name, test_access.address(name, poisoned))
    assert walker.shown == set(names)


def test_an_answer_is_told_and_corrected_as_text(
    context: BrowserContext, page: Page, walker: Walker, world: World, poisoned: dict[str, object]
) -> None:
    """The parts that scripts put together: what was saved, what is there again, the next item."""
    log_in(context, world.annotators[0])
    walker.walk("annotate", test_access.address("annotate", poisoned))
    for key in ("1", "u", "2"):
        page.wait_for_selector("#task[data-ready]")
        page.keyboard.press(key)
        page.wait_for_selector(f"#said:has-text('{MARK}')" if key != "u" else "[data-state=correcting]")
        assert page.evaluate(INJECTED) == []


def test_who_is_invited_sees_words(page: Page, walker: Walker, world: World, poisoned: dict) -> None:
    token = create_invitation(
        project=world.project, actor=world.manager, role="annotator", max_uses=1, days=1, note=MIDDLE
    )[1]
    walker.walk("join", reverse("join_link", args=[token]))
    assert walker.shown == {"join"}
