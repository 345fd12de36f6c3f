"""Where a plan shows suggestions, the desk alone tells people what a model answered, of routed items alone:
every address of a project, by everybody who may not see predictions, at each stage.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import NoReverseMatch, reverse

from annotation.labelling import queue
from annotation.models import HeldOutItem, Membership, WorkItem
from routing.models import Run
from testbed.factories import add_member, make_items
from testbed.worlds import Answers, World, make_world
from tests.pages.test_access import API, PAGES, address

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]

SECRET = "zzmodelzz"
WORDS = Answers(
    task_type="short_text",
    choices=(),
    true=lambda random_: random_.choice(("oak", "elm")),
    right=lambda random_, true: str(true),
    wrong=lambda random_, true: SECRET,
)
BLIND = ("annotator", "reviewer")
DESK = {"annotate"}
"""Addresses that show a routed item to whoever labels it."""


@pytest.fixture
def world() -> World:
    """Both models are always wrong, in a word that stands nowhere else."""
    return make_world(60, answers=WORDS, error=(lambda u: 1.0, lambda u: 1.0))


@pytest.fixture
def readers(world: World) -> dict[str, Client]:
    clients = {role: Client() for role in BLIND}
    for role, client in clients.items():
        client.force_login(add_member(world.project, role))
    return clients


def asked(world: World, run: Run, readers: dict[str, Client]) -> Iterator[tuple[str, str, str]]:
    """(role, name of the address, what it answers) of every address that can be asked for, each once."""
    seen = set()
    for item in world.project.items.order_by("?")[:6]:
        label = item.labels.first()
        parts = {
            "slug": world.project.slug,
            "number": run.number,
            "item_id": item.pk,
            "label_id": label.pk if label else 1,
            "source_id": world.project.sources.first().pk,
            "job_id": world.project.jobs.first().pk,
            "document": "plans",
        }
        for role, client in readers.items():
            for name, methods in {**PAGES, **API}.items():
                if "GET" not in methods:
                    continue
                try:
                    path = address(name, parts)
                except (KeyError, NoReverseMatch):
                    continue
                if (role, path) in seen:
                    continue
                seen.add((role, path))
                yield role, name, client.get(path).getvalue().decode(errors="replace")


def telling(world: World, run: Run, readers: dict[str, Client]) -> tuple[int, set[tuple[str, str]]]:
    """How many answers were read, and the addresses of those that have the model's word."""
    count, tells = 0, set()
    for role, name, body in asked(world, run, readers):
        count += 1
        if SECRET in body:
            tells.add((role, name))
    return count, tells


def ahead(world: World, client: Client) -> list[dict[str, Any]]:
    """Items as the page and as a program hold them."""
    slug = world.project.slug
    cards = client.post(reverse("annotate_ahead", args=[slug]), {"holding": ""}).json()["ahead"]
    tasks = client.post(reverse("api_queue_ahead", args=[slug]), {}, content_type="application/json").json()
    return [*cards, *tasks["tasks"]]


def test_before_the_routing_nobody_is_told_anything(world: World, readers: dict[str, Client]) -> None:
    run = world.calibrating(m=30, p=1, suggestions=True)
    count, tells = telling(world, run, readers)
    assert count > 200
    assert tells == set()
    for client in readers.values():
        held = ahead(world, client)
        assert len(held) == 6
        assert SECRET not in str(held)
        assert all(one.get("suggestion") is None for one in held)
    for member in world.project.memberships.all():
        queue.release_all(project=world.project, user=member.user)
    world.finish()
    run = world.analyse(run)
    assert telling(world, run, readers)[1] == set()


def test_once_routed_the_desk_alone_tells_it(world: World, readers: dict[str, Client]) -> None:
    run = world.routed(m=30, p=1, suggestions=True)
    _count, tells = telling(world, run, readers)
    assert tells == {(role, name) for role in BLIND for name in DESK}
    for client in readers.values():
        assert all(SECRET in str(one["suggestion"]) for one in ahead(world, client))


def test_neither_gold_nor_practice_items_have_one(world: World) -> None:
    project, annotator = world.project, world.annotators[0]
    extra = make_items(project, 6)
    for item in extra:
        item.data = {"model1": SECRET, "confidence1": "0.9", "model2": SECRET, "confidence2": "0.9"}
        item.save()
    for number, item in enumerate(extra):
        HeldOutItem.objects.create(
            project=project,
            item=item,
            purpose="practice" if number < 3 else "gold",
            answer="oak",
            at_random=False,
            created_by=world.manager,
        )
    world.routed(m=30, p=1, suggestions=True)
    project.refresh_from_db()
    project.gold_share, project.practice_first = 0.9, True
    project.save()
    client = Client()
    client.force_login(annotator)
    practice = client.get(reverse("practice", args=[project.slug])).content.decode()
    assert "text" in practice
    assert SECRET not in practice
    project.practice_first = False
    project.save()
    kinds = set()
    while task := queue.claim(project=project, user=annotator):
        gold = task.work_item.batch.for_gold
        kinds.add(gold)
        assert (task.suggestion is None) == gold
        assert (SECRET in client.get(reverse("annotate", args=[project.slug])).content.decode()) != gold
        queue.submit(
            user=annotator,
            work_item_id=task.work_item.pk,
            token=task.token,
            value="oak",
            idempotency_key=f"{task.work_item.pk}",
        )
        if kinds == {True, False}:
            break
    assert kinds == {True, False}


def test_what_the_roles_see_elsewhere_is_as_without(world: World, readers: dict[str, Client]) -> None:
    """A label that was taken from a suggestion looks to whoever may not see predictions as any other does."""
    run = world.routed(m=30, p=1, suggestions=True)
    assert run.state == Run.State.LABELLING
    annotator = world.annotators[0]
    task = queue.claim(project=world.project, user=annotator)
    other = queue.claim_ahead(project=world.project, user=annotator)[1]
    for work, value in ((task, task.suggestion.value), (other, "oak")):
        queue.submit(
            user=annotator,
            work_item_id=work.work_item.pk,
            token=work.token,
            value=value,
            idempotency_key=f"k{work.work_item.pk}",
        )
    queue.release_all(project=world.project, user=annotator)
    client = Client()
    client.force_login(annotator)
    assert Membership.objects.get(project=world.project, user=annotator).role == "annotator"
    rows = client.get(reverse("api_queue_mine", args=[world.project.slug])).json()["results"]
    assert len({tuple(sorted(row)) for row in rows}) == 1
    assert not any("suggest" in name for row in rows for name in row)
    assert WorkItem.objects.filter(batch=run.routed_batch, state="done").count() == 2
