"""A run in which several people answer about some of the items: from the plan to the delivery."""

import csv
import io
import json
import random
from copy import deepcopy
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.labelling.labels_of_record import answers_of, disagreements
from annotation.models import Item, Label, Settlement, User, WorkBatch, WorkItem
from annotation.projects.manage import update_project
from routing.core.verify import main as verify
from routing.models import Run, Spend
from routing.runs.certify import analyse
from routing.runs.label_counts import labels_by_source
from routing.runs.plan import outlook_of_plan
from routing.runs.pool import pool_of
from routing.runs.queries import run_report
from routing.runs.route import route
from routing.runs.spending import paid_by, savings
from testbed.factories import add_member
from testbed.worlds import CHOICES, World, make_world
from tests.conftest import Stored
from tests.routing.runs.test_pipeline import delivered

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]
State = WorkItem.State
PLAN = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 60, "p": Decimal("0.9")}


def make_crowd(size: int = 150, **fields: object) -> World:
    """A world with a third person, and three people on half of the items."""
    world = make_world(size, error=(lambda u: 0.9 * u,), costs=("1",))
    world.annotators.append(add_member(world.project))
    settings = {"overlap": 3, "overlap_share": Decimal("0.5"), **fields}
    update_project(project=world.project, user=world.manager, **settings)
    return world


def label(world: World, *, wrong: float = 0.5, seed: int = 5) -> None:
    """Everybody labels what waits for them, and errs so often about items of which several are asked."""
    chance = random.Random(seed)
    for user in world.annotators:
        while task := queue.claim(project=world.project, user=user):
            work_item, truth = task.work_item, world.truth[task.item.external_id]
            several = WorkItem.objects.filter(batch=work_item.batch, item=work_item.item, slot=1).exists()
            if several and chance.random() < wrong:
                truth = chance.choice([name for name in CHOICES if name != truth])
            submit(world, user, task, truth)


def submit(world: World, user: User, task: queue.LeasedItem, value: object) -> Label:
    world.keys += 1
    return queue.submit(
        user=user,
        work_item_id=task.work_item.pk,
        token=task.token,
        value=value,
        idempotency_key=f"key-{world.keys}-of-{world.project.pk}",
    )


def correct(world: World, label: Label, value: object) -> Label:
    world.keys += 1
    return queue.correct(
        user=label.annotator, label_id=label.pk, value=value, idempotency_key=f"c{world.keys}"
    )


def decide(world: World) -> int:
    """The manager decides about everything on which people differ; returns how many items that was."""
    rows = list(disagreements(world.project, world.manager))
    for row in rows:
        truth = world.truth[row.item.external_id]
        queue.adjudicate(batch=row.batch, item=row.item, actor=world.manager, value=truth)
    return len(rows)


def calibrated(world: World, **fields: object) -> Run:
    run = world.start(m=60, **fields)
    world.do("prepare_run")
    label(world)
    run.refresh_from_db()
    return run


def analysed(world: World) -> Run:
    run = calibrated(world)
    decide(world)
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    run.refresh_from_db()
    return run


@pytest.fixture(scope="module")
def _crowd(stored: Stored) -> tuple[World, Run]:
    def make() -> tuple[World, Run]:
        world = make_crowd()
        return world, analysed(world)

    return stored(make)


@pytest.fixture
def crowd(_crowd: tuple[World, Run], db: None) -> tuple[World, Run]:
    """A crowd whose run is analysed, made once."""
    return deepcopy(_crowd)


def routed(world: World, run: Run) -> Run:
    route(run=run, user=world.manager)
    world.do("route_run")
    run.refresh_from_db()
    assert run.routed_batch is not None
    return run


@pytest.mark.database
def test_a_run_with_overlap_from_plan_to_verified_delivery(tmp_path) -> None:
    world = make_crowd()
    run = calibrated(world)
    assert (run.overlap, run.overlap_share, run.cost_per_item) == (3, Decimal("0.5"), Decimal(16))
    with pytest.raises(ConflictError, match="People differ about"):
        analyse(run=run, user=world.manager)
    run.refresh_from_db()
    assert run.state == Run.State.CALIBRATING
    adjudicated = decide(world)
    assert adjudicated
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    run.refresh_from_db()
    route(run=run, user=world.manager)
    world.do("route_run")
    label(world, seed=6)
    run.refresh_from_db()
    assert run.state == Run.State.LABELLING  # people differ about some
    later = decide(world)
    assert later
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE

    files = delivered(world, run)
    rows = list(csv.DictReader(io.StringIO(files["labels.csv"].decode())))
    assert [row["external_id"] for row in rows] == [f"t{index}" for index in range(150)]
    assert all(row["label"] for row in rows)
    people = [row for row in rows if row["source"] == "person"]
    for row in people:
        expected = recounted(world, row["external_id"])
        assert row["label"] == expected[0]
        assert row["annotator"] == ", ".join(expected[1])
        assert row["settled_by"] == expected[2]
    methods = [row["settled_by"] for row in rows]
    assert methods.count("adjudicated") == adjudicated + later
    assert {"", "majority", "adjudicated"} == set(methods)
    for name in ("certificate.json", "draw.jsonl"):
        (tmp_path / name).write_bytes(files[name])
    assert verify([str(tmp_path / "certificate.json"), str(tmp_path / "draw.jsonl")]) == 0
    provenance = json.loads(files["certificate.json"])["provenance"]
    batch = run.calibration_batch
    assert provenance["people_cost_per_label"] == "8"
    assert provenance["overlap"] == {
        "people": 3,
        "share": "0.5",
        "people_cost_per_item": "16",
        "items_with_several": batch.work_items.filter(slot=1).count(),
        "answers": batch.work_items.count(),
        "settled_by": {
            "majority": batch.work_items.filter(slot=1).count() - adjudicated,
            "adjudicated": adjudicated,
        },
        "outside_calibration": "majority",
    }


def row_of(world: World, run: Run, item: Item) -> dict[str, str]:
    files = delivered(world, run)
    rows = csv.DictReader(io.StringIO(files["labels.csv"].decode()))
    return next(row for row in rows if row["external_id"] == item.external_id)


def recounted(world: World, external_id: str) -> tuple[str, list[str], str]:
    """Label of record, who answered, and what settled it, by other means."""
    item = Item.objects.get(project=world.project, external_id=external_id)
    slots = WorkItem.objects.filter(item=item).order_by("slot")
    labels = [slot.labels.get(superseded_by__isnull=True) for slot in slots]
    names = [label.annotator.username for label in labels]
    values = [label.value for label in labels]
    if len(values) == 1:
        return values[0], names, ""
    most = max(values, key=values.count)
    if 2 * values.count(most) > len(values):
        return most, names, "majority"
    return str(world.truth[external_id]), names, "adjudicated"


def test_every_answer_is_paid_and_people_for_everything_counts_them(crowd: tuple[World, Run]) -> None:
    world, run = crowd
    routed(world, run)
    label(world, seed=6)
    decide(world)
    run.refresh_from_db()
    labels = Label.objects.count()
    people = Spend.objects.filter(run=run, source__isnull=True)
    assert people.count() == labels == WorkItem.objects.count()
    assert {row.amount for row in people} == {Decimal(8)}
    found = savings(run, paid_by(run))
    assert found.people_only == 150 * 16
    assert found.paid == labels * 8 + 150
    assert found.net == 1 - found.paid / found.people_only
    counts = labels_by_source(run)
    assert sum(count.items for count in counts) == 150
    assert counts[-1].items == WorkItem.objects.filter(slot=0).count()
    assert counts[-1].cost_per_label == 16
    document = json.loads(run.certificate.document)
    assert document["plan"]["costs"] == ["1", "16"]
    assert run_report(run).plan[-1][1] == "3 on 50 % of the items, one on the others"


def test_the_outlook_counts_answers_and_says_where_people_are_too_few() -> None:
    world = make_crowd()
    world.project.memberships.exclude(user__in=world.annotators).update(role="viewer")
    seen = outlook_of_plan(project=world.project, **PLAN)
    assert seen.people_per_item == 2
    assert seen.answers == 108  # 60 * 0.9 items, 2 people each
    assert seen.calibration_cost == 108 * 8
    assert seen.people_only == 150 * 16
    assert not [warning for warning in seen.warnings if "may label" in warning]
    world.project.memberships.filter(user=world.annotators[0]).update(is_active=False)
    assert any(
        "only 2 may label" in warning for warning in outlook_of_plan(project=world.project, **PLAN).warnings
    )
    update_project(project=world.project, user=world.manager, overlap=1)
    one = outlook_of_plan(project=world.project, **PLAN)
    assert (one.answers, one.calibration_cost, one.people_only) == (None, 54 * 8, 150 * 8)


def test_the_project_may_change_and_the_run_stays_as_it_was(crowd: tuple[World, Run]) -> None:
    world, run = crowd
    update_project(project=world.project, user=world.manager, overlap=1, human_cost=Decimal(2))
    route(run=run, user=world.manager)
    world.do("route_run")
    run.refresh_from_db()
    assert run.routed_batch.overlap == 3
    assert run.routed_batch.work_items.filter(slot=2).exists()
    assert run.cost_per_item == 16


def test_without_overlap_a_certificate_says_nothing_of_it() -> None:
    world = make_world(150, error=(lambda u: 0.25 * u,), costs=("1",))
    run = world.complete(m=60)
    document = json.loads(run.certificate.document)
    assert "overlap" not in document["provenance"]
    assert document["plan"]["costs"] == ["1", "8"]
    of_it = {"batch__project": world.project}
    assert not WorkItem.objects.filter(slot__gte=1, **of_it).exists()
    assert not Settlement.objects.filter(**of_it).exists()


class TestAfterTheLock:
    @pytest.mark.database
    def test_a_correction_that_leaves_the_record_breaks_nothing(self, crowd: tuple[World, Run]) -> None:
        world, run = crowd
        settlement = run.calibration_batch.settlements.filter(method="majority").first()
        labels = list(Label.objects.filter(item=settlement.item).order_by("work_item__slot"))
        same = [label for label in labels if label.value == settlement.value]
        other = [label for label in labels if label.value != settlement.value]
        if not other:  # all agreed: one of three may think again
            correct(world, same[0], next(name for name in CHOICES if name != settlement.value))
        else:
            correct(world, other[0], settlement.value)
        run.refresh_from_db()
        assert run.invalid_reasons == []

    @pytest.mark.database
    @pytest.mark.parametrize("which", ["calibration_batch", "routed_batch"])
    def test_one_that_opens_an_item_again_leaves_it_blank(self, which: str, crowd: tuple[World, Run]) -> None:
        world, run = crowd
        routed(world, run)
        label(world, seed=6)
        decide(world)
        batch = getattr(run, which)
        settlement = batch.settlements.filter(method="majority").first()
        for answer, value in zip(answers_of(batch, settlement.item), CHOICES, strict=True):
            correct(world, answer, value)
        run.refresh_from_db()
        assert run.state == Run.State.COMPLETE
        # Only what a certificate rests on makes it invalid; only what is not locked waits for a reviewer.
        locked = which == "calibration_batch"
        assert (settlement.item.external_id in " ".join(run.broken_by)) is locked
        assert disagreements(world.project, world.manager).exists() is not locked
        row = row_of(world, run, settlement.item)
        assert (row["label"], row["reason"]) == ("", "people differ about it, and nobody has decided")
        batch.refresh_from_db()
        queue.adjudicate(
            batch=batch, item=settlement.item, actor=world.manager, value=settlement.value, confirmed=locked
        )
        row = row_of(world, run, settlement.item)
        assert (row["label"], row["settled_by"]) == (settlement.value, "adjudicated")

    def test_a_server_whose_clock_is_behind_changes_no_record_unseen(self, crowd: tuple[World, Run]) -> None:
        world, run = crowd
        batch = run.calibration_batch
        WorkBatch.objects.filter(pk=batch.pk).update(locked_at=timezone.now() + timedelta(hours=1))
        settlement = batch.settlements.filter(method="majority").first()
        for answer, value in zip(answers_of(batch, settlement.item), CHOICES, strict=True):
            correct(world, answer, value)
        run.refresh_from_db()
        assert settlement.item.external_id in " ".join(run.broken_by)

    def test_a_single_answer_counts_as_before(self, crowd: tuple[World, Run]) -> None:
        world, run = crowd
        several = WorkItem.objects.filter(slot=1).values("item")
        label = Label.objects.exclude(item__in=several).first()
        correct(world, label, next(name for name in CHOICES if name != label.value))
        run.refresh_from_db()
        assert "was corrected after" in run.broken_by[0]


class TestTheRest:
    def test_dawid_skene_settles_what_is_routed_and_completes_the_run(self) -> None:
        world = make_crowd(consensus="dawid_skene")
        run = routed(world, analysed(world))
        assert not run.calibration_batch.settlements.filter(method="dawid_skene").exists()
        label(world, seed=6, wrong=0.6)
        run.refresh_from_db()
        assert run.state == Run.State.LABELLING
        assert disagreements(world.project, world.manager).exists()
        world.do("settle_run")
        run.refresh_from_db()
        assert run.state == Run.State.COMPLETE
        assert run.routed_batch.settlements.filter(method="dawid_skene").exists()
        assert not disagreements(world.project, world.manager).exists()

    def test_an_item_given_up_with_answers_has_no_label(self) -> None:
        world = make_crowd()
        run = world.start(m=60)
        world.do("prepare_run")
        run.refresh_from_db()
        work_item = run.calibration_batch.work_items.filter(slot=1).order_by("order").first()
        first = run.calibration_batch.work_items.get(item=work_item.item, slot=0)
        claimed = queue.claim(project=world.project, user=world.annotators[0])
        while claimed.item != work_item.item:
            submit(world, world.annotators[0], claimed, world.truth[claimed.item.external_id])
            claimed = queue.claim(project=world.project, user=world.annotators[0])
        submit(world, world.annotators[0], claimed, "cat")
        waiting = WorkItem.objects.filter(batch=first.batch, item=first.item, state=State.OPEN).first()
        queue.give_up(work_item=waiting, actor=world.manager)
        label(world)
        decide(world)
        analyse(run=run, user=world.manager)
        world.do("analyse_run")
        run.refresh_from_db()
        document = json.loads(run.certificate.document)
        assert document["provenance"]["unlabelable"] == 1
        rows = [json.loads(line) for line in run.certificate.draw_lines.splitlines()]
        row = next(row for row in rows if row["item_id"] == work_item.item.external_id)
        assert (row["asked"], row["label"]) == (True, None)

    @pytest.mark.database
    def test_a_cancelled_run_leaves_what_is_not_settled_to_the_next_pool(self) -> None:
        from routing.runs.cancel import cancel_run

        world = make_crowd()
        run = calibrated(world)
        differ = set(disagreements(world.project, world.manager).values_list("item", flat=True))
        asked = set(run.calibration_batch.work_items.values_list("item", flat=True))
        assert differ
        cancel_run(run=run, user=world.manager)
        assert not disagreements(world.project, world.manager).exists()
        pool = set(pool_of(world.project, "dataset").values_list("pk", flat=True))
        assert pool & asked == differ
        assert len(pool) == 150 - len(asked) + len(differ)
        seen = outlook_of_plan(project=world.project, **PLAN)
        assert seen.plan.data_set_size == 150


def test_the_audit_trail_does_not_tell_what_is_in_the_calibration_set() -> None:
    world = make_crowd()
    world.start(**PLAN)
    world.do("prepare_run")
    label(world, wrong=0.9)
    assert decide(world)
    names = {str(pk) for pk in world.project.items.values_list("pk", flat=True)}
    for event in world.project.audit_events.filter(action__startswith="work."):
        assert not event.target.startswith("item:")
        assert not names.intersection(str(value) for value in event.data.values())
