"""Boxes and masks lie over their image where they were drawn, and can be typed as JSON."""

import json

import pytest
from django.urls import reverse
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotation.labelling import queue
from annotation.models import Label
from testbed.factories import add_member, make_image, make_image_items, make_project
from tests.browser.sessions import log_in
from tests.browser.test_accessibility import Looker
from tests.browser.test_labelling import ready

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SIZE = (320, 200)
BOX = {"label": "cat", "x": 25, "y": 10, "width": 50, "height": 30}
BEFORE, COLUMN = 80 * 200 + 20, [60, 140]
MASK = {
    "label": "cat",
    "size": [200, 320],
    "counts": [BEFORE, *(COLUMN * 160)[:-1], 200 - 80 + 80 * 200],
}
"""The same pixels as the box."""
PLACE = """shape => {
  const {x, y, width, height} = shape.getBBox(), {a, d, e, f} = shape.getScreenCTM();
  return {x: x * a + e, y: y * d + f, width: width * a, height: height * d};
}"""
"""Of a shape without its stroke, on the screen."""
KINDS = pytest.mark.parametrize(
    ("task_type", "shape", "shown"), [("boxes", BOX, "path[stroke]"), ("masks", MASK, ".filled path")]
)


@KINDS
def test_a_shape_lies_where_it_was_drawn(
    page: Page, context: BrowserContext, task_type: str, shape: dict[str, object], shown: str
) -> None:
    project = make_project(task_type=task_type, choices=("cat",))
    images = [make_image(number, size=SIZE) for number in range(2)]
    items = make_image_items(project, images)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=False, priority=1, entropy=1
    )
    log_in(context, add_member(project))
    page.goto(reverse("annotate", args=[project.slug]))
    ready(page)
    expect(page.get_by_text("are drawn in Label Studio or CVAT")).to_be_visible()
    first = page.locator("#item-name").inner_text()
    page.locator("#answer").fill(json.dumps([shape]))
    page.keyboard.press("Control+Enter")
    expect(page.locator("#item-name")).not_to_have_text(first)
    expect(page.locator("#answer")).to_have_value("")
    page.wait_for_function("document.querySelector('[data-count=today]').textContent === '1'")
    label = Label.objects.get()
    page.goto(f"{reverse('annotate', args=[project.slug])}?correct={label.pk}")
    image = page.locator(".shapes-image img")
    expect(image).to_be_visible()
    page.wait_for_function("document.querySelector('.shapes-image img').complete")
    whole, drawn = image.bounding_box(), page.locator(f".shapes-image {shown}").evaluate(PLACE)
    assert whole
    assert drawn["x"] == pytest.approx(whole["x"] + whole["width"] / 4, abs=2)
    assert drawn["y"] == pytest.approx(whole["y"] + whole["height"] / 10, abs=2)
    assert drawn["width"] == pytest.approx(whole["width"] / 2, abs=4)
    assert drawn["height"] == pytest.approx(whole["height"] * 0.3, abs=4)
    log_in(context, project.created_by)
    page.goto(reverse("item", args=[project.slug, label.item_id]))
    expect(page.locator(f".shapes-image {shown}")).to_be_visible()


@KINDS
def test_pages_with_shapes_are_accessible(
    page: Page, live_server: LiveServer, task_type: str, shape: dict[str, object], shown: str
) -> None:
    project = make_project(task_type=task_type, choices=("cat",))
    items = make_image_items(project, [make_image(1, size=SIZE)])
    queue.create_batch(project=project, item_ids=[items[0].pk], blind=False, priority=1, entropy=1, overlap=2)
    people = [add_member(project) for _ in range(2)]
    for number, user in enumerate(people):
        task = queue.claim(project=project, user=user)
        assert task is not None
        queue.submit(
            user=user,
            work_item_id=task.work_item.pk,
            token=task.token,
            value=[shape] * (1 - number),
            idempotency_key=user.username,
        )
    looker = Looker(page, live_server.url)
    looker.be(people[0])
    correct = f"{reverse('annotate', args=[project.slug])}?correct={Label.objects.order_by('pk')[0].pk}"
    looker.look(correct, "correcting shapes")
    looker.be(project.created_by)
    looker.look(reverse("item", args=[project.slug, items[0].pk]), "an item with shapes")
    looker.look(reverse("review", args=[project.slug]), "shapes that differ")
    assert len(looker.seen) == 3
    assert not looker.wrong
