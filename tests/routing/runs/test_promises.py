"""What one gets for each promise: on the page, through the API, before and after the models are measured."""

import re
from decimal import Decimal

import pytest
from django.urls import reverse

from routing.runs.forecast import forecast_of_plan
from routing.runs.measure import start_measurement
from routing.runs.plan import outlook_of_plan
from routing.runs.plan_choices import EPSILONS, promises_of_plan, suggested_m
from testbed.worlds import World, make_world
from tests.routing.runs.test_plan_page import element, live

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
PLAN = {"epsilon": "5", "alpha": "5", "target": "dataset", "m": "120", "p": "1"}


def measured_world(size: int = 1_000) -> World:
    world = make_world(size, human_cost="10")
    start_measurement(project=world.project, user=world.manager)
    return world


def outlook(world: World, **fields: object):
    plan = {"epsilon": Decimal("0.05"), "alpha": Decimal("0.05"), "m": 120} | fields
    return outlook_of_plan(project=world.project, **plan)


def take(client, world: World, value: str) -> dict[str, str]:
    page = client.post(reverse("plan", args=[world.project.slug]), PLAN | {"take": value}).content.decode()
    fields = {}
    for name in ("epsilon", "alpha", "m"):
        found = re.search(rf'name="{name}" value="([^"]*)"', page)
        assert found, name
        fields[name] = found[1]
    return fields


def test_before_a_measurement_a_promise_says_what_can_certify_it_and_no_saving(client_of) -> None:
    world = make_world(1_000)
    found = promises_of_plan(world.project, outlook(world), [(one, Decimal("0.05")) for one in EPSILONS])
    assert [one.epsilon for one in found] == list(EPSILONS)
    assert [one.least for one in found] == sorted((one.least for one in found), reverse=True)
    for one in found:
        assert one.proposal is None
        assert one.m is not None
        assert 2 * one.least <= one.m <= 1_000
        assert outlook(world, epsilon=one.epsilon, m=one.m).statistics.certifiable
    part = live(client_of(world.manager), world, **PLAN)
    assert "not measured" in element(part, "promises")


def test_a_plan_begins_with_the_draw_of_its_row(client_of) -> None:
    world = make_world(500)
    page = client_of(world.manager).get(reverse("plan", args=[world.project.slug])).content.decode()
    typed = re.search(r'name="m" value="(\d+)"', page)
    current = re.search(r'<tr aria-current="true">.*?<td class="number"[^>]*>(\d+)</td>', page, re.DOTALL)
    assert typed
    assert current
    assert typed[1] == current[1] != "100"


def test_after_it_each_promise_has_the_draw_that_costs_least_with_its_range(client_of) -> None:
    world = measured_world()
    found = promises_of_plan(world.project, outlook(world), [(one, Decimal("0.05")) for one in EPSILONS])
    savings = []
    for one in found:
        assert one.best is not None
        at_it = forecast_of_plan(outlook(world, epsilon=one.epsilon, m=one.m))
        assert at_it is not None
        assert at_it.now.net_saving == pytest.approx(one.best.net_saving)
        assert one.best.low <= one.best.net_saving <= one.best.high
        assert all(other.net_cost >= one.best.net_cost * 0.98 for other in one.others)
        savings.append(one.best.net_saving)
    assert savings == sorted(savings)  # who accepts more errors saves more
    client = client_of(world.manager)
    page = live(client, world, **PLAN)
    row = re.search(r'aria-current="true">\s*<th[^>]*>5.%</th>.*?value="([^"]*)"', page, re.DOTALL)
    assert row
    chosen = next(one for one in found if one.epsilon == Decimal("0.05"))
    assert take(client, world, row[1]) == {"epsilon": "5", "alpha": "5", "m": str(chosen.m)}
    body = client.post(
        f"/api/v1/projects/{world.project.slug}/plan/",
        {"epsilon": "0.05", "alpha": "0.05", "m": 120},
        content_type="application/json",
    ).json()
    by_epsilon = {one["epsilon"]: one for one in body["promises"]}
    assert sorted(by_epsilon) == [float(one) for one in EPSILONS]
    assert by_epsilon[0.05]["m"] == chosen.m
    assert by_epsilon[0.05]["forecast"]["net_saving"] == pytest.approx(chosen.best.net_saving)


@pytest.mark.parametrize(
    ("name", "epsilon", "alpha"), [("cheaper", "10", "10"), ("balanced", "5", "5"), ("stricter", "2", "1")]
)
def test_a_preset_fills_in_a_promise_that_can_be_certified(client_of, name, epsilon, alpha) -> None:
    world = make_world(1_000)
    client = client_of(world.manager)
    page = client.get(reverse("plan", args=[world.project.slug])).content.decode()
    offered = re.findall(r'name="take" value="([^"]*)"', page)
    value = next(one for one in offered if one.startswith(f"{epsilon} %|{alpha} %"))
    fields = take(client, world, value)
    assert (fields["epsilon"], fields["alpha"]) == (epsilon, alpha)
    assert "Can be certified" in live(client, world, **PLAN | fields)
    assert not world.project.runs.exists()


def test_that_nearly_everything_goes_to_people_is_said(client_of) -> None:
    # They never agree: where they do, chance decides how much is foretold to be right.
    world = make_world(1_000, error=(lambda u: 0.0, lambda u: 1.0), human_cost="10")
    start_measurement(project=world.project, user=world.manager)
    found = promises_of_plan(world.project, outlook(world), [(Decimal("0.01"), Decimal("0.05"))])
    assert found[0].nearly_all
    part = live(client_of(world.manager), world, **PLAN | {"epsilon": "1 %", "m": "600"})
    assert "Certifying this will probably send nearly everything to people" in part
    assert "nearly everything to people" in element(part, "promises")


def test_too_few_items_are_said_and_nothing_can_be_taken(client_of) -> None:
    world = make_world(60)
    found = promises_of_plan(world.project, outlook(world, m=40), [(Decimal("0.01"), Decimal("0.05"))])
    assert found[0].nearly_all
    assert live(client_of(world.manager), world, **PLAN | {"m": "40"})


@pytest.mark.parametrize("value", ["", "|||", "x", "5 %|5 %|many", "0.05|5|10"])
def test_what_nobody_offered_is_refused_by_its_field_and_starts_nothing(client_of, value) -> None:
    world = make_world(60)
    address = reverse("plan", args=[world.project.slug])
    assert client_of(world.manager).post(address, PLAN | {"take": value}).status_code == 200
    assert not world.project.runs.exists()


@pytest.mark.parametrize(("count", "m"), [(0, 1), (50, 50), (400, 100), (2_000, 400), (90_000, 1_000)])
def test_a_draw_to_begin_with(count: int, m: int) -> None:
    assert suggested_m(count) == m
