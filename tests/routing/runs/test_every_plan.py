"""Each rule, bound, target, loss and way of asking: a certificate that anybody can verify, and figures."""

import json
import logging
from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.models import Item
from routing.core.verify import main as verify
from routing.models import Run
from routing.runs.queries import run_report
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]
OWN = "tests.routing.runs.own_loss:HALF"
ASK = {"p": None, "p_column": "ask"}
RULES = {
    *("pointwise_argmin", "lexicographic", "pac_labeling_1", "pac_labeling_2"),
    *("cse", "coannotating", "best_single_model", "people_only"),
    *("bargain_1", "bargain_2", "lotus_1", "lotus_2"),
}


@pytest.fixture
def world(settings) -> World:
    settings.HYPAC_LOSSES = [OWN]
    world = make_world(300, error=(lambda u: 0.4 * u * u, lambda u: 0.2 * u * u))
    items = list(world.project.items.order_by("position"))
    for number, item in enumerate(items):
        item.data["ask"] = ("0.95", "0.8")[number % 2]
    Item.objects.bulk_update(items, ["data"])
    return world


@pytest.mark.parametrize(
    "plan",
    [
        {"target": "dataset"},
        {"target": "pool", "rule": "multi_chain"},
        {"target": "population", "m": 150},
        {"rule": "split_fixed_sequence", "split_share": Decimal("0.25")},
        {"rule": "split_fixed_sequence", "target": "population"},
        {"target": "dataset", "bound": "betting_upper"},
        {"target": "pool", "bound": "hoeffding_bentkus"},
        {"target": "population", "bound": "empirical_bernstein"},
        {"target": "population", "bound": "betting_upper", "rule": "split_fixed_sequence"},
        {"target": "dataset", "loss": OWN},
        {"target": "population", "loss": OWN, "rule": "multi_chain"},
        {"target": "dataset", "bound": "hoeffding", **ASK},
        {"target": "population", "bound": "betting_upper", **ASK},
        {"target": "pool", "loss": OWN, **ASK},
    ],
    ids=lambda plan: " ".join(str(value) for value in plan.values()),
)
def test_a_plan_becomes_a_certificate_that_verifies(world, client, tmp_path, caplog, plan):
    caplog.set_level(logging.ERROR)
    run = world.analysed(**({"m": 240, "epsilon": Decimal("0.15")} | plan))
    assert not caplog.records  # the figures, too, could be computed
    assert run.chains == [] if run.slices else run.slices is None
    client.force_login(world.manager)
    for name, address in (("certificate.json", "run_certificate"), ("draw.jsonl", "run_draw")):
        answer = client.get(reverse(address, args=[world.project.slug, run.number]))
        (tmp_path / name).write_bytes(answer.getvalue())
    allowed = ["--allow-loss", OWN] if run.loss == OWN else []
    names = [str(tmp_path / "certificate.json"), str(tmp_path / "draw.jsonl"), *allowed]
    assert verify(names) == 0
    if run.loss == OWN:
        assert verify(names[:2]) == 2
    document = json.loads(run.certificate.document)
    assert (document["plan"]["rule"], document["plan"]["bound"]) == (run.rule, run.bound)

    page = client.get(reverse("run_evidence", args=[world.project.slug, run.number])).content.decode()
    report = run_report(run)
    assert {row.rule for row in report.comparisons} == RULES
    assert report.saving_by_epsilon["points"]
    assert [row.name for row in report.reliability][:1] == ["Model 1"]
    assert report.binary is (run.loss != OWN)
    for title in ("Risk along the chain", "Saving against epsilon", "How well the scores know"):
        assert page.count(f">{title}</h2>") == 1
    assert page.count("<canvas") == 4
    assert page.count("The same as a table") == 4


def test_a_learnt_chain_is_learnt_from_the_first_labels_and_tested_on_the_others(world):
    run = world.analysed(rule="split_fixed_sequence", m=240)
    assert run.slices["sizes"]
    document = json.loads(run.certificate.document)
    assert document["slices"] == run.slices
    assert [chain["name"] for chain in document["chains"]] == ["learnt"]


def test_a_baseline_that_needs_scores_nobody_has_is_refused_in_words(world):
    run = world.analysed(target="pool", bound="hoeffding", m=240, **ASK)
    refused = {row.rule: row.refusal for row in run_report(run).comparisons if row.refusal}
    assert set(refused) == {"pac_labeling_2", "cse", "bargain_1", "bargain_2", "lotus_1", "lotus_2"}
    assert all("own score" in refusal or "probability" in refusal for refusal in refused.values())


def test_figures_that_cannot_be_computed_do_not_stand_in_the_way(world, client, monkeypatch, caplog):
    def broken(analysis):
        raise ZeroDivisionError("figures")

    monkeypatch.setattr("routing.runs.analysis.run_diagnostics", broken)
    run = world.analysed(m=240)
    assert run.state == Run.State.ANALYSED
    assert "could not be computed" in caplog.text
    client.force_login(world.manager)
    answer = client.get(reverse("run", args=[world.project.slug, run.number]))
    assert answer.status_code == 200
    assert "What is certified" in answer.content.decode()


@pytest.mark.parametrize("models", [1, 3])
@pytest.mark.parametrize("rule", ["fixed_sequence", "multi_chain", "split_fixed_sequence"])
def test_any_number_of_models_has_its_figures(client, caplog, models, rule):
    caplog.set_level(logging.ERROR)
    chances = [lambda u, k=k: 0.5 * u * u / 2**k for k in range(models)]
    world = make_world(300, error=chances, costs=[str(2**k) for k in range(models)], human_cost="32")
    run = world.analysed(m=240, rule=rule)
    assert not caplog.records
    client.force_login(world.manager)
    page = client.get(reverse("run_evidence", args=[world.project.slug, run.number])).content.decode()
    assert page.count(">Risk along the chain</h2>") == 1
    assert "Which thresholds would pass" not in page
    assert {row.rule for row in run_report(run).comparisons} == RULES
    assert len(run_report(run).reliability) == models
