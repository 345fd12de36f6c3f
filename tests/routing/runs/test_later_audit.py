"""The audit of items that a run took in later: whether models err more on them than was certified."""

import json
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from scipy.stats import binom

from annotation.errors import ConflictError, InputError
from annotation.labelling import next_item, queue
from annotation.labelling.labels_of_record import disagreements
from annotation.models import Label, Project, User, WebhookDelivery, WorkItem
from annotation.outside.webhooks.manage import create_webhook
from routing.core.reference.audit import ALARM, AuditProcess, alarm_at, audited
from routing.core.verify import verify
from routing.delivery.deliver import deliver
from routing.models import Delivery, Run, Spend
from routing.runs import audits
from routing.runs.expert.leaving import give_up_open_items
from routing.runs.later import take_in as taking
from routing.runs.later.audit import later_audit_state
from routing.runs.later.take_in import take_in
from routing.runs.plan import outlook_of_plan
from routing.runs.queries import run_report
from routing.runs.spending import paid_by
from testbed.factories import add_member
from testbed.worlds import CHOICES, World, files_of, make_world, rows_of

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]

WORSE = (lambda u: 0.9, lambda u: 0.9)
"""What the models err on later items, after a drift."""


def a_run(share: str = "1", **fields: Any) -> tuple[World, Run]:
    world = make_world(500)
    plan = {"target": "population", "m": 200, "p": Decimal(1), "later_audit_share": Decimal(share)}
    run = world.complete(**(plan | fields))
    assert run.certificate.certified
    return world, run


def take(world: World, run: Run) -> Run:
    take_in(run=run, user=world.manager)
    world.do("take_in")
    run.refresh_from_db()
    return run


@pytest.mark.database
def test_a_share_is_marked_and_labelled_blind_by_people() -> None:
    world, run = a_run("0.3")
    later = {item.pk for item in world.arrive(300)}
    take(world, run)
    marked = set(run.audited_items.values_list("item", flat=True))
    assert marked <= later
    assert 60 < len(marked) < 120
    batch = run.later_audit_batch
    assert batch.blind
    asked = set(batch.work_items.values_list("item", flat=True))
    people = set(run.routes.filter(item__in=marked, position=3).values_list("item", flat=True))
    assert asked == marked - people
    assert people.isdisjoint(asked)
    # They count, and are served, in the order of a hash: of those in one batch the places rise together.
    order = dict(batch.work_items.values_list("item", "order"))
    places = dict(run.audited_items.filter(item__in=asked).values_list("item", "place"))
    assert sorted(order, key=order.__getitem__) == sorted(places, key=places.__getitem__)
    assert run.state == Run.State.LABELLING
    world.label()
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    state = later_audit_state(run)
    assert (state.marked, state.audited, state.alarm) == (len(marked), len(marked), False)
    paid = {row.stage: row.quantity for row in paid_by(run) if not row.source}
    assert paid["audit"] == len(asked)
    assert set(Spend.objects.filter(run=run, stage="audit").values_list("amount", flat=True)) == {
        run.human_cost
    }
    # What a person gave is delivered.
    rows = {row.external_id: row for row in rows_of(run)}
    names = dict(batch.work_items.values_list("item", "item__external_id"))
    assert {rows[name].source for name in names.values()} == {"person"}
    assert all(rows[name].label == world.truth[name] for name in names.values())


def test_what_differs_is_counted_and_what_goes_to_people_does_not() -> None:
    world, run = a_run()
    later = world.arrive(120)
    before = {row.external_id: row for row in rows_of(run)}
    take(world, run)
    delivered = {row.external_id: row for row in rows_of(run)}
    assert all(before[item.external_id].label is None for item in later)
    by_models = [item for item in later if delivered[item.external_id].source in ("Model 1", "Model 2")]
    wrong = sum(delivered[one.external_id].label != world.truth[one.external_id] for one in by_models)
    world.label()
    run.refresh_from_db()
    state = later_audit_state(run)
    assert (state.marked, state.audited, state.differ) == (120, 120, wrong)
    process = AuditProcess().after([True] * wrong + [False] * (120 - wrong), float(run.epsilon))
    assert state.wealth <= process.highest  # the order says how high it came
    assert run.audit_found["logs"] == pytest.approx(process.logs)


@pytest.mark.database
def test_the_audit_waits_for_what_is_before_and_counts_anew_after_a_correction(monkeypatch) -> None:
    monkeypatch.setattr(audits, "AT_ONCE", 3)
    world, run = a_run()
    world.arrive(40)
    take(world, run)
    waiting = run.later_audit_batch.work_items.order_by("order")
    first = run.audited_items.order_by("place").filter(item__in=waiting.values("item")).first()
    assert later_audit_state(run).audited == first.place
    world.label()
    run.refresh_from_db()
    found = later_audit_state(run)
    assert found.audited == 40
    kept, run.audit_found = run.audit_found, None
    assert later_audit_state(run) == found
    label = Label.objects.filter(work_item__batch=run.later_audit_batch).order_by("pk")[0]
    rows = {row.external_id: row for row in rows_of(run)}
    assert rows[label.item.external_id].source == "person"
    other = next(name for name in ("cat", "dog", "emu") if name != label.value)
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="second thought")
    run.refresh_from_db()
    assert run.audit_found["audited"] == 40
    assert run.audit_found["differ"] != kept["differ"]


def test_what_nobody_can_label_counts_as_a_difference() -> None:
    world, run = a_run()
    world.arrive(30)
    take(world, run)
    asked = run.later_audit_batch.work_items.count()
    for work_item in run.later_audit_batch.work_items.order_by("order")[:2]:
        queue.give_up(work_item=work_item, actor=world.manager)
    world.label()
    run.refresh_from_db()
    rows = {row.external_id: row for row in rows_of(run)}
    given_up = run.later_audit_batch.work_items.filter(state=WorkItem.State.UNLABELABLE)
    names = given_up.values_list("item__external_id", flat=True)
    # Nothing is lost by it: the model's label stays.
    assert {rows[name].source for name in names} <= {"Model 1", "Model 2"}
    assert asked > 2
    assert later_audit_state(run).differ >= 2


def test_an_alarm_marks_the_run_and_ends_what_is_taken_in(client_of) -> None:
    world, run = a_run()
    webhook, _ = create_webhook(
        project=world.project,
        actor=world.manager,
        url="https://example.org/",
        events=["run.audit_alarm"],
    )
    later = world.arrive(150, error=WORSE)
    take(world, run)
    world.label()
    run.refresh_from_db()
    state = later_audit_state(run)
    assert run.audit_alarm_at is not None
    assert state.alarm
    assert "audit of later items found more errors than were certified" in run.broken_by[0]
    assert not WorkItem.objects.filter(batch=run.later_audit_batch, state__in=WorkItem.UNFINISHED).exists()
    assert run.state == Run.State.COMPLETE
    assert not run.certificate.holds
    # The later items carry no certificate any more; nothing that was labelled is lost.
    rows = {row.external_id: row for row in rows_of(run)}
    assert {rows[item.external_id].certificate_id for item in later} == {None}
    assert all(rows[item.external_id].label is not None for item in later)
    pool = set(rows) - {item.external_id for item in later}
    assert {rows[name].certificate_id for name in pool} == {run.certificate.sha256}
    world.arrive(20, seed=9)
    with pytest.raises(ConflictError, match="no longer valid, so nothing is taken in"):
        take_in(run=run, user=world.manager)
    (message,) = WebhookDelivery.objects.filter(webhook=webhook)
    told = json.loads(message.payload)
    assert told["type"] == "run.audit_alarm"
    assert told["data"]["audited"] == state.audited
    notice = "The audit warns: on later items models differ from people more often than was certified."
    overview = f"/projects/{world.project.slug}/"
    assert notice in client_of(world.manager).get(overview).content.decode()
    assert notice not in client_of(world.annotators[0]).get(overview).content.decode()
    page = client_of(world.manager).get(f"{overview}runs/{run.number}/").content.decode()
    assert "It sounded an alarm" in page
    deliver(run=run, user=world.manager, formats=["jsonl"])
    world.do("deliver_run")
    files = files_of(Delivery.objects.get())
    assert verify(files["certificate.json"], files["draw.jsonl"]) == []
    assert "marked invalid" in files["README.md"].decode()
    assert "they carry no certificate" in files["README.md"].decode()


@pytest.mark.database
def test_an_alarm_as_items_are_taken_in_leaves_nothing_to_wait_for(monkeypatch) -> None:
    world, run = a_run()
    world.arrive(20)
    monkeypatch.setattr(taking, "pending_routes", lambda *_: [])  # models label them all
    monkeypatch.setattr(audits, "ALARM", 0)
    take(world, run)
    assert run.audit_alarm_at is not None
    assert set(run.later_audit_batch.work_items.values_list("state", flat=True)) == {"withdrawn"}
    assert run.state == Run.State.COMPLETE
    assert run.completed_at is not None


def test_without_drift_the_audit_stays_silent_and_a_delivery_verifies() -> None:
    world, run = a_run("0.5")
    world.arrive(200)
    take(world, run)
    world.label()
    run.refresh_from_db()
    assert run.audit_alarm_at is None
    assert run.certificate.holds
    deliver(run=run, user=world.manager, formats=["jsonl"])
    world.do("deliver_run")
    files = files_of(Delivery.objects.get())
    assert verify(files["certificate.json"], files["draw.jsonl"]) == []
    card = files["README.md"].decode()
    assert "200 items came after the pool was frozen" in card
    assert "It has sounded no alarm." in card


def test_later_intakes_count_behind_earlier_ones() -> None:
    world, run = a_run()
    world.arrive(20)
    take(world, run)
    world.arrive(20, seed=4)
    take(world, run)
    places = list(run.audited_items.order_by("place").values_list("place", flat=True))
    assert places == list(range(40))
    first = run.intakes.get(number=1).pool_items.values("item")
    assert set(run.audited_items.filter(item__in=first).values_list("place", flat=True)) == set(range(20))
    world.label()
    run.refresh_from_db()
    assert later_audit_state(run).audited == 40


def test_nothing_that_is_stored_tells_which_items_are_marked() -> None:
    world, run = a_run("0.5")
    names = [item.external_id for item in world.arrive(200)]
    take(world, run)
    marked = set(run.audited_items.values_list("item__external_id", flat=True))
    told = {name for name, mark in zip(names, audited(run.salt, names, "0.5"), strict=True) if mark}
    assert told != marked
    # Neither do the numbers of the work items: those of both kinds are mixed.
    kinds = [
        row == run.later_audit_batch_id
        for row in WorkItem.objects.filter(item__external_id__in=names)
        .order_by("pk")
        .values_list("batch", flat=True)
    ]
    changes = sum(one != other for one, other in pairwise(kinds))
    assert changes > min(sum(kinds), len(kinds) - sum(kinds)) / 2


def _changes(kinds: list[bool]) -> int:
    return sum(one != other for one, other in pairwise(kinds))


def _label_and_see_kinds(world: World, run: Run, count: int) -> list[bool]:
    """Of what one person is given, one after the other, whether it is of the audit."""
    user, kinds = world.annotators[0], []
    while len(kinds) < count and (task := queue.claim(project=world.project, user=user)):
        kinds.append(task.work_item.batch_id == run.later_audit_batch_id)
        world.keys += 1
        queue.submit(
            user=user,
            work_item_id=task.work_item.pk,
            token=task.token,
            value=world.truth[task.item.external_id],
            idempotency_key=f"key-{world.keys}",
        )
    return kinds


@pytest.mark.database
def test_what_is_audited_comes_among_what_goes_to_people() -> None:
    world, run = a_run("0.5", epsilon=Decimal("0.05"))
    world.arrive(200)
    take(world, run)
    skipped = queue.claim(project=world.project, user=world.annotators[0])
    queue.skip(
        user=world.annotators[0], work_item_id=skipped.work_item.pk, token=skipped.token, reason="unclear"
    )
    kinds = _label_and_see_kinds(world, run, 1000)
    assert min(sum(kinds), len(kinds) - sum(kinds)) > 20
    assert _changes(kinds) > min(sum(kinds), len(kinds) - sum(kinds)) / 2
    half = kinds[: len(kinds) // 2]
    assert sum(kinds) / 4 < sum(half) < 3 * sum(kinds) / 4


def test_where_one_is_ahead_of_the_others_both_kinds_stay_mixed(monkeypatch) -> None:
    monkeypatch.setattr(next_item, "WINDOW", 5)
    world, run = a_run_of_two()
    world.arrive(120)
    take(world, run)
    kinds = _label_and_see_kinds(world, run, 1000)
    rare = min(sum(kinds), len(kinds) - sum(kinds))
    assert rare > 10
    assert _changes(kinds) > rare / 2


@pytest.mark.database
def test_mixing_takes_one_query_more() -> None:
    world, run = a_run("0.5")
    world.arrive(60)
    take(world, run)

    def asked() -> int:
        queue.release_all(project=world.project, user=world.annotators[0])
        with CaptureQueriesContext(connection) as queries:
            assert queue.claim(project=world.project, user=world.annotators[0]) is not None
        return len(queries)

    both = asked()
    run.routed_batch.work_items.filter(state="open").update(state="withdrawn")
    queue.release_all(project=world.project, user=world.annotators[0])
    run.routed_batch.work_items.filter(state="open").update(state="withdrawn")
    assert both <= asked() + 1


def test_who_sees_what_models_say_gets_no_item_of_the_audit() -> None:
    world, run = a_run()
    world.arrive(30)
    take(world, run)
    run.routed_batch.work_items.filter(state="open").update(state="withdrawn")
    assert queue.claim(project=world.project, user=world.manager) is None
    assert queue.claim(project=world.project, user=world.annotators[0]) is not None


def test_where_nobody_may_label_blind_nothing_is_taken_in() -> None:
    world, run = a_run()
    world.arrive(30)
    world.project.memberships.filter(user__in=world.annotators).delete()
    with pytest.raises(ConflictError, match="nobody in this project may do that"):
        take_in(run=run, user=world.manager)
    add_member(world.project)
    assert take(world, run).later_size == 30


def a_run_of_two(*, people: int = 2, **fields: Any) -> tuple[World, Run]:
    """The same where two people, or more, answer about each item."""
    world = make_world(240)
    world.annotators += world.join(people - 2)
    consensus = fields.pop("consensus", Project.Consensus.MAJORITY)
    world.change(overlap=people, consensus=consensus)
    run = world.calibrating(target="population", m=100, p=Decimal(1), later_audit_share=Decimal(1), **fields)
    assert run.overlap == people
    world.label()
    world.route(world.analyse(run))
    world.label()
    run.refresh_from_db()
    return world, run


def test_where_several_people_answer_an_item_waits_until_it_is_settled() -> None:
    world, run = a_run_of_two()
    world.arrive(20)
    take(world, run)
    audit = run.later_audit_batch
    asked = audit.work_items.values("item").distinct().count()
    assert audit.work_items.count() == 2 * asked
    for user, choose in zip(world.annotators, (lambda true: true, lambda true: CHOICES[0]), strict=True):
        while task := queue.claim(project=world.project, user=user):
            world.keys += 1
            queue.submit(
                user=user,
                work_item_id=task.work_item.pk,
                token=task.token,
                value=choose(world.truth[task.item.external_id]),
                idempotency_key=f"key-{world.keys}",
            )
    run.refresh_from_db()
    assert run.state == Run.State.LABELLING
    assert later_audit_state(run).audited < 20
    reviewer = add_member(world.project, "reviewer")
    for row in disagreements(world.project, reviewer):
        true = world.truth[row.item.external_id]
        queue.adjudicate(batch=row.batch, item=row.item, actor=reviewer, value=true)
    run.refresh_from_db()
    assert (run.state, later_audit_state(run).audited) == (Run.State.COMPLETE, 20)


def _answer(world: World, user: User, choose: Callable[[str], str], limit: int | None = None) -> None:
    """Let one person label what waits for them."""
    count = 0
    while limit is None or count < limit:
        task = queue.claim(project=world.project, user=user)
        if task is None:
            return
        count += 1
        world.keys += 1
        queue.submit(
            user=user,
            work_item_id=task.work_item.pk,
            token=task.token,
            value=choose(str(world.truth[task.item.external_id])),
            idempotency_key=f"key-{world.keys}",
        )


def test_dawid_skene_settles_none_of_the_audit() -> None:
    world, run = a_run_of_two(consensus=Project.Consensus.DAWID_SKENE)
    world.arrive(20)
    take(world, run)
    _answer(world, world.annotators[0], lambda true: true)
    _answer(world, world.annotators[1], lambda true: CHOICES[0])
    world.do("settle_run")
    reviewer = add_member(world.project, "reviewer")
    waiting = list(disagreements(world.project, reviewer))
    assert {row.batch_id for row in waiting} == {run.later_audit_batch_id}
    for row in waiting:
        true = world.truth[row.item.external_id]
        queue.adjudicate(batch=row.batch, item=row.item, actor=reviewer, value=true)
    run.refresh_from_db()
    assert (run.state, later_audit_state(run).audited) == (Run.State.COMPLETE, 20)
    # Nor is a job made that has nothing to settle.
    assert (
        world.project.jobs.filter(kind="settle_run", created_at__gt=run.intakes.get().created_at).count() == 1
    )


def test_after_an_alarm_one_answer_of_two_is_enough() -> None:
    world, run = a_run_of_two()
    world.arrive(150, error=WORSE)
    take(world, run)
    _answer(world, world.annotators[0], lambda true: true, limit=100)
    run.refresh_from_db()
    assert run.audit_alarm_at is None
    _answer(world, world.annotators[1], lambda true: true)
    _answer(world, world.annotators[0], lambda true: true)
    run.refresh_from_db()
    assert run.audit_alarm_at is not None
    work = run.later_audit_batch.work_items
    given = work.filter(state=WorkItem.State.DONE)
    assert given.filter(item__in=work.filter(state=WorkItem.State.WITHDRAWN).values("item")).exists()
    assert run.state == Run.State.COMPLETE
    names = set(given.values_list("item__external_id", flat=True))
    rows = {row.external_id: row for row in rows_of(run)}
    assert all(rows[name].label == world.truth[name] for name in names)


def test_by_a_roster_each_item_of_the_audit_is_one_persons() -> None:
    world = make_world(500)
    roster = dict.fromkeys((user.username for user in world.annotators), None)
    plan = {"target": "population", "m": 200, "p": Decimal(1), "later_audit_share": Decimal("0.5")}
    run = world.complete(**plan, roster=roster)
    world.arrive(60)
    take(world, run)
    new = WorkItem.objects.filter(batch__in=[run.routed_batch, run.later_audit_batch], state="open")
    assert set(new.values_list("assigned_to", flat=True)) == {user.pk for user in world.annotators}
    give_up_open_items(run=run, user=world.annotators[0], actor=world.manager)
    world.label()
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    # That somebody is absent says nothing of the models.
    state = later_audit_state(run)
    withdrawn = run.later_audit_batch.work_items.filter(state=WorkItem.State.WITHDRAWN).count()
    assert withdrawn > 0
    assert (state.audited, state.alarm) == (state.marked - withdrawn, False)


def test_the_plan_says_what_is_audited() -> None:
    world = make_world(400)
    plan = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 100, "target": "population"}
    run = world.start(target="population")
    assert run.later_audit_share == Decimal("0.02")
    assert ("Share of later items that people label, too, to see whether models get worse", "2 %") in [
        (term, words) for term, words in run_report(run).plan
    ]
    assert make_world(120).start(m=60).later_audit_share is None
    other = make_world(120)
    with pytest.raises(InputError, match="Only the target “population”"):
        other.start(m=60, later_audit_share=Decimal("0.1"))
    for share in ("-0.1", "1.5"):
        with pytest.raises(InputError, match="from 0 to 1"):
            other.start(m=60, target="population", later_audit_share=Decimal(share))
    assert outlook_of_plan(project=other.project, **plan | {"m": 60}).warnings == ()


def test_another_loss_than_right_or_wrong_is_not_audited_and_says_so(settings) -> None:
    settings.HYPAC_LOSSES = ["tests.routing.runs.own_loss:HALF"]
    world = make_world(200)
    plan = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 100, "target": "population"}
    plan["loss"] = settings.HYPAC_LOSSES[0]
    seen = outlook_of_plan(project=world.project, **plan)
    assert any("not audited" in words for words in seen.warnings)
    with pytest.raises(InputError, match="call a label right or wrong"):
        outlook_of_plan(project=world.project, **plan, later_audit_share=Decimal("0.1"))


RUNS, ITEMS, EPSILON = 2_000, 1_500, 0.1


def _alarms(error: float, seed: int) -> int:
    draws = np.random.default_rng(seed).random((RUNS, ITEMS)) < error
    return sum(alarm_at(row, EPSILON) is not None for row in draws)


def test_false_alarms_are_rare_and_drift_is_found() -> None:
    """Each later item errs with a probability of at most epsilon, items of people with none; however long it
    goes on, the share of runs with an alarm stays within 1 / 20.
    """
    assert ALARM == 20
    assert binom.sf(_alarms(EPSILON, 11) - 1, RUNS, 1 / ALARM) > 1e-4
    assert _alarms(2 * EPSILON, 12) > 0.99 * RUNS
