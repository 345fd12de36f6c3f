"""The order in which people get what was routed to them."""

import pytest
from django.test import Client
from django.urls import reverse

from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import AuditEvent, WorkItem
from annotation.permissions import access_to
from routing.by_people.start import Wanted, start_people_run
from routing.models import PoolItem, Prediction, Run
from routing.runs.work_order import Order, set_work_order, work_order
from testbed.factories import make_items, make_project
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def routed() -> tuple[World, Run]:
    world = make_world(120)
    return world, world.routed(m=40)


def in_order(run: Run) -> list[WorkItem]:
    work = WorkItem.objects.filter(batch=run.routed_batch, state__in=WorkItem.UNFINISHED)
    return list(work.select_related("item").order_by("priority", "order", "pk"))


def test_each_order_holds_in_the_queue(routed: tuple[World, Run]) -> None:
    world, run = routed
    before = [row.pk for row in in_order(run)]
    assert len(before) > 5
    u = dict(PoolItem.objects.filter(run=run).values_list("item", "u"))
    first = run.run_sources.get(position=1)
    said = dict(Prediction.objects.filter(source=first.source_id).values_list("item", "value"))

    assert set_work_order(run=run, user=world.manager, order="uncertain") == len(before)
    found = [u[row.item_id] for row in in_order(run)]
    assert found == sorted(found, reverse=True)
    given = queue.claim(project=world.project, user=world.annotators[0])
    assert given is not None
    assert u[given.item.pk] == max(found)

    set_work_order(run=run, user=world.manager, order="class")
    classes = [said[row.item_id] for row in in_order(run)]
    assert classes == sorted(classes)
    set_work_order(run=run, user=world.manager, order="name")
    names = [row.item.external_id for row in in_order(run)]
    assert names == sorted(names)
    set_work_order(run=run, user=world.manager, order="random")
    assert sorted(before) == sorted(row.pk for row in in_order(run))
    assert [row.item.external_id for row in in_order(run)] != names
    assert AuditEvent.objects.filter(action="run.work_ordered").count() == 4


def test_by_page_and_api(routed: tuple[World, Run]) -> None:
    world, run = routed
    client = Client()
    client.force_login(world.manager)
    page = reverse("run", args=[world.project.slug, run.number])
    assert "Order of work" in client.get(page).content.decode()
    client.post(reverse("run_order", args=[world.project.slug, run.number]), {"order": "name"})
    assert work_order(run).now == Order.NAME
    assert '<option value="name" selected>' in client.get(page).content.decode()
    address = reverse("api_run_order", args=[world.project.slug, run.number])
    answer = client.post(address, {"order": "uncertain"}, content_type="application/json")
    assert answer.json() == {"items": len(in_order(run))}
    refused = client.post(address, {"order": "hardest"}, content_type="application/json")
    assert refused.status_code == 400
    assert "random, uncertain, class, name" in refused.content.decode()
    with pytest.raises(InputError):
        set_work_order(run=run, user=world.manager, order="")


def test_a_calibration_and_audited_work_stay_by_chance() -> None:
    world = make_world(120)
    run = world.routed(m=40, target="population")
    with pytest.raises(ConflictError, match="which later items are audited"):
        set_work_order(run=run, user=world.manager, order="name")
    other = make_world(60)
    open_run = other.calibrating(m=40)
    assert work_order(open_run) is None
    with pytest.raises(ConflictError, match="no routed items"):
        set_work_order(run=open_run, user=other.manager, order="random")


def test_without_a_model_the_order_is_by_chance_or_by_name() -> None:
    project = make_project()
    make_items(project, 6)
    access = access_to(project.created_by, project.slug)
    run = start_people_run(access=access, wanted=Wanted({}))
    for job in project.jobs.exclude(state="done"):
        jobs.run(job.pk)
    run.refresh_from_db()
    assert work_order(run).choices == [Order.RANDOM, Order.NAME]
    client = Client()
    client.force_login(project.created_by)
    client.post(reverse("run_order", args=[project.slug, run.number]), {"order": "name"})
    names = [row.item.external_id for row in in_order(run)]
    assert names == sorted(names)
    page = client.get(reverse("run", args=[project.slug, run.number])).content.decode()
    assert '<option value="name" selected>' in page
    assert "uncertain" not in page
