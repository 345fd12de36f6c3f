"""Each kind of answer and each kind of item: labelled by keyboard, corrected, and right in the delivery."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from annotation.common.value_reader import Value
from annotation.models import Item, Label, Project
from testbed.factories import make_image_items
from testbed.scripted_server import ScriptedServer
from testbed.worlds import LONG, NUMBERS, ONE_OF_THREE, SETS, Answers, World, make_world
from tests.browser.sessions import log_in
from tests.browser.test_labelling import ready
from tests.routing.delivery.test_deliveries import delivered, lines_of
from tests.routing.runs.test_task_types import letters

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MATH = replace(NUMBERS, task_type="math")
SHORT = replace(LONG, task_type="short_text", true=lambda random_: random_.choice(["Oslo", "Rome", "Lima"]))


@dataclass(frozen=True)
class Kind:
    """What is pressed at first and for the correction: names of keys, or `=` and a text that is typed."""

    answers: Answers
    first: Sequence[str]
    then: Sequence[str]
    said: str
    delivered: Value


KINDS = {
    "single choice": Kind(ONE_OF_THREE, ["1"], ["3"], "emu", "emu"),
    "multiple choice": Kind(SETS, ["1", "2", "Enter"], ["2", "3", "Enter"], "cat, emu", ["cat", "emu"]),
    "number": Kind(NUMBERS, ["=3,5", "Control+a", "=12.50", "Enter"], ["=-7", "Enter"], "-7", "-7"),
    "math": Kind(MATH, ["=1/2", "Enter"], [r"=\frac{3}{4}", "Enter"], r"\frac{3}{4}", r"\frac{3}{4}"),
    "short text": Kind(SHORT, ["=Paris 1", "Enter"], ["=Lomé", "Enter"], "Lomé", "Lomé"),
    "long text": Kind(LONG, ["=A", "Control+Enter"], ["=One", "Enter", "=s 2", "Control+Enter"], "One s 2",
                      "One\ns 2"),
}  # fmt: skip


def press(page: Page, keys: Sequence[str], *, replaces: bool = False) -> None:
    ready(page)
    if replaces and keys[0].startswith("="):
        page.keyboard.press("Control+a")
    for key in keys:
        if key.startswith("="):
            page.keyboard.type(key[1:])
        else:
            page.keyboard.press(key)


def routed(answers: Answers, **plan: Any) -> World:
    """A run whose only model is always wrong, so that people get everything outside the calibration set."""
    world = make_world(26, answers=answers, error=(lambda u: 1.0,), costs=("1",))
    world.routed(m=20, p=Decimal(1), **plan)
    return world


def label(page: Page, context: BrowserContext, world: World, kind: Kind) -> Item:
    """Answer and correct one item on the page."""
    annotator = world.annotators[1]
    log_in(context, annotator)
    page.goto(f"/projects/{world.project.slug}/annotate/")
    press(page, kind.first)
    expect(page.locator("#said")).to_contain_text("Saved:")
    ready(page)
    page.keyboard.press("Escape")  # out of the field, where there is one
    page.keyboard.press("u")
    expect(page.locator("#task")).to_have_attribute("data-state", "correcting")
    press(page, kind.then, replaces=True)
    expect(page.locator("#said")).to_contain_text(f"Corrected: {kind.said}")
    page.get_by_role("button", name="Stop for now").click()
    expect(page.get_by_text("You hold no item any more")).to_be_visible()

    versions = Label.objects.filter(annotator=annotator).order_by("pk")
    assert list(versions.values_list("version", flat=True)) == [1, 2]
    return versions[0].item


def deliver(world: World, item: Item, kind: Kind) -> None:
    """The item's label is that of the page, the others were given past it."""
    world.finish()
    lines = {line["external_id"]: line for line in lines_of(delivered(world, world.project.runs.get()))}
    assert lines[item.external_id]["label"] == kind.delivered
    assert lines[item.external_id]["source"] == "person"
    assert lines[item.external_id]["annotator"] == world.annotators[1].username
    assert len(lines) == world.project.items.count()
    others = {name: line["label"] for name, line in lines.items() if name != item.external_id}
    assert others == {name: world.truth[name] for name in others}


@pytest.fixture
def embeddings(settings: Any) -> Iterator[None]:
    """The server that long texts are compared by."""
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    with ScriptedServer() as server:
        server.route("POST", "/v1/embeddings", letters)
        settings.HYPAC_EMBEDDINGS_URL, settings.HYPAC_EMBEDDINGS_MODEL = server.url, "letters"
        yield


@pytest.mark.usefixtures("embeddings")
@pytest.mark.parametrize("name", KINDS)
def test_an_answer_of_each_kind_is_given_corrected_and_delivered(
    page: Page, context: BrowserContext, name: str
) -> None:
    kind = KINDS[name]
    world = routed(kind.answers)
    deliver(world, label(page, context, world, kind), kind)


def as_images(project: Project) -> None:
    """Every item of the project becomes an image of its own, under its name."""
    pictures = make_image_items(project, project.items.count())
    for item, picture in zip(project.items.filter(image=None).order_by("position"), pictures, strict=True):
        content = {"image": picture.image, "text": "", "content_hash": picture.content_hash}
        picture.delete()
        Item.objects.filter(pk=item.pk).update(**content)


def test_images(page: Page, context: BrowserContext) -> None:
    world = routed(ONE_OF_THREE)
    as_images(world.project)
    seen: list[bool] = []
    page.on("response", lambda answer: seen.append(answer.ok) if "/images/" in answer.url else None)
    deliver(world, label(page, context, world, KINDS["single choice"]), KINDS["single choice"])
    assert seen
    assert all(seen)


def test_named_fields(page: Page, context: BrowserContext) -> None:
    world = routed(ONE_OF_THREE)
    world.project.items.update(fields=[["Title", "Of birds"], ["Body", "*Emus* cannot fly."]])
    log_in(context, world.annotators[1])
    page.goto(f"/projects/{world.project.slug}/annotate/")
    names, values = page.locator("#item-text dt"), page.locator("#item-text dd")
    expect(names).to_have_text(["Title", "Body"])
    expect(values).to_have_text(["Of birds", "*Emus* cannot fly."])
    label(page, context, world, KINDS["single choice"])


def test_markdown(page: Page, context: BrowserContext) -> None:
    world = routed(ONE_OF_THREE)
    world.project.items.update(text="# Birds\n\n*Emus* cannot **fly**.\n\n- one\n- two")
    Project.objects.filter(pk=world.project.pk).update(text_format=Project.TextFormat.MARKDOWN)
    log_in(context, world.annotators[1])
    page.goto(f"/projects/{world.project.slug}/annotate/")
    item = page.locator("#item-text")
    expect(item.locator("em")).to_have_text("Emus")
    expect(item.locator("li")).to_have_text(["one", "two"])
    expect(item).not_to_contain_text(re.compile(r"[*#]"))
    label(page, context, world, KINDS["single choice"])
