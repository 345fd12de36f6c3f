"""Times, money and names have one form in all answers of the API."""

import json
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from annotation.outside.webhooks.manage import create_webhook, send_test
from routing.delivery.deliver import deliver
from testbed.worlds import make_world
from tests.annotation.apis import Api

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
IN_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
AMOUNT = re.compile(r"-?\d+\.\d{2,}")
MONEY = {
    *(
        "human_cost",
        "expert_cost",
        "cost_per_label",
        "paid",
        "routing_saving",
        "net_saving",
        "amount",
        "cost",
    ),
    *("budget", "spent", "set_aside", "lost", "left", "by_people"),
    *("calibration_cost", "model_cost", "model_cost_at_least", "at_least", "at_most", "people_only"),
}
# What holds estimates; and the audit trail, which says what was sent.
ESTIMATES = {"figures", "measured", "promises", "references", "other_references", "data"}


def members(part: Any, place: str = "") -> Iterator[tuple[str, str, Any]]:
    """(place, name, value) of all that is in an answer, however deep, apart from estimates."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name not in ESTIMATES:
                yield place, name, value
                yield from members(value, f"{place}.{name}")
    elif isinstance(part, list):
        for value in part:
            yield place, "", value
            yield from members(value, place)


def test_times_and_money_have_one_form() -> None:
    world = make_world(60)
    world.complete(m=40)
    deliver(run=world.project.runs.get(), user=world.manager)
    world.do("deliver_run")
    webhook, _ = create_webhook(
        project=world.project, actor=world.manager, url="https://example.org/", events=["run.routed"]
    )
    sent = send_test(webhook=webhook, actor=world.manager)
    assert IN_UTC.fullmatch(json.loads(sent.payload)["timestamp"])
    api = Api(world.project, world.manager)
    person = world.annotators[0].pk
    answers = {
        path: api.get(path).json()
        for path in (
            *("", "runs/", "runs/1/", "sources/", f"sources/{world.project.sources.first().pk}/"),
            *("overview/", "progress/", "deliveries/", "jobs/", "labels/", "predictions/", "table/"),
            *("members/", f"members/{person}/", "audit/", "webhooks/", f"webhooks/{webhook.pk}/deliveries/"),
        )
    }
    answers["plan"] = api.post("plan/", epsilon="0.1", alpha="0.1", m=10, p="1").json()
    answers["outlook"] = api.post("people-runs/outlook/").json()
    times = amounts = 0
    for path, answer in answers.items():
        for place, name, value in members(answer):
            where = (path, place, name, value)
            assert "__" not in name, where
            if isinstance(value, str) and TIME.match(value):
                assert IN_UTC.fullmatch(value), where
                times += 1
            # `paid` is one amount of a run and a list in the overview, `by_people` also a yes or no.
            if name in MONEY and value is not None and not isinstance(value, bool | list):
                assert isinstance(value, str), where
                assert AMOUNT.fullmatch(value), where
                amounts += 1
    assert times > 100
    assert amounts > 60


def test_no_name_in_the_schema_is_that_of_a_query() -> None:
    import_module("hypac_site.urls")
    from drf_spectacular.generators import SchemaGenerator

    schema = SchemaGenerator().get_schema(public=True)
    names = [name for part in schema["components"]["schemas"].values() for name in part.get("properties", {})]
    assert len(names) > 300
    assert [name for name in names if "__" in name] == []
