"""The price list of a project: lines, the sources that follow them, and runs that do not."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.errors import ConflictError, InputError
from annotation.models import AuditEvent
from routing.models import ModelPrice, Source
from routing.sources.manage import save_source
from routing.sources.prices import delete_price, save_price
from testbed.worlds import World, make_world

pytestmark = pytest.mark.django_db
PRICES = {"input": "0.15", "output": "0.60"}
COLUMNS = {"tokens_in_column": "in", "tokens_out_column": "out"}


@pytest.fixture
def world() -> World:
    def tokens(index: int, row: dict[str, str]) -> None:
        row["in"], row["out"] = "1000", "100"

    return make_world(40, change=tokens)


def add(world: World, **fields: Any) -> ModelPrice:
    line = {"name": "small", "cost_function": "api_price", "prices": PRICES}
    return save_price(project=world.project, user=world.manager, **(line | fields))


def named(world: World, price: ModelPrice | None) -> Source:
    """The first source, charged by this line."""
    source = world.project.sources.get(position=1)
    return save_source(
        project=world.project,
        user=world.manager,
        source=source,
        name=source.name,
        backend="recorded",
        params={**source.params, **COLUMNS},
        cost_per_label=source.cost_per_label,
        price=price,
    )


def test_a_source_is_charged_by_its_line_and_follows_it_and_a_run_does_not(world) -> None:
    price = add(world)
    source = named(world, price)
    assert (source.cost_function, source.prices) == ("api_price", {"input": "0.15", "output": "0.60"})
    run = world.start(m=20)
    save_price(
        project=world.project,
        user=world.manager,
        price=price,
        name="small, since May",
        cost_function="tokens",
        prices={"per_token": "0.5"},
    )
    source.refresh_from_db()
    assert (source.cost_function, source.prices) == ("tokens", {"per_token": "0.5"})
    frozen = run.run_sources.get(position=1)
    assert (frozen.cost_function, frozen.prices["output"]) == ("api_price", "0.60")
    world.do("prepare_run")
    costs = set(source.predictions.values_list("cost", flat=True))
    assert costs == {(1000 * Decimal("0.15") + 100 * Decimal("0.60")) / 10**6}
    event = AuditEvent.objects.get(action="price.changed")
    assert event.data["sources"] == ["Model 1"]


@pytest.mark.parametrize(
    ("fields", "where", "words"),
    [
        ({"name": "  "}, "name", "needs a name"),
        ({"name": "x" * 101}, "name", "at most 100"),
        ({"cost_function": "flat", "prices": {}}, "cost_function", "stands with the source itself"),
        ({"cost_function": "magic"}, "cost_function", "api_price"),
        ({"prices": {"input": "1"}}, "output", "price of the output tokens is needed"),
        ({"prices": {**PRICES, "per_hour": "1"}}, "per_hour", "has no price 'per_hour'"),
        ({"prices": {**PRICES, "output": "-1"}}, "output", "at least 0"),
        ({"prices": {**PRICES, "output": "NaN"}}, "output", "at least 0"),
    ],
)
def test_what_is_no_price_is_refused(world, fields, where, words) -> None:
    with pytest.raises(InputError, match=words) as caught:
        add(world, **fields)
    assert caught.value.where == where
    assert not ModelPrice.objects.exists()


def test_two_lines_have_two_names(world) -> None:
    add(world)
    with pytest.raises(InputError, match="Another line"):
        add(world)
    add(world, name="other")
    save_price(
        project=world.project,
        user=None,
        price=ModelPrice.objects.get(name="small"),
        name="small",
        cost_function="api_price",
        prices=PRICES,
    )


def test_a_line_cannot_count_what_a_source_does_not_tell(world) -> None:
    price = add(world)
    named(world, price)
    with pytest.raises(InputError, match="Model 1, which is charged by this line, do not tell how long"):
        save_price(
            project=world.project,
            user=None,
            price=price,
            name="small",
            cost_function="time",
            prices={"per_hour": "2"},
        )
    price.refresh_from_db()
    assert price.cost_function == "api_price"


def test_a_line_that_a_source_names_stays(world) -> None:
    price = add(world)
    named(world, price)
    with pytest.raises(ConflictError, match="small is the price of Model 1"):
        delete_price(price=price, user=world.manager)
    named(world, None)
    delete_price(price=price, user=world.manager)
    assert not ModelPrice.objects.exists()


class TestPages:
    @pytest.fixture
    def client(self, world: World) -> Client:
        client = Client()
        client.force_login(world.manager)
        return client

    def test_a_line_is_added_changed_and_removed(self, world, client) -> None:
        slug = world.project.slug
        assert reverse("prices", args=[slug]) in client.get(reverse("sources", args=[slug])).content.decode()
        fields = {"name": "<b>small</b>", "cost_function": "api_price", **PRICES, "per_hour": "7"}
        assert client.post(reverse("prices", args=[slug]), fields).status_code == 302
        price = ModelPrice.objects.get()
        assert price.prices == PRICES
        page = client.get(reverse("prices", args=[slug])).content.decode()
        assert "&lt;b&gt;small" in page
        assert "0.15" in page
        edit = reverse("price_edit", args=[slug, price.pk])
        assert 'value="0.60"' in client.get(edit).content.decode()
        refused = client.post(edit, {**fields, "output": "x"}).content.decode()
        assert "must be a number such as 0.002" in refused
        client.post(edit, {**fields, "output": "0.70"})
        price.refresh_from_db()
        assert price.prices["output"] == "0.70"
        client.post(reverse("price_delete", args=[slug, price.pk]))
        assert not ModelPrice.objects.exists()

    def test_through_the_api(self, world, client) -> None:
        url = reverse("api_prices", args=[world.project.slug])
        line = {"name": "gpu", "cost_function": "time", "prices": {"per_hour": "1.20"}}
        made = client.post(url, line, content_type="application/json")
        assert made.status_code == 201
        one = reverse("api_price", args=[world.project.slug, made.json()["id"]])
        changed = client.put(one, {**line, "prices": {"per_hour": "1.30"}}, content_type="application/json")
        assert changed.json()["prices"] == {"per_hour": "1.30"}
        assert client.get(url).json()["results"] == [changed.json()]
        wrong = client.put(one, {**line, "prices": {}}, content_type="application/json")
        assert (wrong.status_code, wrong.json()["field"]) == (400, "per_hour")
        assert client.delete(one).status_code == 204
        assert client.get(one).status_code == 404
