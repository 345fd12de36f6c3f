"""What each reference would cost, beside the plan: on its page, in the API and by the command."""

import io
import json
from decimal import Decimal

import pytest
from django.core.management import call_command
from django.urls import reverse

from annotation.models import Label
from routing.core.reference.ways import NAMES
from routing.runs.measure import start_measurement
from routing.runs.plan import outlook_of_plan
from routing.runs.reference_outlook import references_of_plan
from testbed.experts import ExpertWorld

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
PLAN = {"epsilon": "0.1", "alpha": "0.1", "m": 160}
TYPED = PLAN | {"epsilon": "10", "alpha": "10"}  # a page takes percent


@pytest.fixture
def expert_world() -> ExpertWorld:
    return ExpertWorld(400, human_cost="40")


def measure(world: ExpertWorld) -> None:
    found = start_measurement(project=world.world.project, user=world.world.manager, entropy=5, size=80)
    assert found.usable is not None


def seen_by(world: ExpertWorld, **fields):
    plan = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 160, "p": None} | fields
    return references_of_plan(world.world.project, outlook_of_plan(project=world.world.project, **plan))


def test_nothing_is_foretold_before_models_were_measured_or_where_no_expert_can_be(expert_world) -> None:
    assert seen_by(expert_world) is None
    measure(expert_world)
    assert seen_by(expert_world) is not None
    assert seen_by(expert_world, target="population") is None


def test_the_page_the_api_and_the_command_tell_the_same(expert_world, client) -> None:
    measure(expert_world)
    project, manager = expert_world.world.project, expert_world.world.manager
    client.force_login(manager)
    body = client.post(
        reverse("api_plan", args=[project.slug]), PLAN, content_type="application/json"
    ).json()["references"]
    assert [row["error"] for row in body["assumptions"]] == [0.02, 0.02, 0.05, 0.05, 0.08, 0.08]
    assert {way["reference"] for way in body["assumptions"][0]["ways"]} <= set(NAMES)
    page = client.get(reverse("plan", args=[project.slug]), TYPED).content.decode()
    assert "Whose label is right: what it costs" in page
    assert "Left empty: 120 USD" in page
    out = io.StringIO()
    call_command(
        "plan", project.slug, "--user", manager.username, "--epsilon", "0.1", "--alpha", "0.1", "--m", "160",
        "--json", stdout=out,
    )  # fmt: skip
    assert json.loads(out.getvalue())["references"]["assumptions"] == body["assumptions"]


def test_with_an_expert_in_the_plan_her_price_counts_and_no_other_saving_is_foretold(
    expert_world, client
) -> None:
    measure(expert_world)
    usual = seen_by(expert_world)
    assert usual.expert_cost == 120
    fields = {"reference": "expert", "expert": expert_world.expert.username, "expert_cost": Decimal(400)}
    dear = seen_by(expert_world, **fields)
    assert dear.expert_cost == 400
    assert dear.chosen.cheapest.cost > usual.chosen.cheapest.cost
    client.force_login(expert_world.world.manager)
    address = reverse("plan_outlook", args=[expert_world.world.project.slug])
    page = client.get(address, TYPED | {name: str(value) for name, value in fields.items()}).content.decode()
    assert "What they foretell of each reference" in page
    assert "Expected net saving" not in page


def test_a_second_run_takes_new_items_and_begins_with_what_the_first_found_of_people(expert_world) -> None:
    first = expert_world.finish(expert_world.routed(expert_world.start(m=160)))
    assert first.state == "complete"
    expert_world.more_items(300)
    measure(expert_world)
    found = seen_by(expert_world)
    assert found.chosen.estimated
    assert found.assumptions[0] is found.chosen
    assert "when an expert last looked" in found.recommendation
    assert len(found.assumptions) == 7
    second = expert_world.start(entropy=21, m=160)
    # People's earlier labels are right by nobody's word but their own: the promise is about the new items.
    assert second.whole_size is None
    assert second.pool_size == expert_world.world.project.items.count() - 400 + left_over(first)
    second = expert_world.finish(expert_world.routed_from(expert_world.asked(second)))
    assert second.state == "complete"
    files = expert_world.delivered(second)
    before = 700 - second.pool_size
    assert f"Labelled before the run, of these, and not covered by its certificate: {before}" in (
        files["README.md"].decode()
    )
    rows = [json.loads(line) for line in files["labels.jsonl"].splitlines()]
    covered = [row for row in rows if row["certificate_id"] == second.certificate.sha256]
    assert len(covered) == second.pool_size
    truth = expert_world.world.truth
    assert sum(row["label"] != truth[row["external_id"]] for row in covered) <= 0.1 * second.pool_size


def left_over(run) -> int:
    """Items of the run's pool that got no label by people."""
    labelled = Label.objects.filter(item__project=run.project, item__position__lt=400)
    return 400 - labelled.values("item").distinct().count()
