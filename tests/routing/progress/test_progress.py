"""The page of a project's progress: what it counts, and what it keeps to itself while people label blind."""

from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.labelling import queue
from annotation.models import Label, Membership
from annotation.permissions import access_to
from routing.progress import queries
from routing.progress.queries import read_progress
from routing.runs.cancel import cancel_run
from routing.runs.measure import discard_measurement, start_measurement
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def seen(world: World):
    return read_progress(world.project, access_to(world.manager, world.project.slug))


def test_labels_are_counted_by_day_class_and_person_once_each() -> None:
    project = make_project()
    items = make_items(project, 5)
    person = add_member(project)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=False, priority=1, entropy=1
    )
    first, second = project.choices.values_list("key", flat=True)[:2]
    given = []
    for number in range(4):
        task = queue.claim(project=project, user=person)
        given.append(
            queue.submit(
                user=person,
                work_item_id=task.work_item.pk,
                token=task.token,
                value=first if number else second,
                idempotency_key=f"{number:032d}",
            )
        )
    found = read_progress(project, access_to(project.created_by, project.slug))
    assert [day.labels for day in found.days][-1] == 4
    assert len(found.days) == 30
    assert sum(day.labels for day in found.days) == 4
    assert {row.choice.key: row.labels for row in found.classes if row.labels} == {first: 3, second: 1}
    assert found.labelled == 4
    assert [(one.user, one.work.labels) for one in found.people] == [(person, 4)]


@pytest.mark.costly
def test_before_the_analysis_neither_models_nor_labels_of_the_calibration_are_shown() -> None:
    world = make_world(60)
    world.calibrating(m=40)
    world.label(limit=10)
    found = seen(world)
    assert Label.objects.count() == 10
    assert found.sources == []
    assert found.labelled == 0
    assert all(row.labels == 0 for row in found.classes)
    client = Client()
    client.force_login(world.manager)
    page = client.get(reverse("progress", args=[world.project.slug])).content.decode()
    assert "Model 1" not in page
    assert "until then nobody who labels may know what models say" in page


@pytest.mark.costly
def test_after_it_models_stand_beside_people_with_money_and_budget() -> None:
    world = make_world(60)
    run = world.complete(m=40, budget=Decimal(500))
    found = seen(world)
    assert [source.name for source, _ in found.sources] == ["Model 1", "Model 2"]
    assert all(0 < measured.right < measured.answered <= 40 for _, measured in found.sources)
    (money,) = found.money
    assert (money.run, money.budget) == (run, 500)
    assert money.models == found.models == sum(row.amount for row in run.spends.filter(source__isnull=False))
    assert money.people == found.by_people == 8 * Label.objects.count()
    assert found.labelled == Label.objects.count()
    answer = Client()
    answer.force_login(world.manager)
    body = answer.get(reverse("api_progress", args=[world.project.slug])).json()
    assert [row["source"] for row in body["sources"]] == ["Model 1", "Model 2"]
    assert body["money"][0]["budget"] == "500.00"
    reviewer = add_member(world.project, Membership.Role.REVIEWER)
    assert read_progress(world.project, access_to(reviewer, world.project.slug)).sources == []


@pytest.mark.costly
def test_what_was_paid_beside_the_runs_that_are_shown_has_rows_of_its_own(monkeypatch) -> None:
    monkeypatch.setattr(queries, "SHOWN_RUNS", 1)
    world = make_world(200)
    for _ in range(2):  # the second one is a run's
        start_measurement(project=world.project, user=world.manager, size=30)
        world.do("measure")
        if not world.project.runs.exists():
            discard_measurement(project=world.project, user=world.manager)
            cancel_run(run=world.start(m=60), user=world.manager)
    left_behind = world.start(m=60)
    world.do("prepare_run")
    cancel_run(run=left_behind, user=world.manager)  # the next one rests on its measurement
    run = world.start(m=60)
    assert run.measurement_id == left_behind.measurement_id
    world.do("prepare_run")
    monkeypatch.setattr(queries, "SHOWN_RUNS", 2)
    found = seen(world)
    assert [row.run for row in found.money] == [run, left_behind]
    assert found.money[1].models == sum(row.amount for row in left_behind.spends.all())
    both = [*found.money, *found.other_money]
    assert sum(row.models for row in both) == found.models
    monkeypatch.setattr(queries, "SHOWN_RUNS", 1)
    found = seen(world)
    assert [row.run for row in found.money] == [run]
    assert run.measurement_id is not None
    thrown_away = world.project.measurements.get(discarded_at__isnull=False)
    assert [(row.what, row.models) for row in found.other_money][-1] == (
        "Measurements that no run rests on",
        sum(row.amount for row in thrown_away.spends.all()),
    )
    rows = [*found.money, *found.other_money]
    assert sum(row.models for row in rows) == found.models > 0
    assert sum(row.people for row in rows) == found.by_people
    client = Client()
    client.force_login(world.manager)
    page = client.get(reverse("progress", args=[world.project.slug])).content.decode()
    assert "Measurements that no run rests on" in page


@pytest.mark.costly
def test_more_items_take_no_more_queries() -> None:
    def asked_by(size: int, m: int) -> int:
        world = make_world(size)
        world.complete(m=m)
        seen(world)
        with CaptureQueriesContext(
            connection,
        ) as asked:
            seen(world)
        return len(asked)

    assert asked_by(60, 40) == asked_by(160, 40)
