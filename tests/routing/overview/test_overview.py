"""What pages read: the stages with the next step, and the table of items."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.errors import InputError
from annotation.labelling import queue
from annotation.models import Comment, Job, WorkItem
from annotation.permissions import access_to
from routing.delivery.deliver import deliver
from routing.items.table import item_rows
from routing.overview.queries import read_overview
from routing.runs.certify import analyse
from routing.runs.route import route
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def test_the_overview_names_the_next_step_all_along_the_way():
    world = make_world(100)
    access = access_to(world.manager, world.project.slug)

    def step():
        return read_overview(world.project, access).next_step.url_name

    assert step() == "plan"
    run = world.start(m=40)
    assert step() == ""
    assert read_overview(world.project, access).active
    world.do("prepare_run")
    assert step() == "annotate"
    world.finish()
    assert step() == "run_analyse"
    run.refresh_from_db()
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    assert step() == "run"  # which shows what routing does, before anybody asks for it
    run.refresh_from_db()
    route(run=run, user=world.manager)
    world.do("route_run")
    world.finish()
    assert step() == "run_deliver"
    run.refresh_from_db()
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    view = read_overview(world.project, access)
    assert view.next_step.url_name == "deliveries"
    assert {stage.state for stage in view.stages} == {"done"}
    assert view.savings.final
    assert not view.active
    assert "in no run" not in view.next_step.text
    make_items(world.project, 3)
    later = read_overview(world.project, access).next_step
    assert "3 items are in no run yet. Plan another run" in later.text
    assert later.other == ("Plan another run", "plan")


def test_the_overview_of_an_empty_project_and_of_an_annotator():
    project = make_project()
    owner = read_overview(project, access_to(project.created_by, project.slug))
    assert owner.next_step.url_name == "import_upload"
    annotator = read_overview(project, access_to(add_member(project), project.slug))
    assert annotator.next_step.url_name == ""
    assert annotator.spend == []
    assert annotator.savings is None
    make_items(project, 3)
    assert read_overview(project, access_to(project.created_by, project.slug)).next_step.url_name == "sources"


def test_the_run_page_shows_a_job_that_failed(client):
    world = make_world(60)
    run = world.start(m=20)
    world.project.jobs.filter(kind="prepare_run").update(state=Job.State.FAILED, error="no power")
    client.force_login(world.manager)
    page = client.get(reverse("run", args=[world.project.slug, run.number])).content.decode()
    assert "no power" in page
    assert "The models are at work" not in page


def test_the_overview_shows_a_job_that_failed():
    world = make_world(100)
    world.start(m=40)
    world.project.jobs.filter(kind="prepare_run").update(state=Job.State.FAILED, error="no power")
    view = read_overview(world.project, access_to(world.manager, world.project.slug))
    assert view.failed_job.error == "no power"
    assert next(stage for stage in view.stages if stage.key == "predict").state == "failed"
    assert view.next_step.url_name == "job"


def page_of(client, world, **headers):
    url = reverse("overview", args=[world.project.slug])
    return client.get(url + headers.pop("query", ""), headers=headers)


def test_people_at_work_are_named_with_their_pace_and_the_time_left(client):
    world = make_world(100)
    world.start(m=40)
    world.do("prepare_run")
    world.label(limit=10)
    annotator = world.annotators[1]
    assert queue.claim(project=world.project, user=annotator)
    found = read_overview(world.project, access_to(world.manager, world.project.slug)).labelling
    assert found.last_hour == found.progress.done == 10
    # Ten labels in a moment are told as ten in a minute: less says nothing about a pace.
    assert found.per_hour == 600
    assert found.seconds_left == pytest.approx(found.left * 6)
    assert found.at_work == [annotator.username]
    client.force_login(world.manager)
    page = page_of(client, world).content.decode()
    assert "10 labels in the last hour" in page
    assert f"<bdi>{annotator.username}</bdi>" in page
    WorkItem.objects.update(finished_at=timezone.now() - timedelta(hours=2))
    world.project.work_batches.get().work_items.filter(state="leased").update(
        lease_expires_at=timezone.now() - timedelta(seconds=1)
    )
    page = page_of(client, world).content.decode()
    assert "No label in the last hour" in page
    assert "Nobody is at work now." in page


def test_a_poll_reads_out_what_is_to_be_done_only_when_that_changes(client):
    world = make_world(100)
    world.start(m=40)
    client.force_login(world.manager)
    assert 'id="overview-told"' in page_of(client, world).content.decode()
    view = read_overview(world.project, access_to(world.manager, world.project.slug))
    assert view.poll_seconds == 3
    part = page_of(client, world, query=f"?told={view.announced}", HX_Request="true")
    assert part.status_code == 200
    assert "hx-swap-oob" not in part.content.decode()
    assert "aria-live" not in part.content.decode()
    world.do("prepare_run")
    part = page_of(client, world, query=f"?told={view.announced}", HX_Request="true").content.decode()
    assert 'hx-swap-oob="innerHTML:#overview-told"' in part
    assert "calibration items wait for a person" in part
    view = read_overview(world.project, access_to(world.manager, world.project.slug))
    world.label(limit=1)
    part = page_of(client, world, query=f"?told={view.announced}", HX_Request="true").content.decode()
    assert "hx-swap-oob" not in part
    assert view.poll_seconds == 5


def test_of_one_item_it_speaks_in_the_singular(client) -> None:
    world = make_world(40)
    run = world.start(m=20, p=Decimal(1))
    world.do("prepare_run")
    client.force_login(world.manager)
    world.label(limit=19)
    page = page_of(client, world).content.decode()
    assert "1 calibration item waits for a person." in page
    world.label()
    for each in ("analyse", "route"):
        run.refresh_from_db()
        {"analyse": analyse, "route": route}[each](run=run, user=world.manager)
        world.do(f"{each}_run")
    run.refresh_from_db()
    waiting = run.routed_batch.work_items.count()
    world.label(limit=waiting - 1)
    assert "1 item is left for people." in page_of(client, world).content.decode()


def test_nothing_is_asked_for_again_while_everything_is_paused_or_waits_for_a_manager():
    world = make_world(100)
    world.start(m=40)
    access = access_to(world.manager, world.project.slug)
    world.project.jobs.update(state=Job.State.PAUSED)
    assert not read_overview(world.project, access).active
    world.project.jobs.update(state=Job.State.QUEUED)
    world.do("prepare_run")
    assert read_overview(world.project, access).active
    world.finish()
    assert not read_overview(world.project, access).active


def test_a_job_without_a_sign_of_life_says_what_to_do(client, settings):
    world = make_world(60)
    world.start(m=20)
    client.force_login(world.manager)
    long_ago = timezone.now() - timedelta(seconds=settings.HYPAC_JOB_STALE_SECONDS + 120)
    running = {"state": Job.State.RUNNING, "started_at": long_ago, "done": 30, "total": 60}
    world.project.jobs.update(**running, heartbeat_at=timezone.now())
    page = page_of(client, world).content.decode()
    assert "No sign of life" not in page
    assert "per second" in page
    world.project.jobs.update(heartbeat_at=long_ago)
    page = page_of(client, world).content.decode()
    assert "No sign of life for 3 min" in page
    assert "reconciler" in page
    assert "per second" not in page
    world.project.jobs.update(state=Job.State.PAUSED)
    page = page_of(client, world).content.decode()
    assert "No sign of life" not in page
    assert "per second" not in page
    world.project.jobs.update(state=Job.State.QUEUED, created_at=long_ago)
    assert "has waited for a worker for 3 min" in page_of(client, world).content.decode()


def test_where_everybody_skipped_all_that_is_left_a_manager_decides_next(client):
    world = make_world(60)
    world.start(m=20)
    world.do("prepare_run")
    world.label(answer=lambda item: None)
    for user in (world.manager,):
        while task := queue.claim(project=world.project, user=user):
            queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
    step = read_overview(world.project, access_to(world.manager, world.project.slug)).next_step
    assert (step.url_name, step.fragment) == ("overview", "stuck")
    client.force_login(world.manager)
    address = reverse("overview", args=[world.project.slug])
    assert f'href="{address}#stuck">Decide</a>' in page_of(client, world).content.decode()


def test_open_flags_are_named_with_a_link(client):
    world = make_world(60)
    item = world.project.items.first()
    Comment.objects.create(item=item, author=world.annotators[0], text="odd", is_flag=True)
    client.force_login(world.manager)
    page = page_of(client, world).content.decode()
    assert f'<a href="{reverse("review_flags", args=[world.project.slug])}">1 flag is open</a>' in page


def test_a_poll_looks_neither_at_routes_nor_at_predictions():
    world = make_world(100)
    world.routed(m=40)
    access = access_to(world.manager, world.project.slug)
    with CaptureQueriesContext(connection) as queries:
        view = read_overview(world.project, access)
    assert view.savings.net is not None
    assert view.savings.routing is None
    assert not [one["sql"] for one in queries if "routing_prediction" in one["sql"]]
    assert not [one["sql"] for one in queries if 'FROM "routing_route"' in one["sql"]]


def test_items_come_page_by_page_both_ways():
    project = make_project()
    make_items(project, 7)
    access = access_to(project.created_by, project.slug)
    first = item_rows(project, access, size=3)
    assert [row.external_id for row in first.rows] == ["t0", "t1", "t2"]
    assert first.previous is None
    assert first.total.count == 7
    second = item_rows(project, access, size=3, after=first.next)
    third = item_rows(project, access, size=3, after=second.next)
    assert [row.external_id for row in third.rows] == ["t6"]
    assert third.next is None
    back = item_rows(project, access, size=3, before=third.previous)
    assert [row.external_id for row in back.rows] == ["t3", "t4", "t5"]
    assert item_rows(project, access, filters={"q": "text 4"}).total.count == 1
    with pytest.raises(InputError):
        item_rows(project, access, filters={"stage": "nowhere"})
