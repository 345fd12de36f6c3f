"""The calibration set of a real run: decided about before the analysis, told of only after it."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from annotation.labelling import queue
from annotation.labelling.comments import add_comment
from annotation.models import User, WorkItem
from routing.runs.certify import analyse
from testbed.factories import add_member
from testbed.worlds import World, make_world

pytestmark = pytest.mark.costly


@pytest.fixture
def world(db: None) -> World:
    world = make_world(60)
    world.project.overlap = 2
    world.project.save()
    world.start(m=40)
    world.do("prepare_run")
    for number, person in enumerate(world.annotators):
        while task := queue.claim(project=world.project, user=person):
            truth = world.truth[task.item.external_id]
            wrong = number == 1 and task.item.position % 4 == 0
            queue.submit(
                user=person,
                work_item_id=task.work_item.pk,
                token=task.token,
                value=("dog" if truth == "cat" else "cat") if wrong else truth,
                idempotency_key=f"{task.work_item.pk}",
            )
    flagged = WorkItem.objects.filter(batch__project=world.project, slot=0).order_by("pk")[0]
    author = world.annotators[0]
    add_comment(item=flagged.item, author=author, text="Odd", is_flag=True, work_item=flagged)
    return world


def test_it_is_decided_blind_and_measured_afterwards(
    world: World, client_of: Callable[[User], Client]
) -> None:
    slug = world.project.slug
    client = client_of(add_member(world.project, "reviewer"))
    names = ("agreement", "review", "review_flags")
    agreement, review, flags = (reverse(name, args=[slug]) for name in names)
    before = client.get(agreement).content.decode()
    assert "left out until its run is analysed" in before
    assert "Two by two" not in before
    assert "No flag is open" in client.get(flags).content.decode()
    page = client.get(review).content.decode()
    assert 'id="label-form"' in page
    while 'id="label-form"' in page:
        for word in ("model1", "confidence", "calibration", world.annotators[0].username):
            assert word not in page[page.index("<main") :]
        waiting = re.search(r'name="work_item" value="(\d+)"', page)[1]
        item = WorkItem.objects.get(pk=waiting).item
        data = {"work_item": waiting, "value": world.truth[item.external_id]}
        page = client.post(reverse("review_decide", args=[slug]), data, follow=True).content.decode()
    run = world.project.runs.get()
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    after = client.get(agreement).content.decode()
    assert "left out" not in after
    assert "Two by two" in after
    assert "Odd" in client.get(flags).content.decode()
    assert "Nothing to decide" in client.get(review).content.decode()
