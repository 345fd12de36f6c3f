"""The forecast on the plan page: not measured, measured, what it proposes, and what its buttons do."""

import re
from decimal import Decimal

import pytest
from django.urls import reverse

from routing.models import Measurement, Run
from routing.runs.forecast import forecast_of_plan, measured_pilot
from routing.runs.measure import start_measurement
from routing.runs.plan import outlook_of_plan
from routing.runs.plan_options import plan_options
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]
PLAN = {"epsilon": "10", "alpha": "10", "target": "dataset", "m": "120", "p": "1"}


@pytest.fixture
def world() -> World:
    return make_world(400, human_cost="40")


@pytest.fixture
def client(world, client_of):
    return client_of(world.manager)


def words(answer) -> str:
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def post(client, world: World, **data: str) -> str:
    return words(client.post(reverse("plan", args=[world.project.slug]), PLAN | data))


def test_without_it_every_forecast_says_not_measured_and_what_measuring_costs(client, world) -> None:
    page = words(client.get(reverse("plan", args=[world.project.slug])))
    assert "Not measured" in page
    assert "80 random items, for about 240.00 USD" in page
    assert "Expected net saving" not in page


def test_a_button_measures_and_the_page_keeps_what_was_typed(client, world) -> None:
    page = post(client, world, measure="1", m="133")
    assert Measurement.objects.get().finished_at
    assert not Run.objects.exists()
    assert "Expected net saving" in page
    assert "Start freezes this pilot" in page
    live = words(client.get(reverse("plan_outlook", args=[world.project.slug]), PLAN))
    assert "Expected net saving" in live
    assert "Not measured" not in live


def test_the_m_that_is_proposed_is_taken_with_a_click_and_is_where_a_new_form_begins(client, world) -> None:
    post(client, world, measure="1")
    seen = forecast_of_plan(
        outlook_of_plan(project=world.project, epsilon=Decimal("0.1"), alpha=Decimal("0.1"), m=390)
    )
    assert seen is not None
    assert seen.better_m
    assert seen.better_m < 390
    page = client.post(reverse("plan", args=[world.project.slug]), PLAN | {"use_m": str(seen.better_m)})
    assert re.search(rf'name="m" value="{seen.better_m}"', page.content.decode())
    assert not Run.objects.exists()
    fresh = client.get(reverse("plan", args=[world.project.slug]))
    proposed = fresh.context["foretold"].proposal.best.m
    assert re.search(rf'name="m" value="{proposed}"', fresh.content.decode())


def test_prices_that_are_changed_after_the_measurement_count_as_they_are_now(client, world) -> None:
    """And the order of the models, which follows them."""
    post(client, world, measure="1")
    asked = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 120, "p": Decimal(1)}
    before = forecast_of_plan(outlook_of_plan(project=world.project, **asked))
    for position, price in ((1, "7.5"), (2, "0.25")):
        world.project.sources.filter(position=position).update(cost_per_label=Decimal(price))
    seen = outlook_of_plan(project=world.project, **asked)
    assert [source.position for source in seen.sources] == [2, 1]
    measured = measured_pilot(seen.plan, Measurement.objects.get(), seen.sources, seen.score)
    assert measured.plan.costs == (Decimal("0.25"), Decimal("7.5"), Decimal(40))
    dearest = world.project.sources.get(position=1)
    for row, item in enumerate(Measurement.objects.get().items.order_by("order")):
        (said,) = dearest.predictions.filter(item=item.item_id).values_list("value", flat=True)
        assert measured.pilot.answers[row][1] == said
    assert before is not None
    assert forecast_of_plan(seen) != before


def test_a_model_that_does_not_pay_is_left_out_with_a_click() -> None:
    """A model that knows nothing and is dear beside one that is cheap and good."""
    world = make_world(
        1_000, human_cost="10", costs=("3", "0.1"), error=(lambda u: 0.6, lambda u: 0.3 * u**3)
    )
    start_measurement(project=world.project, user=world.manager)
    seen = outlook_of_plan(project=world.project, epsilon=Decimal("0.05"), alpha=Decimal("0.05"), m=200)
    found = forecast_of_plan(seen)
    assert found is not None
    assert found.leave_out == "Model 1"
    assert found.needless_in_words.startswith("Model 1 does not pay: without it")
    without = outlook_of_plan(
        project=world.project,
        epsilon=Decimal("0.05"),
        alpha=Decimal("0.05"),
        m=200,
        leave_out=["Model 1"],
    )
    better = forecast_of_plan(without)
    assert better is not None
    assert better.leave_out == ""
    assert better.now.net_saving > found.now.net_saving + 0.01
    run = world.start(m=200, leave_out=["Model 1"])
    assert [row.source.name for row in run.run_sources.all()] == ["Model 2"]
    assert run.measurement is not None


def test_the_button_that_leaves_a_model_out_ticks_its_box(client, world) -> None:
    page = client.post(reverse("plan", args=[world.project.slug]), PLAN | {"without": "Model 1"})
    assert re.search(r'value="Model 1"[^>]*checked', page.content.decode())


def test_the_menu_of_scores_is_that_of_the_first_model_that_is_left(client, world) -> None:
    source = world.project.sources.get(position=2)
    source.params = {"label_column": "model2"}
    source.save()
    usual, without = (
        {option.name: option.refusal for option in plan_options(world.project, leave_out=names).score}
        for names in ((), ("Model 1",))
    )
    assert not usual["recorded"]
    assert "Model 2" in without["recorded"]


def test_what_is_stale_is_said_and_can_be_discarded(client, world) -> None:
    post(client, world, measure="1")
    source = world.project.sources.get(position=2)
    source.params = {**source.params, "confidence_column": "confidence1"}
    source.save()
    page = post(client, world, look="1")
    assert "What was measured does not count for this plan" in page
    assert "Not measured" in page
    shown = client.get(reverse("plan", args=[world.project.slug])).content.decode()
    assert re.search(r'name="discard"[^>]*data-ask="Discard what was measured\?', shown)
    post(client, world, discard="1")
    assert Measurement.objects.get().discarded_at


def test_one_model_alone_says_why_nothing_can_be_foretold(client) -> None:
    world = make_world(200, costs=("1",), error=(lambda u: 0.5 * u,))
    client.force_login(world.manager)
    page = words(client.get(reverse("plan", args=[world.project.slug])))
    assert "Not measured" in page
    assert "one model only" in page
