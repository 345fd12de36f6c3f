"""A second run completes a data set: what people labelled before counts as right."""

import json
from decimal import Decimal
from math import floor

import pytest

from annotation.models import Label
from routing.core.verify import verify
from routing.runs.plan import outlook_of_plan, plan_of
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

PLAN = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 40, "p": Decimal("0.9")}


def test_the_first_run_has_no_more_than_its_pool():
    run = make_world(60).start(m=20)
    assert run.whole_size is None
    assert plan_of(run).budget == 6


def test_the_second_run_may_leave_as_many_wrong_labels_as_the_whole_data_set_allows():
    world = make_world(300)
    world.complete(m=40)
    labelled = Label.objects.values("item").distinct().count()
    run = world.complete(m=40)
    plan = plan_of(run)
    assert (run.pool_size, run.whole_size) == (300 - labelled, 300)
    assert plan.budget == 30 > floor(plan.epsilon * run.pool_size)

    document = json.loads(run.certificate.document)
    assert document["plan"]["data_set_size"] == 300
    assert document["result"]["certified"]
    assert "delivered data set of 300 items" in document["result"]["sentence"]
    assert verify(run.certificate.document.encode(), run.certificate.draw_lines.encode()) == []
    fewer = json.dumps(document | {"plan": document["plan"] | {"data_set_size": 299}})
    assert verify(fewer.encode(), run.certificate.draw_lines.encode())


def test_the_target_pool_speaks_about_its_own_items_alone():
    world = make_world(300)
    world.complete(m=40)
    assert world.start(m=20, target="pool").whole_size is None


def test_labels_that_may_not_be_shown_yet_are_no_part_of_the_data_set():
    world = make_world(300)
    world.start(m=40)
    world.do("prepare_run")
    assert world.label(limit=5) == 5
    plan = outlook_of_plan(project=world.project, **PLAN).plan
    assert (plan.pool_size, plan.data_set_size) == (295, None)
