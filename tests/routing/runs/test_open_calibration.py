"""What some of several people answered about items that came to no label, and that a new run asks about."""

from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from annotation.common.value_reader import Value
from annotation.labelling import queue
from annotation.labelling.labels_of_record import disagreements
from annotation.models import Comment, Item, Label, Settlement, Skip, User
from annotation.people.queries import latest_labels
from annotation.permissions import access_to
from annotation.projects.manage import update_project
from annotation.review.agreement_queries import agreement
from annotation.review.queries import open_flags
from routing.items.history import item_history
from routing.items.table import item_rows
from routing.models import Run
from routing.runs.cancel import cancel_run
from routing.visibility import view_permission
from testbed.factories import add_member, make_items
from testbed.worlds import World, make_world, rows_of
from tests.annotation.apis import Api

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
GIVEN = 10


@pytest.fixture
def world() -> World:
    world = make_world(60)
    update_project(project=world.project, user=world.manager, overlap=2, overlap_share=Decimal(1))
    return world


@pytest.fixture
def reviewer(world) -> User:
    return add_member(world.project, "reviewer")


def cancelled(world: World) -> None:
    """A run in which one person has answered, of two who were asked, and flagged one of the items."""
    run = world.start(m=30)
    world.do("prepare_run")
    assert world.label(limit=GIVEN) == GIVEN
    label = Label.objects.earliest("pk")
    Comment.objects.create(
        item=label.item, work_item=label.work_item, author=label.annotator, text="a cat", is_flag=True
    )
    Skip.objects.create(work_item=label.work_item, user=world.manager, reason="unclear", comment="cats")
    run.refresh_from_db()
    cancel_run(run=run, user=world.manager)


def run_asking_again(world: World) -> Run:
    """A run that asks about some of the items that were answered about, and not about others."""
    run = world.start(m=20)
    world.do("prepare_run")
    run.refresh_from_db()
    drawn = set(run.calibration_batch.work_items.values_list("item", flat=True))
    answered = set(Label.objects.values_list("item", flat=True))
    assert answered & drawn
    assert answered - drawn
    return run


def _labels() -> list[int]:
    return list(Label.objects.values_list("pk", flat=True))


def seen(world: World, user: User) -> dict[str, int]:
    """How much of that somebody finds who may label, wherever it can be looked for."""
    project, api = world.project, Api(world.project, user)
    access = access_to(user, project.slug)
    permission, annotator = view_permission(project, access), world.annotators[0]
    items = set(Label.objects.values_list("item", flat=True))
    histories = [item_history(project, access, item) for item in items]
    given_by = {"annotator": str(annotator.pk)}
    return {
        "api": len(api.get("labels/").json()["results"]),
        "lines": len(api.lines("labels.ndjson")),
        "each": sum(api.get(f"labels/{pk}/").status_code == 200 for pk in _labels()),
        "newest": permission.labels().filter(item__in=items).count(),
        "histories": sum(len(history.labels) for history in histories),
        "comments": sum(len(history.comments) for history in histories),
        "skips": sum(len(history.skips) for history in histories),
        "filter": item_rows(project, access, filters=given_by).total.count,
        "person": len(latest_labels(project, annotator)[0]),
        "flags": open_flags(project).count(),
    }


ALL = {
    **dict.fromkeys(("api", "lines", "each", "newest", "histories", "filter", "person"), GIVEN),
    **dict.fromkeys(("comments", "skips", "flags"), 1),
}


def test_nobody_reads_it_while_the_new_run_is_open_whether_or_not_it_asks(world, reviewer) -> None:
    cancelled(world)
    assert seen(world, reviewer) == ALL
    run = run_asking_again(world)
    assert queue.claim(project=world.project, user=reviewer) is not None
    for user in (reviewer, world.manager):
        assert seen(world, user) == dict.fromkeys(ALL, 0)
    assert latest_labels(world.project, world.annotators[0])[1]  # some are kept back
    own = Api(world.project, world.annotators[0]).get("labels/").json()["results"]
    assert len(own) == GIVEN
    cancel_run(run=run, user=world.manager)
    assert seen(world, reviewer) == ALL


def test_nor_in_the_administration(world) -> None:
    cancelled(world)
    client = Client()
    client.force_login(User.objects.create_superuser("root"))

    def listed(model: str) -> int:
        page = client.get(reverse(f"admin:annotation_{model}_changelist"))
        return int(page.context["cl"].result_count)

    models = ("label", "comment", "skip")
    assert [listed(model) for model in models] == [GIVEN, 1, 1]
    run_asking_again(world)
    assert [listed(model) for model in models] == [0, 0, 0]


def differ(world: World, *values: str) -> None:
    """Each of the people gives one of the values to all that waits."""
    for user, value in zip(world.annotators, values, strict=True):
        while task := queue.claim(project=world.project, user=user):
            world.keys += 1
            queue.submit(
                user=user,
                work_item_id=task.work_item.pk,
                token=task.token,
                value=value,
                idempotency_key=f"{value}-{world.keys}",
            )


def test_what_people_differ_about_elsewhere_waits_until_the_run_is_analysed(world, reviewer) -> None:
    items = list(world.project.items.values_list("pk", flat=True)[:GIVEN])
    queue.create_batch(project=world.project, item_ids=items, blind=False, priority=1, entropy=1, overlap=2)
    differ(world, "cat", "dog")
    assert disagreements(world.project, reviewer).count() == GIVEN
    assert agreement(world.project).used == GIVEN
    run = run_asking_again(world)
    assert not disagreements(world.project, reviewer).exists()
    assert agreement(world.project).used == 0
    # Those of the run itself are to be decided before its analysis.
    differ(world, "cat", "emu")
    own = disagreements(world.project, reviewer)
    assert set(own.values_list("batch", flat=True)) == {run.calibration_batch_id}
    assert own.count() == run.calibration_batch.work_items.filter(slot=0).count()


def test_nor_is_what_a_correction_settles_meanwhile_delivered_with_an_earlier_run(reviewer, world) -> None:
    project = world.project
    update_project(project=project, user=world.manager, overlap=1)
    earlier = world.complete(m=20)
    data = Item.objects.filter(project=project).earliest("pk").data
    later = make_items(project, 40)
    for item in later:
        Item.objects.filter(pk=item.pk).update(data={**data, "text": item.text})
    differed = {item.pk for item in later[:GIVEN]}
    queue.create_batch(
        project=project, item_ids=sorted(differed), blind=False, priority=1, entropy=1, overlap=2
    )
    differ(world, "cat", "dog")
    run = world.start(m=20)
    world.do("prepare_run")
    label = Label.objects.filter(item__in=differed, annotator=world.annotators[1]).earliest("pk")
    queue.correct(user=label.annotator, label_id=label.pk, value="cat", idempotency_key="settled")
    assert Settlement.objects.get(item=label.item, superseded_by=None).value == "cat"
    access = access_to(reviewer, project.slug)

    def told() -> Value | None:
        """What is delivered of the item; the table must have those of people that a delivery has."""
        rows = {row.external_id: row for row in rows_of(earlier)}
        found = item_rows(project, access, filters={"by": "person"}, size=200).rows
        people = {name for name, row in rows.items() if row.source == "person"}
        assert {row.external_id for row in found} == people
        assert len(people) >= 20
        return rows[label.item.external_id].label

    assert told() is None
    run.refresh_from_db()
    cancel_run(run=run, user=world.manager)
    assert told() == "cat"
