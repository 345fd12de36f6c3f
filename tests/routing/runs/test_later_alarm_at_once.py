"""An alarm of the audit of later items while people without a roster answer and correct at once."""

from decimal import Decimal

import pytest
from django.db import connection, transaction

from annotation.models import Label, WorkItem
from routing.runs.later.take_in import take_in
from testbed.factories import add_member
from testbed.worlds import make_world
from tests.routing.runs.at_once import all_at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.database, pytest.mark.costly]


def test_nobody_waits_for_another_for_ever_when_models_get_worse() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time.")
    world = make_world(500)
    run = world.routed(target="population", m=200, p=Decimal(1), later_audit_share=Decimal(1))
    with transaction.atomic():
        world.finish()
    world.annotators += [add_member(world.project) for _ in range(4)]
    world.arrive(200, error=(lambda u: 0.9, lambda u: 0.9))
    take_in(run=run, user=world.manager)
    world.do("take_in")
    run.refresh_from_db()
    WorkItem.objects.filter(batch=run.routed_batch, state="open").update(state="withdrawn")
    world.label(limit=2)
    first = Label.objects.filter(work_item__batch=run.later_audit_batch).order_by("pk").first()
    assert first is not None
    assert not all_at_once(
        world.project, world.annotators, lambda _user, item: world.truth[item.external_id], first
    )
    run.refresh_from_db()
    assert run.audit_alarm_at is not None
    assert not WorkItem.objects.filter(batch=run.later_audit_batch, state__in=WorkItem.UNFINISHED).exists()
