"""A run whose target is everything from the same source routes items that came after its pool was frozen."""

import json
from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction

from annotation.errors import ConflictError
from annotation.jobs import context, jobs
from annotation.models import AuditEvent, Job, WorkItem
from annotation.permissions import access_to
from routing.core.verify import verify
from routing.delivery.deliver import deliver
from routing.items.history import item_history
from routing.items.table import item_rows
from routing.models import Delivery, Intake, PoolItem, Prediction, Route, Run, Spend
from routing.ports import CORRECTED
from routing.runs import predict, route as routing_stage
from routing.runs.cancel import cancel_run
from routing.runs.certify import mark_invalid
from routing.runs.every_score_runs import Routing
from routing.runs.later import take_in as taking
from routing.runs.later.items import new_items_of
from routing.runs.later.take_in import take_in
from routing.runs.measure import start_measurement
from routing.runs.queries import run_report
from routing.runs.spending import paid_by
from routing.sources.backends.recorded import Recorded
from routing.sources.manage import save_source
from testbed.worlds import World, files_of, make_world, rows_of
from tests.routing.runs.test_every_score_runs import follows_the_policy
from tests.routing.runs.test_resume import dying, dying_after, kill_and_take_over

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]

EVERY_SCORE = {"rule": "every_score"}
CHEAP = {"costs": ("0.004", "0.04"), "human_cost": "1", "error": (lambda u: 0.8 * u, lambda u: 0.1 * u)}
"""A world in which the second model is cheap and errs less, so that its own score decides."""


def a_run(*, finished: bool = True, made=None, **fields) -> tuple[World, Run]:
    """One that certified thresholds for the population, without an audit of later items."""
    world = make_world(500, **(made or {}))
    plan = {"target": "population", "m": 200, "p": Decimal(1), "later_audit_share": Decimal(0)} | fields
    run = world.complete(**plan) if finished else world.routed(**plan)
    assert run.certificate.certified
    return world, run


def take(world: World, run: Run) -> Run:
    take_in(run=run, user=world.manager)
    world.do("take_in")
    run.refresh_from_db()
    return run


@pytest.mark.parametrize(
    ("made", "rule"),
    [({}, {}), (CHEAP, EVERY_SCORE)],
    ids=["fixed_sequence", "every_score"],
)
def test_later_items_go_where_the_certified_policy_sends_them(made, rule) -> None:
    world, run = a_run(made=made, **rule)
    assert (run.certificate.shape != "first_score") == bool(rule)
    certificate = (run.certificate.document, run.certificate.sha256, run.pool_hash, run.pool_size)
    before = dict(run.routes.values_list("item", "position"))
    later = world.arrive(300)
    take(world, run)

    assert run.later_size == 300
    assert PoolItem.objects.filter(run=run, intake__isnull=False).count() == 300
    if rule:
        follows_the_policy(run)
    else:
        limits = [one and (one["u"], one["v"]) for one in run.certificate.thresholds]
        for u, v, item in run.pool_items.filter(item__in=later).values_list("u", "v", "item"):
            first = next((k for k, one in enumerate(limits, start=1) if one and (u, v) <= one), 3)
            assert run.routes.get(item=item).position == first
    routes = dict(run.routes.values_list("item", "position"))
    assert routes.keys() - before.keys() == {item.pk for item in later}
    assert {pk: routes[pk] for pk in before} == before
    run.certificate.refresh_from_db()
    assert (run.certificate.document, run.certificate.sha256, run.pool_hash, run.pool_size) == certificate

    # People are asked about theirs, in the batch of the routing, and then the run is complete again.
    people = {item.pk for item in later if routes[item.pk] == 3}
    waiting = WorkItem.objects.filter(batch=run.routed_batch, state="open").values_list("item", flat=True)
    assert set(waiting) == people
    assert run.intakes.get().people == len(people) < 300
    assert run.state == (Run.State.LABELLING if people else Run.State.COMPLETE)
    world.label()
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    rows = {row.external_id: row for row in rows_of(run)}
    assert all(rows[item.external_id].label is not None for item in later)
    assert {rows[item.external_id].certificate_id for item in later} == {run.certificate.sha256}
    assert {rows[item.external_id].run for item in later} == {run.number}


@pytest.mark.database
def test_taken_in_twice_adds_nothing() -> None:
    world, run = a_run()
    world.arrive(60)
    take(world, run)
    counts = (PoolItem.objects.count(), Route.objects.count(), Prediction.objects.count())
    with pytest.raises(ConflictError, match="nothing to take in"):
        take_in(run=run, user=world.manager)
    job = Job.objects.get(kind="take_in")
    Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED)
    jobs.run(job.pk)  # a message that comes twice
    assert (PoolItem.objects.count(), Route.objects.count(), Prediction.objects.count()) == counts
    run.refresh_from_db()
    assert (run.later_size, run.intakes.count()) == (60, 1)


def test_what_comes_later_still_is_taken_in_by_itself() -> None:
    world, run = a_run(finished=False)
    world.arrive(40)
    take(world, run)
    world.arrive(30, seed=3)
    take(world, run)
    assert [row.items for row in run.intakes.order_by("number")] == [40, 30]
    assert run.later_size == 70
    positions = list(run.pool_items.order_by("position").values_list("position", flat=True))
    assert positions == list(range(run.pool_size + 70))
    world.label()
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE


@pytest.mark.database
@pytest.mark.parametrize(
    ("target", "name", "how", "at"),
    [
        (taking, "insert_select", dying_after, 1),
        (Recorded, "predict", dying, 1),
        (Recorded, "_answer", dying, 20),
        (taking, "copy_scores_to_pool", dying, 1),
        (routing_stage, "insert_select", dying, 2),
        (Routing, "store", dying, 1),
        (taking, "tally_of", dying, 1),
        (taking.queue, "add_items", dying, 1),
    ],
)
def test_a_job_that_is_killed_goes_on_where_it_was(monkeypatch, target, name, how, at) -> None:
    world, run = a_run(made=CHEAP, **EVERY_SCORE) if target is Routing else a_run()
    assert (run.certificate.shape != "first_score") == (target is Routing)
    world.arrive(80)
    take_in(run=run, user=world.manager)
    with monkeypatch.context() as patch:
        patch.setattr(target, name, how(getattr(target, name), at=at))
        job = kill_and_take_over(world, "take_in")
        run.refresh_from_db()
        assert (run.later_size, run.state) == (0, Run.State.COMPLETE)
        assert not WorkItem.objects.filter(batch=run.routed_batch, state="open").exists()
    jobs.reconcile()
    job.refresh_from_db()
    if job.state != Job.State.DONE:
        jobs.run(job.pk)
    run.refresh_from_db()
    assert run.later_size == 80
    assert run.pool_items.count() == run.routes.count() == run.pool_size + 80
    first = run.run_sources.get(position=1)
    answered = Prediction.objects.filter(source=first.source).count()
    paid = Spend.objects.filter(run=run, source=first.source, stage="pool")
    assert sum(paid.values_list("quantity", flat=True)) == answered
    assert len(set(Prediction.objects.values_list("item", "source"))) == Prediction.objects.count()


@pytest.mark.database
def test_what_is_not_finished_is_not_delivered(monkeypatch) -> None:
    world, run = a_run()
    later = world.arrive(50)
    take_in(run=run, user=world.manager)
    with monkeypatch.context() as patch:
        patch.setattr(taking, "tally_of", dying(taking.tally_of, at=1))
        kill_and_take_over(world, "take_in")
    rows = {row.external_id: row for row in rows_of(run)}
    assert {rows[item.external_id].reason for item in later} == {
        f"not covered by run {run.number}: it came after the pool was frozen"
    }
    assert run_report(run).unlabelled == 0
    # Nor shown as routed by the run.
    access = access_to(world.manager, world.project.slug)
    ids = {item.pk for item in later}
    for name, sent in {"Model 1": "1", "Model 2": "2", "": "person"}.items():
        assert run.routes.filter(item__in=ids, position={"1": 1, "2": 2}.get(sent, 3)).exists(), name
        page = item_rows(world.project, access, filters={"sent": sent}, size=200)
        assert not ids & {row.id for row in page.rows}
    for filters, sort in (({"u_from": "0"}, "position"), ({}, "u")):
        page = item_rows(world.project, access, filters=filters, sort=sort, size=200)
        assert page.rows
        assert not ids & {row.id for row in page.rows if row.uncertainty is not None or filters}
    page = item_rows(world.project, access, filters={"q": later[0].external_id})
    (row,) = [row for row in page.rows if row.id == later[0].pk]
    assert (row.routed_to, row.uncertainty) == (None, None)
    assert item_history(world.project, access, later[0].pk).routes == []


@pytest.mark.database
@pytest.mark.parametrize("where", ["before the first model", "after it"])
def test_nothing_is_spent_once_the_run_is_no_longer_valid(monkeypatch, where) -> None:
    world, run = a_run()
    world.arrive(80)
    take_in(run=run, user=world.manager)
    name = "_freeze" if where == "before the first model" else "_score"
    stage, before = getattr(taking, name), Spend.objects.count()

    def stage_and_alarm(*args):
        found = stage(*args)
        mark_invalid(run=run, why=CORRECTED, params={"item": "t3"}, actor=None)
        return found

    monkeypatch.setattr(taking, name, stage_and_alarm)
    job = Job.objects.get(kind="take_in")
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    assert "no longer valid" in job.error
    stages = list(Spend.objects.order_by("pk").values_list("stage", flat=True)[before:])
    assert set(stages) == (set() if name == "_freeze" else {"pool"})


@pytest.mark.database
def test_a_model_at_work_is_asked_no_more_once_the_run_is_no_longer_valid(monkeypatch) -> None:
    monkeypatch.setattr(context, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(Recorded, "in_flight", 10)
    world, run = a_run()
    world.arrive(80)
    take_in(run=run, user=world.manager)
    before = Prediction.objects.count()
    store = predict.store_answers

    def store_and_alarm(rows):
        store(rows)
        mark_invalid(run=run, why=CORRECTED, params={"item": "t3"}, actor=None)

    monkeypatch.setattr(predict, "store_answers", store_and_alarm)
    job = Job.objects.get(kind="take_in")
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    assert "no longer valid" in job.error
    answered = Prediction.objects.count() - before
    assert 0 < answered < 80
    assert sum(Spend.objects.filter(run=run, stage="pool").values_list("quantity", flat=True)) == (
        run.pool_size + answered
    )
    assert not run.reservations.exclude(amount=0).exists()


def test_a_changed_model_is_refused_and_breaks_nothing() -> None:
    world, run = a_run()
    world.arrive(30)
    source = run.run_sources.get(position=2).source
    params = dict(source.params)
    changed = params | {"confidence_column": "confidence1"}
    save_source(
        project=world.project,
        user=world.manager,
        source=source,
        name=source.name,
        backend=source.backend,
        params=changed,
        cost_per_label=source.cost_per_label,
    )
    with pytest.raises(ConflictError, match="Model 2 was changed after the run was planned"):
        take_in(run=run, user=world.manager)
    run.refresh_from_db()
    assert run.invalid_reasons == []
    assert not Intake.objects.exists()
    save_source(
        project=world.project,
        user=world.manager,
        source=source,
        name=source.name,
        backend=source.backend,
        params=params,
        cost_per_label=source.cost_per_label,
    )
    assert take(world, run).later_size == 30


def test_a_model_that_changes_meanwhile_stops_the_job() -> None:
    world, run = a_run()
    world.arrive(30)
    source = run.run_sources.get(position=1).source
    take_in(run=run, user=world.manager)
    params = source.params | {"confidence_column": "confidence2"}
    type(source).objects.filter(pk=source.pk).update(params=params)
    job = Job.objects.get(kind="take_in")
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    assert "Model 1 was changed" in job.error
    run.refresh_from_db()
    assert run.later_size == 0


@pytest.mark.database
def test_which_items_are_taken_in() -> None:
    """None that a person labelled, that was measured, or that is in another run's pool."""
    world, run = a_run()
    later = world.arrive(120)
    assert new_items_of(run).count() == 120
    start_measurement(project=world.project, user=world.manager, target="population", size=30)
    world.do("measure")
    measured = set(world.project.measurements.get().items.values_list("item", flat=True))
    assert set(new_items_of(run)) == {item for item in later if item.pk not in measured}
    take(world, run)
    assert run.later_size == 90


def test_items_that_were_there_when_the_run_began_are_not_taken_in() -> None:
    world = make_world(500, error=(lambda u: 0.3 * u**2, lambda u: 0.1 * u))
    start_measurement(project=world.project, user=world.manager, target="population", size=50)
    world.do("measure")
    run = world.complete(target="population", m=200, p=Decimal(1), later_audit_share=Decimal(0))
    assert run.pool_size == 450
    with pytest.raises(ConflictError, match="nothing to take in"):
        take_in(run=run, user=world.manager)


def test_who_cannot_take_in_says_why() -> None:
    world = make_world(120)
    run = world.complete(m=60)
    world.arrive(10)
    with pytest.raises(ConflictError, match="its own items alone"):
        take_in(run=run, user=world.manager)
    world, run = a_run()
    world.arrive(10)
    Run.objects.filter(pk=run.pk).update(
        invalid_reasons=[{"code": "label_corrected", "params": {"item": "t3"}, "words": "corrected"}]
    )
    with pytest.raises(ConflictError, match="no longer valid"):
        take_in(run=run, user=world.manager)


def test_a_run_that_certified_nothing_takes_nothing_in() -> None:
    world = make_world(200, error=(lambda u: 0.9, lambda u: 0.9))
    run = world.complete(target="population", m=10, p=Decimal(1))
    assert not run.certificate.certified
    world.arrive(10)
    with pytest.raises(ConflictError, match="certified nothing"):
        take_in(run=run, user=world.manager)


@pytest.mark.database
def test_one_at_a_time_and_not_beside_another_run() -> None:
    world, run = a_run()
    world.arrive(300)
    take_in(run=run, user=world.manager)
    with pytest.raises(ConflictError, match="Taking in new items is already under way"):
        take_in(run=run, user=world.manager)
    with pytest.raises(ConflictError, match="Taking in new items is already under way"):
        world.start(m=60)
    jobs.cancel(job=Job.objects.get(kind="take_in"))
    other = world.start(m=60, target="population")
    assert run.intakes.get().abandoned_at is not None
    with pytest.raises(ConflictError, match=f"Run {other.number} is under way"):
        take_in(run=run, user=world.manager)


def test_a_new_run_leaves_out_what_was_taken_in() -> None:
    world, run = a_run()
    world.arrive(60)
    take(world, run)
    world.finish()
    fresh = world.arrive(200, seed=5)
    other = world.start(m=60, target="population")
    assert set(other.pool_items.values_list("item", flat=True)) == {item.pk for item in fresh}


@pytest.mark.database
def test_a_later_intake_cannot_be_changed() -> None:
    world, run = a_run()
    world.arrive(10)
    take(world, run)
    for rows, change in (
        (Intake.objects.filter(run=run), {"items": 3}),
        (Intake.objects.filter(run=run), {"finished_at": run.created_at}),
        (PoolItem.objects.filter(run=run), {"intake": None}),
    ):
        with pytest.raises(IntegrityError, match="cannot be changed"), transaction.atomic():
            rows.update(**change)


def test_a_delivery_has_them_and_its_certificate_verifies() -> None:
    world, run = a_run()
    later = world.arrive(80)
    deliver(run=run, user=world.manager, formats=["jsonl"])
    world.do("deliver_run")
    before = Delivery.objects.get()
    take(world, run)
    world.finish()
    run.refresh_from_db()
    deliver(run=run, user=world.manager, formats=["jsonl"], since=before)
    world.do("deliver_run")
    files = files_of(Delivery.objects.order_by("-id")[0])
    assert verify(files["certificate.json"], files["draw.jsonl"]) == []
    lines = [json.loads(line) for line in files["labels.jsonl"].decode().splitlines()]
    assert {line["external_id"] for line in lines} == {item.external_id for item in later}
    card = files["README.md"].decode()
    assert "80 items came after the pool was frozen" in card
    assert "no audit" in card


def test_what_they_cost_is_in_the_ledger_and_in_the_savings() -> None:
    world, run = a_run()
    before = run_report(run)
    world.arrive(100)
    take(world, run)
    world.label()
    run.refresh_from_db()
    after = run_report(run)
    pool = {row.stage: row.quantity for row in paid_by(run) if row.source == "Model 1"}
    assert pool["pool"] == run.pool_size + 100
    assert after.savings.people_only == before.savings.people_only + 100 * run.human_cost
    assert sum(row.items for row in after.counts) == run.covered_size
    assert sum(row.routed for row in after.counts) == run.covered_size
    trail = AuditEvent.objects.filter(project=world.project, action="run.took_in").get()
    assert trail.data == {"intake": 1, "items": 100, "people": run.intakes.get().people}


def test_a_run_can_be_cancelled_while_people_label_what_came_later() -> None:
    world, run = a_run()
    world.arrive(100)
    take(world, run)
    assert run.state == Run.State.LABELLING
    cancel_run(run=run, user=world.manager)
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED
    assert not WorkItem.objects.filter(batch=run.routed_batch, state="open").exists()
    with pytest.raises(ConflictError, match="no more once it is cancelled"):
        take_in(run=run, user=world.manager)
