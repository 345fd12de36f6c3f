"""What an answer costs: by what it used, at the prices that the run froze."""

from decimal import Decimal

import pytest

from annotation.errors import InputError
from routing.models import Prediction, Spend
from routing.sources.manage import save_source
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
USAGE = {"tokens_in_column": "read", "tokens_out_column": "written", "seconds_column": "seconds"}


def measured(index, row):
    row |= {"read": "100", "written": str(10 + index), "seconds": "0.5", "paid": ""}


def change(world, *, columns=USAGE, **fields):
    """Change how the first model is charged."""
    source = world.project.sources.get(position=1)
    return save_source(
        project=world.project,
        user=world.manager,
        name=source.name,
        backend="recorded",
        params={"label_column": "model1", "confidence_column": "confidence1"} | columns,
        cost_per_label=fields.pop("cost_per_label", Decimal(7)),
        source=source,
        **fields,
    )


def start(world, **fields):
    # The models come in the order of their prices.
    world.project.sources.filter(position=2).update(cost_per_label=1_000)
    return world.start(m=20, **fields)


def costs(world, **fields):
    """Cost and note of the first model's answers, by place."""
    run = start(world, **fields)
    world.do("prepare_run")
    answers = Prediction.objects.filter(source__position=1).order_by("item__position")
    rows = list(answers.values_list("cost", "cost_note"))
    paid = Spend.objects.get(run=run, stage=Spend.Stage.POOL)
    assert paid.amount == sum(cost for cost, _ in rows)
    return rows


@pytest.mark.parametrize(
    ("function", "prices", "expected"),
    [
        ("flat", {}, lambda index: Decimal(7)),
        ("tokens", {}, lambda index: Decimal(10 + index)),
        ("tokens", {"per_token": "0.5"}, lambda index: (10 + index) * Decimal("0.5")),
        (
            "api_price",
            {"input": "0.15", "output": "0.6"},
            lambda index: (100 * Decimal("0.15") + (10 + index) * Decimal("0.6")) / 1_000_000,
        ),
        (
            "api_price",
            {"input": "0.002", "output": "0.006", "per_tokens": "1000"},
            lambda index: (100 * Decimal("0.002") + (10 + index) * Decimal("0.006")) / 1_000,
        ),
        ("time", {"per_hour": "3.6"}, lambda index: Decimal("0.0005")),
    ],
)
def test_an_answer_costs_what_it_used(function, prices, expected):
    world = make_world(20, change=measured)
    change(world, cost_function=function, prices=prices)
    assert costs(world) == [(expected(index), "") for index in range(20)]


def test_without_a_measurement_the_price_per_label_is_charged_and_it_is_said():
    def gaps(index, row):
        measured(index, row)
        if index % 2:
            row["written"] = ("", "many", "-4", "1.5", "NaN")[index // 2 % 5]

    world = make_world(20, change=gaps)
    change(world, cost_function="tokens", prices={})
    for index, (cost, note) in enumerate(costs(world)):
        if index % 2:
            assert cost == 7
            assert note == "the number of tokens generated is not known; the price per label was charged"
        else:
            assert (cost, note) == (10 + index, "")


def test_a_cost_that_no_column_can_hold_is_charged_at_the_price_per_label():
    world = make_world(20, change=measured)
    change(world, cost_function="tokens", prices={"per_token": "999999999"})
    assert {cost for cost, _ in costs(world)} == {7}
    assert "more than can be stored" in Prediction.objects.filter(source__position=1)[0].cost_note


def test_a_recorded_cost_goes_first():
    def half(index, row):
        measured(index, row)
        row["paid"] = "0.0000001" if index < 10 else ""

    world = make_world(20, change=half)
    change(world, columns=USAGE | {"cost_column": "paid"}, cost_function="tokens", prices={})
    rows = costs(world)
    assert [cost for cost, _ in rows[:10]] == [Decimal("0.0000001")] * 10
    assert [cost for cost, _ in rows[10:]] == [10 + index for index in range(10, 20)]


def test_a_run_keeps_the_prices_it_was_started_with():
    world = make_world(20, change=measured)
    change(world, cost_function="tokens", prices={"per_token": "2"})
    run = start(world)
    change(world, cost_function="time", prices={"per_hour": "1"})
    world.do("prepare_run")
    frozen = run.run_sources.get(position=1)
    assert (frozen.cost_function, frozen.prices) == ("tokens", {"per_token": "2"})
    cost = Prediction.objects.get(source__position=1, item__position=0).cost
    assert cost == 20


def test_a_cost_function_that_the_answers_cannot_feed_is_refused():
    world = make_world(10, change=measured)
    with pytest.raises(
        InputError, match="do not tell how many tokens were read and how many tokens were"
    ) as caught:
        change(world, columns={}, cost_function="api_price", prices={"input": "1", "output": "1"})
    assert caught.value.where == "cost_function"
    event = world.project.audit_events.filter(action="source.added").latest("pk")
    assert event.data["cost_function"] == "flat"
