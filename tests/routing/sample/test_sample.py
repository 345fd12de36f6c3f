"""One click makes a project that can be planned: images, and what two models say of them."""

import pytest
from django.test import Client
from django.urls import reverse

from annotation.jobs import jobs
from annotation.models import AuditEvent, Job, Project, User
from annotation.permissions import access_to
from routing.overview.queries import read_overview
from routing.sample.make import ITEMS, KIND
from testbed.factories import made_account, make_project, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def ann() -> User:
    return make_user()


@pytest.fixture
def browser(ann: User) -> Client:
    client = Client()
    client.force_login(ann)
    return client


def test_a_click_makes_a_project_that_can_be_planned(ann: User, browser: Client) -> None:
    assert "Try with sample data" in browser.get("/").content.decode()
    answer = browser.post(reverse("project_sample"))
    project = Project.objects.get()
    assert answer["Location"] == reverse("overview", args=[project.slug])
    access = access_to(ann, project.slug)
    assert "are being made" in read_overview(project, access).next_step.text
    job = Job.objects.get(kind=KIND)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    assert project.items.count() == ITEMS
    assert [source.name for source in project.sources.order_by("position")] == ["Fast model", "Slow model"]
    assert read_overview(project, access).next_step.url_name == "plan"
    page = browser.get(reverse("plan", args=[project.slug])).content.decode()
    assert "Fast model" in page
    assert AuditEvent.objects.filter(project=project, action="project.sample_made").count() == 1
    item = project.items.first()
    assert item.image is not None
    assert set(item.data) >= {"fast", "fast_confidence", "slow", "slow_confidence"}


def test_a_job_that_was_cut_off_goes_on_without_a_second_of_anything(browser: Client) -> None:
    browser.post(reverse("project_sample"))
    job = Job.objects.get(kind=KIND)
    jobs.run(job.pk)
    Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED, claim_token="", finished_at=None)
    jobs.run(job.pk)
    project = Project.objects.get()
    assert project.items.count() == ITEMS
    assert project.sources.count() == 2


def test_whoever_may_make_no_project_is_told_so(settings, browser: Client) -> None:
    settings.HYPAC_PROJECT_MAKERS = "staff"
    assert "Try with sample data" not in browser.get("/").content.decode()
    answer = browser.post(reverse("project_sample"), follow=True)
    assert not Project.objects.exists()
    assert answer.redirect_chain[-1][0] == "/"


def test_whoever_has_not_chosen_a_password_makes_none() -> None:
    made, _password = made_account(make_project())
    client = Client()
    client.force_login(made)
    client.post(reverse("project_sample"))
    assert Project.objects.count() == 1
