"""A project goes its whole way in any order (machine.py): on SQLite, and on PostgreSQL."""

import itertools
import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from routing.core.reference.sources import CHECKED, PERSON
from routing.models import ExpertRequest, Route, Run
from testbed import factories
from tests.stateful.expert_machine import REACHED, ExpertWay
from tests.stateful.machine import WholeWay

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


@pytest.fixture(autouse=True)
def _names_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names say whose each item of a roster is: these are the same whatever ran before."""
    monkeypatch.setattr(factories, "_numbers", itertools.count(1))


# Ways of each slow test.
ORDERS = int(os.environ.get("HYPAC_TEST_ORDERS", "12"))
COMMON = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True)


def test_nothing_is_lost_or_doubled_whatever_happens():
    run_state_machine_as_test(
        WholeWay,
        settings=settings(COMMON, max_examples=4, stateful_step_count=40, derandomize=True),
    )


def test_rosters_second_looks_and_audits_hold_whatever_happens():
    run_state_machine_as_test(
        ExpertWay, settings=settings(COMMON, max_examples=4, stateful_step_count=30, derandomize=True)
    )
    # The rest is on the way below, second looks and what routing asks among it. Which orders get there hangs
    # on how many statements a job has, for workers are killed at them, and so on the database.
    assert {"asked", "recheck", "audit", "run complete"} <= set(REACHED)


def way_with_people(attempts: int = 30) -> ExpertWay:
    """At a run that leaves items to people alone, and to person and model: some four draws of ten do."""
    for _attempt in range(attempts):
        way = ExpertWay()
        way.first_import()
        for _file in range(2):
            way.import_file(15, 0)
            way.do_all_jobs()
        way.draw(2)
        while (run := way._run()).state != Run.State.LABELLING:
            way.do_all_jobs()
            way._label_all()
            way.certify()
            way.send()
            way.do_all_jobs()
        routes = Counter(Route.objects.filter(run=run).values_list("position", flat=True))
        models = run.run_sources.count()
        if routes[models + PERSON + 1] >= 14 and routes[models + CHECKED + 1] >= 8:
            return way
    raise AssertionError(f"none of {attempts} draws leaves enough to people")


def test_every_reason_to_ask_an_expert_lies_on_one_way():
    """Driven by hand: an alarm takes several bad days, which few examples have at the right moment."""
    REACHED.clear()
    way = way_with_people()
    run = way._run()
    way.somebody_new_comes()
    way.bad_days(1)
    way.give_up_on(0)
    way.bad_days(20)
    run.refresh_from_db()
    assert run.audit_alarm_at
    for check in (
        way.everybody_labels_what_is_theirs,
        way.the_expert_is_asked_what_there_is_a_reason_for,
        way.second_looks_and_audits_follow_the_labels,
        way.nobody_labels_an_item_twice,
        way.newcomers_hold_nothing,
        way.what_was_shown_keeps_its_item,
    ):
        check()
    way.teardown()
    # A final audit is drawn once everything is labelled (tests/routing/runs/test_final_audit.py).
    never = {ExpertRequest.Why.FINAL, ExpertRequest.Why.UNDECIDED}  # its loss is quick
    assert {*ExpertRequest.Why.values, "run complete"} - never <= set(REACHED)


@pytest.mark.slow
def test_rosters_second_looks_and_audits_hold_in_many_more_orders():
    REACHED.clear()
    run_state_machine_as_test(
        ExpertWay, settings=settings(COMMON, max_examples=ORDERS, stateful_step_count=40, derandomize=True)
    )
    assert {"asked", "recheck", "routed", "second_look", "audit", "run complete"} <= set(REACHED)


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_in_many_more_orders():
    run_state_machine_as_test(
        WholeWay, settings=settings(COMMON, max_examples=ORDERS, stateful_step_count=50, derandomize=True)
    )
