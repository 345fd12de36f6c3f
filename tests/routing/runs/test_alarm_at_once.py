"""An alarm of the audit while annotators and the expert answer and correct at the same moment."""

from decimal import Decimal

import pytest
from django.db import connection

from annotation.models import Label
from testbed.experts import ExpertWorld
from tests.routing.runs.at_once import all_at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.database, pytest.mark.costly]


def test_nobody_waits_for_another_for_ever_when_the_audit_warns() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time.")
    here = ExpertWorld(error=0.0)
    run = here.routed(here.start(audit_share=Decimal(1), accepted_error=Decimal("0.02")))
    people = [*here.world.annotators, here.expert]
    here.label(*here.world.annotators, limit=2)
    first = Label.objects.filter(work_item__batch=run.routed_batch).order_by("pk").first()
    assert first is not None
    here.error = 0.9
    assert not all_at_once(here.world.project, people, here.answer, first)
    run.refresh_from_db()
    assert run.audit_alarm_at is not None
