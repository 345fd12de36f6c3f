"""What a plan may be made of, and how it comes back from the database."""

import json
from dataclasses import fields as fields_of
from decimal import Decimal
from pathlib import Path

import pytest

from annotation.errors import InputError
from annotation.models import Item
from routing.core.bounds import BOUNDS
from routing.models import DrawItem, Run
from routing.runs.plan import outlook_of_plan, plan_of
from routing.runs.plan_fields import PlanFields, columns_of_probabilities
from routing.runs.plan_options import plan_options
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def with_p(world: World, values: list[str | None]) -> World:
    """The world with a column "ask" that holds `values` over and over; None: a missing cell."""
    items = list(world.project.items.order_by("position"))
    for item, value in zip(items, values * len(items), strict=False):
        if value is not None:
            item.data = item.data | {"ask": value}
    Item.objects.bulk_update(items, ["data"])
    return world


def refused(world: World, **fields: object) -> InputError:
    with pytest.raises(InputError) as caught:
        world.start(**fields)
    assert not Run.objects.exists()
    return caught.value


def test_a_plan_comes_back_as_it_was_made():
    world = make_world(200)
    fields = {
        "target": "pool",
        "bound": "hoeffding_bentkus",
        "rule": "split_fixed_sequence",
        "split_share": Decimal("0.4"),
        "m": 60,
    }
    made = outlook_of_plan(
        project=world.project, epsilon=Decimal("0.1"), alpha=Decimal("0.1"), p=Decimal("0.9"), **fields
    )
    stored = plan_of(world.start(**fields))
    for name in (
        "target",
        "bound",
        "rule",
        "loss",
        "m",
        "p",
        "p_min",
        "epsilon",
        "alpha",
        "split_share",
        "costs",
    ):
        assert getattr(stored, name) == getattr(made.plan, name), name
    assert stored.rule == "split_fixed_sequence"


def test_each_item_is_asked_about_with_its_own_probability():
    world = with_p(make_world(150), ["0.25", "1", "0.5"])
    run = world.calibrating(p=None, p_column="ask", target="pool", bound="hoeffding", m=90)
    assert (run.p_column, run.p_min, run.p) == ("ask", Decimal("0.25"), Decimal("0.58333333"))
    drawn = DrawItem.objects.filter(draw__run=run)
    assert {row.probability for row in drawn} == {Decimal("0.25"), Decimal("0.5"), Decimal(1)}
    assert all(row.probability == Decimal(row.item.data["ask"]) for row in drawn.select_related("item"))
    assert all(drawn.filter(probability=1).values_list("asked", flat=True))
    assert plan_of(run).p_min == Decimal("0.25")
    assert not plan_of(run).constant_p


def test_a_column_with_one_probability_for_all_is_no_varying_one():
    run = with_p(make_world(100), ["0.5", "0.50"]).start(p=None, p_column="ask", m=40)
    assert (run.p_column, run.p_min, run.p) == ("", None, Decimal("0.5"))


@pytest.mark.parametrize("name", ["2", "-1", 'a "b"', "a'b", "p.i", "$", "50 %s", "å"])
def test_the_column_of_probabilities_may_have_any_name(name):
    def ask(index, row):
        row[name] = ("0.25", "0.5")[index % 2]

    run = make_world(60, change=ask).calibrating(
        p=None, p_column=name, target="pool", bound="hoeffding", m=30
    )
    assert (run.p_column, run.p_min, run.p) == (name, Decimal("0.25"), Decimal("0.375"))
    drawn = DrawItem.objects.filter(draw__run=run).select_related("item")
    assert all(row.probability == Decimal(row.item.data[name]) for row in drawn)


@pytest.mark.parametrize("name", ["loss_params", "score_params"])
@pytest.mark.parametrize("value", [{"\0": 1}, {"a": ["\ud800"]}, 10**400, json.loads("[" * 900 + "]" * 900)])
def test_parameters_that_no_certificate_could_hold_are_refused_before_the_draw(name, value):
    error = refused(make_world(30), m=20, **{name: {"fitted": value}})
    assert error.where == name
    assert "cannot be stored" in error.message


@pytest.mark.parametrize("value", [None, "", "often", "0", "1.2", "-0.1", "NaN", "0.123456789"])
def test_a_cell_that_holds_no_probability_is_named(value):
    world = with_p(make_world(60), ["0.5", "0.25", value])
    error = refused(world, p=None, p_column="ask", m=20)
    assert error.where == "p_column"
    assert "'t2'" in error.message
    assert "above 0 and at most 1" in error.message
    assert not value or repr(value) not in error.message  # it may be what a model said


@pytest.mark.parametrize(
    ("fields", "where", "words"),
    [
        ({"p_column": "ask"}, "p", "Leave the probability"),
        ({"p": None, "p_column": "ask"}, "bound", "hoeffding"),
        ({"bound": "binomial"}, "bound", "hypergeometric"),
        ({"bound": "clt"}, "bound", "clt"),
        ({"bound": "nothing"}, "bound", "choose one of"),
        ({"rule": "pointwise_argmin"}, "rule", "comparison only"),
        ({"rule": "split_fixed_sequence", "p": None, "p_column": "ask", "bound": "hoeffding"}, "rule", "one"),
        ({"loss": "numeric"}, "loss", "zero_one"),
        ({"loss": "os:remove"}, "loss", "zero_one"),
        ({"loss_params": {"depth": 3}}, "loss_params", "depth"),
        ({"split_share": Decimal(1)}, "split_share", "between 0 and 1"),
        ({"p": Decimal("1.5")}, "p", "p = 1.5: "),
        ({"m": 500}, "m", "m = 500 items"),
        ({"p": None, "p_column": "nope"}, "p_column", "There is no column 'nope'"),
        ({"rule": "nothing"}, "rule", "choose one of every_score, fixed_sequence, multi_chain"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_beside_its_field(fields, where, words):
    world = with_p(make_world(90), ["0.25", "0.5"])
    bound = {"bound": "hypergeometric"} if fields.get("p_column") and where == "bound" else {}
    error = refused(world, **({"m": 30} | bound | fields))
    assert error.where == where, error.message
    assert words in error.message
    assert not error.message.startswith(("P = ", "M = "))


def test_only_bounds_that_can_certify_are_named():
    message = refused(make_world(30), m=20, bound="foo").message
    named = message.removeprefix("There is no bound 'foo'; choose one of ").rstrip(".").split(", ")
    assert named == [entry.name for entry in BOUNDS if entry.certifies]
    assert "clt" not in named


def test_columns_that_may_hold_probabilities_are_offered():
    world = with_p(make_world(60), ["0.5", "0.25", "", "1"])
    world.project.columns = [*world.project.columns, "ask"]
    # Whoever is unsure about an item may want it looked at more often: scores stay.
    assert columns_of_probabilities(world.project) == ["confidence1", "confidence2", "ask"]


def test_labels_that_are_numbers_may_be_off_by_a_little():
    world = make_world(120)
    for key, choice in zip(("1", "2", "3"), world.project.choices.order_by("position"), strict=True):
        type(choice).objects.filter(pk=choice.pk).update(key=key)
    run = world.start(loss="numeric", loss_params={"absolute": "1"}, m=40)
    assert plan_of(run).loss_function()("1", "2") == 0
    assert plan_of(run).loss_function()("1", "3") == 1


def test_the_settings_may_offer_any_loss_that_there_is(settings):
    settings.HYPAC_LOSSES = ["exact_match", "zero_one", "no.such:LOSS"]
    world = make_world(30)
    menu = plan_options(world.project, loss="no.such:LOSS").loss
    assert [option.name for option in menu] == ["zero_one", "exact_match", "no.such:LOSS"]
    assert refused(world, loss="no.such:LOSS", m=20).where == "loss"
    assert world.start(loss="exact_match", loss_params={"ignore_case": False}, m=20).loss == "exact_match"


def test_a_loss_of_ones_own_has_to_be_named_in_the_settings(settings):
    settings.HYPAC_LOSSES = ["tests.routing.runs.own_loss:HALF"]
    run = make_world(120).start(loss="tests.routing.runs.own_loss:HALF", m=40)
    assert run.loss == "tests.routing.runs.own_loss:HALF"
    assert run.bound == "betting_upper"


def test_the_least_and_the_most_that_a_run_can_cost():
    world = make_world(200)
    seen = outlook_of_plan(
        project=world.project, epsilon=Decimal("0.1"), alpha=Decimal("0.1"), m=80, p=Decimal("0.5")
    )
    assert seen.committed == 40 * 8 + 200 + 2 * (seen.pilot_size + 40)
    assert seen.at_most == 200 * 8 + 200 + 2 * (seen.pilot_size + 40)


def test_the_table_of_the_plan_has_each_field():
    page = (Path(__file__).resolve().parents[3] / "docs/plans.md").read_text()
    first_cells = "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert [field.name for field in fields_of(PlanFields) if f"`{field.name}`" not in first_cells] == []
