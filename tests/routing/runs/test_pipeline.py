"""The whole way of a run, from the plan to the delivered files, through the services."""

import csv
import io
import json
from decimal import Decimal

import pytest

from annotation.models import Label
from routing.core import route as core_route
from routing.core.verify import main as verify
from routing.delivery.deliver import deliver
from routing.models import Certificate, Delivery, Prediction, Route, Run, Spend
from routing.runs.certify import analyse
from routing.runs.chains import thresholds_from_json
from routing.runs.queries import run_report
from routing.runs.route import route
from testbed.worlds import World, files_of, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


def delivered(world: World, run: Run) -> dict[str, bytes]:
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    delivery = Delivery.objects.filter(run=run).order_by("-number")[0]
    return files_of(delivery)


def follows_the_rule(run: Run) -> None:
    """The routes that the database made are those of the rule as the core states it."""
    pool = run.pool_items.order_by("position").values_list("u", "v")
    u, v = zip(*pool, strict=True)
    thresholds = thresholds_from_json(run.certificate.thresholds)
    nominal = core_route.route(u, v, thresholds)
    routes = Route.objects.filter(run=run).order_by("item__pk").values_list("position", flat=True)
    assert [position - 1 for position in routes] == nominal.tolist()


@pytest.mark.parametrize(
    ("errors", "costs"),
    [
        ((lambda u: 0.2 * u,), ("1",)),
        ((lambda u: 0.5 * u, lambda u: 0.1 * u), ("1", "2")),
        ((lambda u: 0.5 * u, lambda u: 0.3 * u, lambda u: 0.1 * u), ("0.3", "1", "2")),
    ],
    ids=["two sources", "three sources", "four sources"],
)
def test_a_run_from_plan_to_verified_delivery(errors, costs, tmp_path):
    world = make_world(400, error=errors, costs=costs)
    label = world.label if len(errors) == 2 else world.finish  # one goes through the queue
    run = world.start()
    world.do("prepare_run")
    label()
    run.refresh_from_db()
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    run.refresh_from_db()
    route(run=run, user=world.manager)
    world.do("route_run")
    label()
    run.refresh_from_db()

    assert run.state == Run.State.COMPLETE
    follows_the_rule(run)
    files = delivered(world, run)
    rows = list(csv.DictReader(io.StringIO(files["labels.csv"].decode())))
    assert [row["external_id"] for row in rows] == [f"t{index}" for index in range(400)]
    assert all(row["label"] for row in rows)
    wrong = sum(row["label"] != world.truth[row["external_id"]] for row in rows)
    assert run.certificate.certified
    assert wrong <= 40  # epsilon = 0.1 of 400, fulfilled in this seeded world
    labels = set(Label.objects.values_list("item__external_id", flat=True))
    assert {row["external_id"] for row in rows if row["source"] == "person"} == labels
    for name in ("certificate.json", "draw.jsonl"):
        (tmp_path / name).write_bytes(files[name])
    assert verify([str(tmp_path / "certificate.json"), str(tmp_path / "draw.jsonl")]) == 0


def test_the_later_model_runs_only_where_it_is_needed():
    world = make_world(400)
    run = world.complete()
    first, second = run.run_sources.order_by("position")

    def answered(row):
        return set(Prediction.objects.filter(source=row.source).values_list("item_id", flat=True))

    pilot = set(run.pilot_items.values_list("item_id", flat=True))
    asked = set(run.draw.items.filter(asked=True).values_list("item_id", flat=True))
    band = set(Route.objects.filter(run=run, position=2).values_list("item_id", flat=True))
    assert len(answered(first)) == 400
    assert answered(second) == pilot | asked | band
    assert len(answered(second)) < 400


def test_net_saving_is_everything_paid_recomputed_by_hand():
    world = make_world(400)
    run = world.complete()
    report = run_report(run)

    slow = Prediction.objects.filter(source__position=2).count()
    people = Label.objects.count()
    paid = 400 * Decimal(1) + slow * Decimal(2) + people * Decimal(8)
    assert report.savings.paid == paid
    assert report.net_saving == 1 - paid / (400 * Decimal(8))
    assert report.savings.final

    asked = set(run.draw.items.filter(asked=True).values_list("item_id", flat=True))
    price = {1: 1, 2: 2, 3: 8}
    rest = [price[route.position] for route in Route.objects.filter(run=run) if route.item_id not in asked]
    assert report.routing_saving == pytest.approx(1 - Decimal(sum(rest)) / (8 * len(rest)))


def test_counts_by_source_add_up_and_agree_with_the_delivery():
    world = make_world(400)
    run = world.complete()
    counts = {count.name: count.items for count in run_report(run).counts}
    rows = list(csv.DictReader(io.StringIO(delivered(world, run)["labels.csv"].decode())))
    in_file = {name: sum(row["source"] == (name or "person") for row in rows) for name in counts}
    assert counts == in_file
    assert sum(counts.values()) == 400


def test_the_certificate_says_what_it_rests_on():
    world = make_world(300)
    run = world.analysed(m=100)
    document = json.loads(Certificate.objects.get(run=run).document)
    provenance = document["provenance"]
    assert document["pool"] == {"size": 300, "hash": run.pool_hash}
    assert document["draw"]["entropy"] == "7"
    assert [source["fingerprint"] for source in provenance["sources"]] == list(
        run.run_sources.order_by("position").values_list("fingerprint", flat=True)
    )
    assert provenance["alpha_total"] == "0.1"
    assert provenance["suggestions_shown"] is False
    assert "At most 10 %" in document["result"]["sentence"]


def test_same_labels_give_the_same_certificate_bytes():
    first = make_world(300).analysed(m=100)
    one = Certificate.objects.get(run=first).document
    first.project.delete()
    world = make_world(300)
    world.project.slug = first.project.slug
    world.project.save()
    second = world.analysed(m=100)
    assert Certificate.objects.get(run=second).document == one


def test_uncertified_run_sends_everything_to_people():
    world = make_world(120, error=(lambda u: 0.9, lambda u: 0.9))
    run = world.routed(m=60, epsilon=Decimal("0.005"))
    assert not run.certificate.certified
    assert run.certificate.thresholds == [None, None]
    assert not Route.objects.filter(run=run).exclude(position=3).exists()
    report = run_report(run)
    assert report.reason
    world.label()
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    assert Label.objects.count() == 120
    assert run_report(run).net_saving < 0


def test_every_label_is_paid_once():
    world = make_world(200)
    world.complete(m=80)
    people = Spend.objects.filter(source__isnull=True)
    assert people.count() == Label.objects.count()
    assert set(people.values_list("key", flat=True)) == {f"label:{label.pk}" for label in Label.objects.all()}


@pytest.mark.parametrize("target", ["pool", "population"])
def test_the_other_targets_go_the_same_way(target, tmp_path):
    world = make_world(400, error=(lambda u: 0.1 * u, lambda u: 0.05 * u))
    run = world.complete(m=200, target=target, epsilon=Decimal("0.15"))
    assert run.certificate.certified
    assert run.state == Run.State.COMPLETE
    if target == "population":
        pilot = set(run.pilot_items.values_list("item_id", flat=True))
        assert pilot.isdisjoint(run.draw.items.values_list("item_id", flat=True))
    (tmp_path / "certificate.json").write_text(run.certificate.document)
    (tmp_path / "draw.jsonl").write_text(run.certificate.draw_lines)
    assert verify([str(tmp_path / "certificate.json"), str(tmp_path / "draw.jsonl")]) == 0
