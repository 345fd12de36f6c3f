"""Measuring first: the pilot is answered before a plan is chosen, paid once, seen by nobody, and taken by the
run that starts.
"""

from decimal import Decimal

import pytest

from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.models import Item, Job, Label, WorkItem
from routing.models import Measurement, Prediction, Reservation, Run, Spend
from routing.runs.cancel import cancel_run
from routing.runs.measure import discard_measurement, offer, start_measurement
from routing.runs.measurements import measured_for
from routing.runs.plan import outlook_of_plan, sources_of
from routing.runs.spending import paid_by
from routing.visibility import output_is_open
from testbed.factories import make_items
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
PLAN = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 120, "p": Decimal(1)}


@pytest.fixture
def world() -> World:
    return make_world(400, human_cost="40")


def measured(world: World, **fields) -> Measurement:
    found = start_measurement(project=world.project, user=world.manager, entropy=5, **fields)
    assert found.usable is not None, found
    return found.usable


def piloted(run: Run) -> list[int]:
    return list(run.pilot_items.order_by("order").values_list("item", flat=True))


def items_of(measurement: Measurement) -> list[int]:
    return list(measurement.items.order_by("order").values_list("item", flat=True))


def test_all_models_answer_a_random_pilot_and_nobody_labels_it(world) -> None:
    seen = offer(world.project)
    assert (seen.size, seen.price) == (80, Decimal(80 * 3))
    measurement = measured(world)
    assert measurement.size == 80 == len(set(items_of(measurement)))
    for source in world.project.sources.all():
        answered = set(Prediction.objects.filter(source=source).values_list("item", flat=True))
        assert answered == set(items_of(measurement))
    assert sum(Spend.objects.values_list("amount", flat=True)) == seen.price
    assert not WorkItem.objects.exists()
    assert not Label.objects.exists()
    assert not Run.objects.exists()


def test_the_run_takes_the_same_items_with_the_same_answers(world) -> None:
    measurement = measured(world)
    before = dict(Prediction.objects.values_list("pk", "created_at"))
    assert outlook_of_plan(project=world.project, **PLAN).pilot_size == 80
    run = world.start(entropy=9)
    world.do("prepare_run")
    assert run.measurement == measurement
    assert piloted(run) == items_of(measurement)
    kept = Prediction.objects.filter(pk__in=list(before)).values_list("pk", "created_at")
    assert dict(kept) == before
    run.refresh_from_db()
    assert run.chains[0]["name"] != "assumed"
    first = world.project.sources.get(position=1)
    paid = sum(row.quantity for row in paid_by(run) if row.source == first.name)
    assert paid == Prediction.objects.filter(source=first).count() == 400


def test_the_draw_does_not_depend_on_what_was_measured(world) -> None:
    measured(world)
    run = world.calibrating(entropy=9)
    drawn = list(run.draw.items.order_by("order").values_list("item__external_id", "asked"))
    other = make_world(400, human_cost="40")
    alone = other.calibrating(entropy=9)
    assert drawn == list(alone.draw.items.order_by("order").values_list("item__external_id", "asked"))


def test_a_budget_of_the_run_counts_what_measuring_cost(world) -> None:
    measured(world)
    run = world.start(budget=Decimal(240 + 100))
    job = world.project.jobs.get(kind="prepare_run")
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.error_code == "budget_used_up"
    assert sum(Spend.objects.filter(run=run).values_list("amount", flat=True)) == 100


def test_a_price_above_the_budget_is_refused_before_anything_is_bought(world) -> None:
    with pytest.raises(InputError, match="240 USD, more than the budget of 100") as refused:
        start_measurement(project=world.project, user=world.manager, budget=Decimal(100))
    assert refused.value.where == "budget"
    assert not Measurement.objects.exists()
    assert not Job.objects.filter(kind="measure").exists()


def test_what_stopped_at_its_budget_goes_on_and_pays_nothing_twice(world) -> None:
    """Where answers turn out dearer than the plan reckoned with."""
    items = list(world.project.items.all())
    for item in items:
        item.data["cost"] = "1"
    Item.objects.bulk_update(items, ["data"])
    world.project.columns = [*world.project.columns, "cost"]
    world.project.save()
    for source in world.project.sources.all():
        source.cost_per_label = Decimal("0.1")
        source.params = {**source.params, "cost_column": "cost"}
        source.save()
    stopped = start_measurement(project=world.project, user=world.manager, budget=Decimal(50))
    assert stopped.job.error_code == "measuring_budget_used_up"
    assert "larger budget" in stopped.job.error_in_words
    assert stopped.usable is None
    assert stopped.unfinished
    assert sum(Spend.objects.values_list("amount", flat=True)) == 50
    again = start_measurement(project=world.project, user=world.manager, budget=Decimal(200))
    assert again.usable == stopped.measurement
    assert sum(Spend.objects.values_list("amount", flat=True)) == 160
    assert not Reservation.objects.filter(calls__gt=0).exists()


def test_what_a_person_changes_makes_it_stale_and_unused(world) -> None:
    measurement = measured(world)
    make_items(world.project, ["one more"])
    seen = outlook_of_plan(project=world.project, **PLAN).measured
    assert seen.usable is None
    assert "imported, labelled or removed" in seen.stale
    run = world.start()
    assert run.measurement is None
    assert piloted(run) != items_of(measurement)


def test_a_source_that_is_asked_otherwise_makes_it_stale(world) -> None:
    measured(world)
    source = world.project.sources.get(position=2)
    source.params = {**source.params, "label_column": "answer1"}
    source.save()
    found = measured_for(world.project, target="dataset", sources=sources_of(world.project))
    assert found.usable is None
    assert source.name in found.stale


def test_a_source_that_was_not_measured_makes_it_stale(world) -> None:
    first, second = world.project.sources.order_by("position")
    with pytest.raises(InputError, match="one model only"):
        start_measurement(project=world.project, user=world.manager, leave_out=[second.name])
    measured(world)
    only = measured_for(world.project, target="dataset", sources=[first])
    assert only.usable, "a model that is left out takes nothing from what the others answered"


def test_a_run_may_do_without_a_model_that_was_measured(world) -> None:
    measurement = measured(world)
    first, second = world.project.sources.order_by("position")
    run = world.start(leave_out=[first.name])
    world.do("prepare_run")
    assert run.measurement == measurement
    assert [row.source for row in run.run_sources.order_by("position")] == [second]
    assert run.run_sources.get().position == 1
    world.finish()
    assert Run.objects.get().state == Run.State.CALIBRATING
    with pytest.raises(InputError) as refused:
        outlook_of_plan(project=world.project, **PLAN, leave_out=["nobody"])
    assert refused.value.where == "leave_out"


def test_for_everything_from_the_same_source_what_is_measured_stays_outside_the_pool(world) -> None:
    measurement = measured(world, target="population")
    found = measured_for(world.project, target="dataset", sources=sources_of(world.project))
    assert found.usable is None
    assert "another promise" in found.stale
    run = world.start(target="population")
    world.do("prepare_run")
    run.refresh_from_db()
    assert run.measurement == measurement
    assert run.pool_size == 400 - 80
    inside = set(run.pool_items.values_list("item", flat=True))
    assert inside.isdisjoint(items_of(measurement))
    assert piloted(run) == items_of(measurement)
    assert run.chains[0]["name"] != "assumed"


def test_nobody_sees_an_answer_until_a_run_is_analysed_or_it_is_discarded(world) -> None:
    world.complete(m=60)
    assert output_is_open(world.project)
    make_items(world.project, [f"later {number}" for number in range(300)])
    start_measurement(project=world.project, user=world.manager)
    assert Measurement.objects.get().finished_at
    assert not output_is_open(world.project)
    discard_measurement(project=world.project, user=world.manager)
    assert output_is_open(world.project)
    with pytest.raises(ConflictError):
        discard_measurement(project=world.project, user=world.manager)


def test_a_cancelled_run_leaves_it_to_the_next(world) -> None:
    measurement = measured(world)
    cancel_run(run=world.start(), user=world.manager)
    assert world.start().measurement == measurement


def test_no_run_starts_beside_it_and_it_does_not_start_beside_a_run(world) -> None:
    job_kinds = []
    project = world.project

    def held(job_id: int) -> bool:
        job_kinds.append(job_id)
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("routing.runs.measure.jobs.run", held)
        found = start_measurement(project=project, user=world.manager)
    assert found.under_way
    assert job_kinds == [found.job.pk]
    with pytest.raises(ConflictError, match="being measured"):
        world.start()
    jobs.cancel(job=found.job)
    assert measured_for(project, target="dataset", sources=sources_of(project)).unfinished
    run = world.start()
    assert run.measurement is None
    with pytest.raises(ConflictError, match="under way"):
        start_measurement(project=project, user=world.manager)


def test_the_facts_of_a_measurement_cannot_be_changed(world) -> None:
    from django.db import DatabaseError, transaction

    measurement = measured(world)
    for changes in ({"entropy": "1"}, {"pool_hash": "x"}, {"size": 3}):
        with pytest.raises(DatabaseError), transaction.atomic():
            Measurement.objects.filter(pk=measurement.pk).update(**changes)
    with pytest.raises(DatabaseError), transaction.atomic():
        measurement.items.update(order=7)
