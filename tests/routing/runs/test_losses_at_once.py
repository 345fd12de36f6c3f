"""Two people whose answers want losses, on PostgreSQL: neither waits for the other without an end."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from routing.common import computed_losses
from routing.common.computed_losses import KIND, have_computed, key_of_pair, known_losses
from routing.models import Run
from testbed.worlds import make_world
from tests.annotation.projects.test_project_locks import beside
from tests.routing.runs.slow_loss import PATH

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one lock for all who write"),
    pytest.mark.database,
]


def test_the_run_and_the_waiting_job_may_be_locked_in_either_order() -> None:
    """One wants a loss and then looks at the run, the other the other way round."""
    world = make_world(40)
    run = world.start(m=20)
    have_computed(world.project)

    def the_other_way() -> None:
        with transaction.atomic():
            Run.objects.select_for_update(no_key=True).get(pk=run.pk)
            have_computed(world.project, soon=True)

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            have_computed(world.project, soon=True)
            second = beside(pool, the_other_way)
            Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        second.result()
    assert world.project.jobs.filter(kind=KIND).exists()


@pytest.mark.parametrize("again", [False, True])
def test_the_same_losses_may_be_wanted_in_any_order(settings: Any, monkeypatch: Any, again: bool) -> None:
    """Also more of them than are looked up together, and `again` after most of a day."""
    settings.HYPAC_LOSSES = [PATH]
    monkeypatch.setattr(computed_losses, "AT_ONCE", 1)
    run = make_world(40).start(m=20, loss=PATH)
    pairs = [("cat", "dog"), ("dog", "cat")]
    pairs.sort(key=lambda pair: key_of_pair(run.loss, "{}", pair))

    before = timezone.now() - timedelta(hours=20)
    if again:
        known_losses(run, pairs)
        run.project.computed_losses.update(asked_at=before)

    def the_other_way() -> None:
        with transaction.atomic():
            known_losses(run, pairs[::-1])

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            known_losses(run, pairs[:1])
            second = beside(pool, the_other_way)
            known_losses(run, pairs[1:])
        second.result()
    assert run.project.computed_losses.filter(asked_at__gt=before).count() == 2
