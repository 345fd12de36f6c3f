"""What pages read: the stages with the next step, and the table of items."""

import pytest
from django.urls import reverse

from annotation.errors import InputError
from annotation.models import Job
from annotation.permissions import access_to
from routing.selectors.items import item_rows
from routing.selectors.overview import overview
from routing.services.deliveries import deliver
from routing.services.runs import analyse, route
from tests.factories import add_member, make_items, make_project
from tests.routing.worlds import make_world

pytestmark = pytest.mark.django_db


def test_the_overview_names_the_next_step_all_along_the_way():
    world = make_world(100)
    access = access_to(world.manager, world.project.slug)

    def step():
        return overview(world.project, access).next_step.url_name

    assert step() == "plan"
    run = world.start(m=40)
    assert step() == ""
    assert overview(world.project, access).active
    world.do("prepare_run")
    assert step() == "annotate"
    world.finish()
    assert step() == "run_analyse"
    run.refresh_from_db()
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    assert step() == "run_route"
    run.refresh_from_db()
    route(run=run, user=world.manager)
    world.do("route_run")
    world.finish()
    assert step() == "run_deliver"
    run.refresh_from_db()
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    view = overview(world.project, access)
    assert view.next_step.url_name == "deliveries"
    assert {stage.state for stage in view.stages} == {"done"}
    assert view.savings.final
    assert not view.active


def test_the_overview_of_an_empty_project_and_of_an_annotator():
    project = make_project()
    owner = overview(project, access_to(project.created_by, project.slug))
    assert owner.next_step.url_name == "import_upload"
    annotator = overview(project, access_to(add_member(project), project.slug))
    assert annotator.next_step.url_name == ""
    assert annotator.spend == []
    assert annotator.savings is None
    make_items(project, 3)
    assert overview(project, access_to(project.created_by, project.slug)).next_step.url_name == "sources"


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
    view = overview(world.project, access_to(world.manager, world.project.slug))
    assert view.failed_job.error == "no power"
    assert next(stage for stage in view.stages if stage.key == "predict").state == "failed"
    assert view.next_step.url_name == "job"


def test_items_come_page_by_page_both_ways():
    project = make_project()
    make_items(project, 7)
    access = access_to(project.created_by, project.slug)
    first = item_rows(project, access, size=3)
    assert [row.external_id for row in first.rows] == ["t0", "t1", "t2"]
    assert first.previous is None
    assert first.total == 7
    second = item_rows(project, access, size=3, after=first.next)
    third = item_rows(project, access, size=3, after=second.next)
    assert [row.external_id for row in third.rows] == ["t6"]
    assert third.next is None
    back = item_rows(project, access, size=3, before=third.previous)
    assert [row.external_id for row in back.rows] == ["t3", "t4", "t5"]
    assert item_rows(project, access, q="text 4").total == 1
    with pytest.raises(InputError):
        item_rows(project, access, stage="nowhere")
