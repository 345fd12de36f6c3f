"""What the next step is where the owner is alone, and while data comes in."""

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Job, Membership
from annotation.permissions import access_to
from routing.overview.queries import read_overview
from testbed.factories import add_member, make_project
from testbed.worlds import make_world

pytestmark = pytest.mark.django_db


def test_whoever_is_alone_is_shown_where_people_are_invited() -> None:
    world = make_world(60)
    world.calibrating(m=40)
    access = access_to(world.manager, world.project.slug)
    step = read_overview(world.project, access).next_step
    assert step.other is None
    Membership.objects.filter(project=world.project).exclude(user=world.manager).update(is_active=False)
    step = read_overview(world.project, access).next_step
    assert step.url_name == "annotate"
    assert step.other == ("Invite people", "members")
    assert "Nobody but you takes part" in step.text


def test_while_data_is_imported_the_owner_goes_on_with_the_models() -> None:
    project = make_project()
    Job.objects.create(project=project, kind="import", state=Job.State.RUNNING, params={})
    access = access_to(project.created_by, project.slug)
    step = read_overview(project, access).next_step
    assert (step.url_name, step.button) == ("sources", "Go on with the models")
    viewer = access_to(add_member(project, "viewer"), project.slug)
    assert read_overview(project, viewer).next_step.url_name == ""


def test_who_labelled_the_last_calibration_item_is_led_to_the_analysis(client: Client) -> None:
    world = make_world(120)
    run = world.calibrating(m=40)
    annotate = reverse("annotate", args=[world.project.slug])
    overview = reverse("overview", args=[world.project.slug])
    led = f'<a role="button" href="{overview}">To the overview: Analyse</a>'
    client.force_login(world.manager)
    world.finish()
    page = client.get(annotate).content.decode()
    assert "Every calibration label is there." in page
    assert led in page
    assert page.count(f'role="button" href="{overview}"') == 1, "not twice"
    assert f'action="{reverse("run_analyse", args=[world.project.slug, run.number])}"' in (
        client.get(overview).content.decode()
    )
    client.force_login(world.annotators[0])
    page = client.get(annotate).content.decode()
    assert "Every calibration label is there." not in page
    assert "Analyse" not in page
