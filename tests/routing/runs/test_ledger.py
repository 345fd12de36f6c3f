"""alpha is charged with the draw, and inherited along shared items."""

from decimal import Decimal

import pytest

from annotation.errors import InputError
from annotation.models import Item
from routing.models import Draw, Intake, PoolItem, Run
from routing.runs.ledger import ledger, spent_before
from testbed.factories import make_items, make_project
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def make_run(project, number: int, items: list[Item], *, target: str = "dataset", drawn: bool = True) -> Run:
    run = Run.objects.create(
        project=project,
        number=number,
        state=Run.State.COMPLETE,
        epsilon=Decimal("0.1"),
        alpha=Decimal("0.01") * number,
        target=target,
        m=1,
        p=1,
        bound="hypergeometric",
        human_cost=1,
        pool_size=len(items),
        entropy="1",
        salt="s",
    )
    PoolItem.objects.bulk_create(
        PoolItem(run=run, item=item, position=place, v=place) for place, item in enumerate(items)
    )
    if drawn:
        Draw.objects.create(run=run, m=1, n=1)
    return run


def numbers(run: Run) -> list[int]:
    return [entry.number for entry in ledger(run)]


def test_a_pool_inherits_from_the_pools_it_shares_items_with():
    project = make_project()
    a, b, c, d = make_items(project, 4)
    make_run(project, 1, [a, b])
    make_run(project, 2, [b, c])
    third = make_run(project, 3, [c])
    apart = make_run(project, 4, [d])
    assert numbers(third) == [1, 2, 3]  # of run 1 through run 2
    assert sum(entry.alpha for entry in ledger(third)) == Decimal("0.06")
    assert numbers(apart) == [4]


def test_a_pool_inherits_nothing_from_a_run_that_took_its_items_in():
    project = make_project()
    a, b = make_items(project, 2)
    first = make_run(project, 1, [a], target="population")
    intake = Intake.objects.create(run=first, number=1, last=1)
    PoolItem.objects.create(run=first, item=b, intake=intake, position=1, v=1)
    assert numbers(make_run(project, 2, [b], target="pool")) == [2]
    assert numbers(make_run(project, 3, [a], target="pool")) == [1, 3]


def test_later_runs_charge_nothing_to_earlier_ones():
    project = make_project()
    items = make_items(project, 2)
    first = make_run(project, 1, items)
    make_run(project, 2, items)
    assert numbers(first) == [1]


def test_a_population_run_inherits_from_every_earlier_run():
    project = make_project()
    a, b = make_items(project, 2)
    make_run(project, 1, [a])
    assert numbers(make_run(project, 2, [b], target="population")) == [1, 2]


def test_a_cancelled_run_stays_charged_once_it_was_drawn():
    project = make_project()
    items = make_items(project, 1)
    make_run(project, 1, items)
    make_run(project, 2, items, drawn=False)
    Run.objects.filter(project=project).update(state=Run.State.CANCELLED)
    assert numbers(make_run(project, 3, items)) == [1, 3]


def test_a_run_that_is_planned_is_told_what_was_spent_before():
    project = make_project()
    a, b, _ = make_items(project, 3)
    assert spent_before(project, "dataset") == 0
    make_run(project, 1, [a])
    make_run(project, 2, [b])
    make_run(project, 3, [a], drawn=False)
    assert spent_before(project, "dataset") == Decimal("0.03")
    assert spent_before(project, "population") == Decimal("0.03")


def test_a_run_that_could_promise_nothing_is_not_started() -> None:
    """Each draw on the same items spends: whoever draws every night is told when nothing is left."""
    world = make_world(300)
    for _night in range(2):
        world.complete(m=30, alpha=Decimal("0.4"))
    with pytest.raises(InputError, match="at least 0 %") as refused:
        world.start(m=30, alpha=Decimal("0.2"))
    assert refused.value.where == "alpha"
    assert "have spent 0.8 of alpha: with 0.2 more" in str(refused.value)
    world.start(m=30, alpha=Decimal("0.1"))
