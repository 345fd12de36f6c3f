"""How deliveries tell later items from those of the pool, and audited ones from others."""

import json
from typing import Any

import pytest

from hypac_client.frames import table_of
from routing.delivery.deliver import deliver
from routing.models import Delivery
from routing.ports import CORRECTED
from routing.runs.certify import mark_invalid
from testbed.worlds import files_of
from tests.routing.runs.test_later_audit import a_run, take

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


def test_a_delivery_tells_later_items_and_audited_ones_apart() -> None:
    world, run = a_run("0.5")
    deliver(run=run, user=world.manager, formats=["jsonl"])
    world.do("deliver_run")
    before = lines_of(Delivery.objects.get())
    assert not {"taken_in", "audited"} & before[0].keys()
    later = {item.external_id for item in world.arrive(60)}
    take(world, run)
    deliver(run=run, user=world.manager, formats=["jsonl"])
    world.do("deliver_run")
    # Not before people have labelled them: whoever labels knows nothing of it, and nobody else.
    assert not any(line["audited"] for line in lines_of(Delivery.objects.latest("pk")))
    world.label()
    formats = ["jsonl", "json", "csv", "parquet", "doccano", "manifest"]
    deliver(run=run, user=world.manager, formats=formats)
    world.do("deliver_run")
    delivery = Delivery.objects.latest("pk")
    lines = {line["external_id"]: line for line in lines_of(delivery)}
    assert {name for name, line in lines.items() if line["taken_in"] == 1} == later
    assert {line["taken_in"] for line in lines.values()} == {1, None}
    covered = [line for line in lines.values() if line["certificate_id"] and line["taken_in"] is None]
    assert len(covered) == run.pool_size
    asked = set(run.later_audit_batch.work_items.values_list("item__external_id", flat=True))
    assert {name for name, line in lines.items() if line["audited"]} == asked
    assert {line["audited"] for name, line in lines.items() if name not in later} == {None}
    files = files_of(delivery)
    for name in ("labels.jsonl", "labels.json", "labels.csv", "labels.parquet"):
        table = table_of(files[name], name)
        assert table["taken_in"].eq(1).sum() == 60, name
        assert table["audited"].fillna(False).sum() == len(asked), name
    assert "`taken_in`" in files["README.md"].decode()
    mark_invalid(run=run, why=CORRECTED, params={"item": "t1"}, actor=None)
    deliver(run=run, user=world.manager, formats=["jsonl"])
    world.do("deliver_run")
    card = files_of(Delivery.objects.latest("pk"))["README.md"].decode()
    assert "no certificate covers them" in card
    assert "They are covered as long as" not in card


def lines_of(delivery: Delivery) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files_of(delivery)["labels.jsonl"].decode().splitlines()]
