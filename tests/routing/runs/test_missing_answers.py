"""A run is not started without its manager's knowledge where answers that are sent in are missing."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.errors import InputError
from routing.models import Run, Source
from routing.runs import start
from routing.runs.source_changes import fingerprint_now
from routing.sources.manage import save_source
from testbed.factories import make_items
from testbed.worlds import World
from tests.routing.runs.test_script_commands import PLAN, ended, run as run_command
from tests.routing.sources.test_sent_answers_runs import world_of_uploaded
from tests.routing.sources.test_usability import TYPED

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
FIELDS = {"epsilon": "0.1", "alpha": "0.1", "m": 40, "p": "0.9", "anyway": True}
SAID = "for 2 items that the run would cover (“t3”, “t7”), and none can follow once it has begun."


@pytest.fixture
def world() -> World:
    """Without answers for two of its items; too few for a start to ask about answers that cannot be used."""
    return world_of_uploaded(missing=frozenset({3, 7}))


def post(client: Client, world: World, name: str, **fields: Any) -> Any:
    client.force_login(world.manager)
    address = reverse(name, args=[world.project.slug])
    return client.post(address, {**FIELDS, **fields}, content_type="application/json")


def test_a_program_is_told_and_may_refuse_such_a_start(client: Client, world: World) -> None:
    plan = {name: value for name, value in FIELDS.items() if name != "anyway"}
    address = reverse("api_plan", args=[world.project.slug])
    client.force_login(world.manager)
    [told] = client.post(address, plan, content_type="application/json").json()["missing"]
    assert told.startswith("Outside: no answer was sent under the revision 1 ")
    assert told.endswith(SAID)
    refused = post(client, world, "api_runs", accept_missing=False)
    assert (refused.status_code, refused.json()["field"]) == (400, "accept_missing")
    assert SAID in refused.json()["detail"]
    assert not Run.objects.exists()
    started = post(client, world, "api_runs")  # as ever since v1
    assert (started.status_code, started.json()["warnings"]) == (201, [told])


def test_the_command_and_the_page_ask_first(client: Client, world: World) -> None:
    words = ("plan", world.project.slug, *PLAN, "--start", "--anyway")
    code, reason = ended(*words, user=world.manager.username)
    assert (code, SAID in reason, "--accept-missing" in reason) == (1, True, True)
    client.force_login(world.manager)
    address, typed = reverse("plan", args=[world.project.slug]), {**TYPED, "m": "40", "anyway": "on"}
    page = client.post(address, typed)
    assert page.status_code == 200
    assert SAID in page.content.decode()
    assert 'name="accept_missing"' in page.content.decode()
    assert not Run.objects.exists()
    assert client.post(address, {**typed, "accept_missing": "on"}).status_code == 302
    assert Run.objects.count() == 1


def test_items_that_come_while_sources_are_asked_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of_uploaded()

    def meanwhile(source: Source) -> str:
        make_items(world.project, 1)
        return fingerprint_now(source)

    monkeypatch.setattr(start, "fingerprint_now", meanwhile)
    plan: dict[str, Any] = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 40, "p": Decimal("0.9")}
    with pytest.raises(InputError) as caught:
        start.start_run(project=world.project, user=world.manager, accept_missing=False, **plan)
    assert caught.value.where == "accept_missing"
    assert not Run.objects.exists()


def test_a_start_that_accepts_it_goes_on(world: World) -> None:
    words = ("plan", world.project.slug, *PLAN, "--start", "--anyway", "--accept-missing", "--json")
    assert json.loads(run_command(*words, user=world.manager.username))["started"]


def test_only_what_the_run_would_cover_counts(client: Client, world: World) -> None:
    run = world.complete(m=40)
    make_items(world.project, 1)
    refused = post(client, world, "api_runs", accept_missing=False)
    left = {row.external_id for row in world.project.items.all()} - set(
        run.pool_items.filter(item__labels__isnull=False).values_list("item__external_id", flat=True)
    )
    detail = refused.json()["detail"]
    assert "“t100”" in detail
    assert ("“t3”" in detail) == ("t3" in left)


def test_a_program_starts_a_run_only_where_one_is_due(client: Client, world: World) -> None:
    started = post(client, world, "api_runs", unless_under_way=True, unless_undelivered=True)
    assert started.status_code == 201
    refused = post(client, world, "api_runs", unless_under_way=True)
    assert (refused.status_code, refused.json()["code"]) == (409, "no_run_due")
    assert refused.json()["detail"].startswith("Run 1 is not finished: ")
    Run.objects.update(state=Run.State.CANCELLED)
    assert post(client, world, "api_runs", if_new_items=True).json()["code"] == "no_run_due"
    make_items(world.project, 1)
    assert post(client, world, "api_runs", if_new_items=True).status_code == 201


def test_later_items_without_answers_are_not_taken_in_unasked(client: Client) -> None:
    world = world_of_uploaded(500)
    run = world.complete(target="population", m=200, p=Decimal(1), later_audit_share=Decimal(0))
    world.arrive(3)
    words = ("take_in", world.project.slug, 1, "--here", "--json")
    code, reason = ended(*words, user=world.manager.username)
    assert (code, "for 3 items that the run would cover (“t500”, “t501”, “t502”)" in reason) == (1, True)
    client.force_login(world.manager)
    address = reverse("api_run_take_in", args=[world.project.slug, 1])
    refused = client.post(address, {"accept_missing": False}, content_type="application/json")
    assert (refused.status_code, refused.json()["field"]) == (400, "accept_missing")
    assert not run.intakes.exists()
    told = json.loads(run_command(*words, "--accept-missing", user=world.manager.username))
    assert told["taken_in"] == 3


def test_what_is_typed_is_answered_only_where_the_page_has_a_place_for_it(
    client: Client, world: World
) -> None:
    """Of one model none can be left out: the page has no field for that."""
    client.force_login(world.manager)
    for name, part in (("plan", 'id="part-models"'), ("plan_outlook", 'id="id_leave_out_error"')):
        answer = client.get(reverse(name, args=[world.project.slug]), TYPED if name == "plan_outlook" else {})
        assert part not in answer.content.decode()
    save_source(
        project=world.project,
        user=world.manager,
        name="Second",
        backend="uploaded",
        params={"model": "second"},
        cost_per_label=Decimal(1),
    )
    outlook = client.get(reverse("plan_outlook", args=[world.project.slug]), TYPED)
    assert "id_leave_out_error" in outlook.content.decode()
