"""A run that has stopped at its budget, on its own page and on the overview."""

from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.jobs import jobs
from annotation.models import Job
from routing.sources.backends.recorded import Recorded
from testbed.worlds import make_world

pytestmark = pytest.mark.django_db


def test_pages_say_what_goes_on_after_a_stop_at_the_budget(client_of, monkeypatch) -> None:
    monkeypatch.setattr(Recorded, "never_lost", False)
    monkeypatch.setattr(Recorded, "in_flight", 8)
    world = make_world(60)
    run = world.start(m=20, budget=Decimal(12))
    job = world.project.jobs.get(kind="prepare_run")
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    client = client_of(world.manager)
    slug = world.project.slug

    overview = client.get(reverse("overview", args=[slug])).content.decode()
    assert "stopped at the budget" in overview
    assert "Raise it on the page of the run" in overview
    assert "Something went wrong" not in overview
    assert "Start again" not in overview, "it would only stop again"

    french = client.get(reverse("overview", args=[slug]), headers={"accept-language": "fr"}).content.decode()
    assert f"Le budget de la campagne {run.number} ne suffit pas" in french

    address = reverse("run", args=[slug, run.number])
    stopped = client.get(address).content.decode()
    assert "Stopped at the budget" in stopped
    assert reverse("job_retry", args=[slug, job.pk]) not in stopped, "it would only stop again"
    assert "Set the budget and go on" in stopped
    shown = client.post(reverse("run_budget", args=[slug, run.number]), {"budget": "1000"}, follow=True)
    page = shown.content.decode()
    assert "the models go on where they stopped" in page
    assert "is not enough for more" not in page
    assert "Set the budget and go on" not in page
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE
    assert "Stopped at the budget" not in client.get(address).content.decode()
