"""What the database itself refuses."""

from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError

from routing.models import Draw, PoolItem, Run, RunSource, Source, Spend
from testbed.factories import make_items, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.database]


@pytest.fixture
def make_run():
    def make(**changes: Any) -> Run:
        fields = {
            "project": make_project(),
            "number": 1,
            "state": Run.State.COMPLETE,
            "epsilon": Decimal("0.1"),
            "alpha": Decimal("0.1"),
            "m": 1,
            "p": 1,
            "bound": "hypergeometric",
            "human_cost": 1,
            "pool_size": 1,
            "entropy": "1",
            "salt": "s",
        }
        return Run.objects.create(**(fields | changes))

    return make


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"state": "done"}, "run_state_known"),
        ({"target": "everything"}, "run_target_known"),
        ({"human_cost": 0}, "run_human_cost_above_0"),
        ({"epsilon": 1}, "run_epsilon_in_0_1"),
        ({"alpha": 0}, "run_alpha_in_0_1"),
        ({"p": 0}, "run_p_in_0_1"),
        ({"m": 2}, "run_m_in_pool"),
    ],
)
def test_a_plan_that_means_nothing(make_run, changes, name):
    with pytest.raises(IntegrityError, match=name):
        make_run(**changes)


@pytest.mark.parametrize("state", Run.State.values)
def test_every_state_is_known(make_run, state):
    assert make_run(state=state).pk


def test_a_draw_that_asks_about_more_than_it_holds(make_run):
    with pytest.raises(IntegrityError, match="draw_n_within_m"):
        Draw.objects.create(run=make_run(), m=1, n=2)


@pytest.mark.parametrize("v", [-1, 2**53])
def test_a_tie_break_that_no_float_holds(make_run, v):
    run = make_run()
    with pytest.raises(IntegrityError, match="pool_v_of_53_bits"):
        PoolItem.objects.create(run=run, item=make_items(run.project, 1)[0], position=0, v=v)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"position": 0}, "run_source_position_from_1"),
        ({"cost_per_label": -1}, "run_source_cost_not_negative"),
    ],
)
def test_a_source_that_cannot_be(make_run, changes, name):
    run = make_run()
    source = Source.objects.create(project=run.project, position=1, name="a", backend="recorded")
    fields = {"position": 1, "source": source, "fingerprint": "f", "cost_per_label": 1}
    with pytest.raises(IntegrityError, match=name):
        RunSource.objects.create(run=run, **(fields | changes))


@pytest.mark.parametrize(
    ("changes", "name"), [({"stage": "party"}, "spend_stage_known"), ({"amount": -1}, "spend_not_negative")]
)
def test_money_for_nothing(make_run, changes, name):
    run = make_run()
    fields = {"project": run.project, "run": run, "stage": "pool", "quantity": 1, "amount": 1, "key": "k"}
    with pytest.raises(IntegrityError, match=name):
        Spend.objects.create(**(fields | changes))
