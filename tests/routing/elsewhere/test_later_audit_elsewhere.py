"""Items that a run takes in later, audited ones among them, labelled in another program."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Label, WorkItem
from routing.models import Run
from routing.runs.later.audit import later_audit_state
from routing.runs.later.report import later_audit_in_words
from routing.runs.later.take_in import take_in
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def taken_in() -> tuple[World, Run]:
    """A run that has people label 30 later items: all are audited that a model labels."""
    world = make_world(500)
    run = world.complete(target="population", m=200, p=Decimal(1), later_audit_share=Decimal(1))
    world.arrive(30)
    take_in(run=run, user=world.manager)
    world.do("take_in")
    run.refresh_from_db()
    return world, run


def asked(client: Client, world: World, name: str = "api_run_work") -> Any:
    client.force_login(world.manager)
    return client.get(reverse(name, args=[world.project.slug, 1]))


def tasks(client: Client, world: World) -> list[dict[str, Any]]:
    answer = asked(client, world, "api_run_work_lines")
    assert answer.status_code == 200
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]


def send(client: Client, world: World, rows: list[dict[str, Any]]) -> dict[str, Any]:
    address = reverse("api_run_work", args=[world.project.slug, 1])
    taken: dict[str, Any] = client.post(address, {"rows": rows}, content_type="application/json").json()
    return taken


def test_audited_items_go_out_among_the_others_and_come_back(
    client: Client, taken_in: tuple[World, Run]
) -> None:
    world, run = taken_in
    assert run.later_audit_batch is not None
    told = asked(client, world).json()
    waiting = WorkItem.objects.filter(batch__project=world.project, state=WorkItem.State.OPEN)
    assert (told["waiting"], told["blind"]) == (waiting.count(), False)
    assert any("audit what models label" in words for words in told["conditions"])
    out = tasks(client, world)
    # In one order, by which nobody can tell which of them are audited.
    assert [task["item"] for task in out] == list(
        waiting.order_by("priority", "order").values_list("item", flat=True)
    )
    assert set(run.later_audit_batch.work_items.values_list("item", flat=True)) <= {
        task["item"] for task in out
    }
    assert {tuple(task) for task in out} == {("item", "name", "text", "fields", "image")}
    ann = world.annotators[0].username
    rows = [{"item": one["item"], "value": world.truth[one["name"]], "annotator": ann} for one in out]
    assert send(client, world, rows[:1])["stored"] == 1
    assert send(client, world, rows) == {"stored": len(rows) - 1, "known": 1, "refused": []}
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    assert later_audit_state(run).audited == 30
    audited = Label.objects.filter(work_item__batch=run.later_audit_batch).count()
    [*_, elsewhere] = later_audit_in_words(run, later_audit_state(run))
    assert f"in another program: {audited}." in elsewhere


def test_who_sees_model_output_labels_nothing_there_and_learns_not_what_is_audited(
    client: Client, taken_in: tuple[World, Run]
) -> None:
    world, run = taken_in
    assert run.later_audit_batch is not None
    audited = set(run.later_audit_batch.work_items.values_list("item", flat=True))
    out = tasks(client, world)
    assert 0 < len(audited) < len(out)
    manager = world.manager.username
    rows = [{"item": one["item"], "value": "cat", "annotator": manager} for one in out]
    taken = send(client, world, rows)
    assert taken["stored"] == 0
    told = [(refused["item"], refused["name"]) for refused in taken["refused"]]
    assert told == [(one["item"], one["name"]) for one in out]
    [reason] = {refused["reason"] for refused in taken["refused"]}  # of all the same
    assert f"role of {manager}" in reason


def test_a_withdrawn_audit_is_given_out_no_more(client: Client, taken_in: tuple[World, Run]) -> None:
    world, run = taken_in
    audit = run.later_audit_batch
    assert audit is not None
    routed = {task["item"] for task in tasks(client, world)} - set(
        audit.work_items.values_list("item", flat=True)
    )
    type(audit).objects.filter(pk=audit.pk).update(withdrawn_at=run.created_at)
    assert routed
    assert {task["item"] for task in tasks(client, world)} == routed
