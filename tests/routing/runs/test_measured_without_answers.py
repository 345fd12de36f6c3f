"""Measuring while answers of an uploaded source are missing: said before, and told truly afterwards."""

from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.models import Job
from routing.models import MeasuredItem
from routing.runs.measure import discard_measurement, start_measurement
from routing.sources.manage import save_source
from testbed.worlds import World
from tests.routing.sources.sending import counts, problems, sent, uploaded
from tests.routing.sources.test_sent_answers_runs import world_of_uploaded

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
MISSING = frozenset(range(0, 100, 2))


@pytest.fixture
def world() -> World:
    world = world_of_uploaded(200, missing=MISSING)
    world.project.human_cost = Decimal(40)
    world.project.save()
    save_source(
        project=world.project,
        user=world.manager,
        name="Second",
        backend="uploaded",
        params={"model": "second"},
        cost_per_label=Decimal(1),
    )
    return world


def test_what_is_missing_is_said_with_its_number_beside_the_button_that_measures(world, client_of) -> None:
    page = client_of(world.manager).get(reverse("plan", args=[world.project.slug])).content.decode()
    forecast = page[page.index('id="forecast"') : page.index('name="measure"')]
    assert "Outside: no answer was sent under the revision 1 for 50 items" in forecast
    assert "Send the missing answers first." in forecast


def test_answers_that_come_after_measuring_are_not_said_to_come_after_a_run(world) -> None:
    source = world.project.sources.get(name="Outside")
    start_measurement(project=world.project, user=world.manager, size=20, entropy=5)
    discard_measurement(project=world.project, user=world.manager)
    measured = set(MeasuredItem.objects.values_list("item__position", flat=True))
    late = sorted(measured & MISSING)
    assert late
    lines = [{"external_id": f"t{n}", "label": "cat", "confidence": 0.5} for n in sorted(MISSING)]
    job = sent(source, lines)
    assert (job.state, counts(job)) == (Job.State.DONE, (50 - len(late), 0, len(late)))
    assert all(
        "When the models were measured" in said and "run rests" not in said for said in problems(job).values()
    )
    again = sent(uploaded(world.project, source=source, revision="2"), lines)  # what it says to do is enough
    assert counts(again) == (50, 0, 0)
