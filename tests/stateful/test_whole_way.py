"""A project goes its whole way in any order (machine.py): on SQLite, and on PostgreSQL with the whole
suite."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.stateful.machine import WholeWay

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]

COMMON = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True)


def test_nothing_is_lost_or_doubled_whatever_happens():
    run_state_machine_as_test(
        WholeWay,
        settings=settings(COMMON, max_examples=10, stateful_step_count=40, derandomize=True),
    )


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_in_many_more_orders():
    run_state_machine_as_test(
        WholeWay, settings=settings(COMMON, max_examples=40, stateful_step_count=50, derandomize=True)
    )
