"""Workers that die between, in and after the chunks of a job: nothing lost or doubled, all paid once."""

from decimal import Decimal

import pytest
from django.db.models import Count, Sum

from annotation.jobs import jobs
from annotation.models import Job
from routing.delivery import deliver as deliveries
from routing.delivery.deliver import deliver
from routing.models import Certificate, ItemScore, Prediction, Route, Run, Spend
from routing.runs import certify, chain_inputs, chains, predict, route as routing_stage, start
from routing.runs.certify import analyse
from routing.runs.predict import ReservedItems
from routing.runs.route import route
from routing.sources.backends import BackendError
from routing.sources.backends.recorded import Recorded
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


class Killed(BaseException):
    """Like a kill: no handler of errors runs."""


def kill_and_take_over(world, kind):
    """Run the newest job of a kind until the worker dies, then let another worker find it."""
    job = world.project.jobs.filter(kind=kind).order_by("-id")[0]
    with pytest.raises(Killed):
        jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.RUNNING
    Job.objects.filter(pk=job.pk).update(heartbeat_at=job.created_at.replace(year=2000))
    return job


def dying(function, *, at):
    """`function`, but the call number `at` never returns."""
    calls = iter(range(1, 10**6))

    def call(*args, **kwargs):
        if next(calls) == at:
            raise Killed
        return function(*args, **kwargs)

    return call


def dying_after(function, *, at):
    calls = iter(range(1, 10**6))

    def call(*args, **kwargs):
        result = function(*args, **kwargs)
        if next(calls) == at:
            raise Killed
        return result

    return call


def check_nothing_lost_or_doubled(run):
    first, second = run.run_sources.order_by("position")
    once = Prediction.objects.values("item", "source").annotate(count=Count("id"))
    assert {row["count"] for row in once} == {1}
    assert Prediction.objects.filter(source=first.source).count() == run.pool_size
    assert ItemScore.objects.count() == Prediction.objects.count()
    for row in (first, second):
        paid = Spend.objects.filter(source=row.source).aggregate(q=Sum("quantity"), a=Sum("amount"))
        count = Prediction.objects.filter(source=row.source).count()
        assert paid["q"] == count
        assert paid["a"] == count * row.cost_per_label


@pytest.mark.parametrize(
    ("target", "name", "how", "at"),
    [
        (Recorded, "predict", dying, 1),
        (Recorded, "_answer", dying, 1),
        (Recorded, "_answer", dying, 61),
        (Recorded, "_answer", dying_after, 75),
        (ReservedItems, "__next__", dying, 61),
        (ReservedItems, "read_on", dying, 3),
        (ReservedItems, "set_aside", dying_after, 3),
        (predict, "store_scores", dying, 2),
        (predict, "store_scores", dying_after, 2),
        (predict, "_pay", dying_after, 2),
        (chain_inputs, "build_chains", dying, 1),
        (chains, "chains_to_json", dying_after, 1),
        (start.queue, "create_batch", dying_after, 1),
        (start, "change_state", dying_after, 1),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_predicting_is_taken_up_where_it_stopped(monkeypatch, target, name, how, at):
    monkeypatch.setattr(Recorded, "in_flight", 30)
    world = make_world(100)
    run = world.start(m=40)
    with monkeypatch.context() as patch:
        patch.setattr(target, name, how(getattr(target, name), at=at))
        kill_and_take_over(world, "prepare_run")
    before = Prediction.objects.count()
    job = world.do("prepare_run")
    assert Prediction.objects.count() >= before
    run.refresh_from_db()
    assert run.state == Run.State.CALIBRATING
    assert run.calibration_batch.work_items.count() == run.draw.n
    assert world.project.work_batches.count() == 1
    check_nothing_lost_or_doubled(run)
    assert job.done == job.total


def test_a_chunk_that_was_committed_is_not_asked_for_again(monkeypatch):
    monkeypatch.setattr(Recorded, "in_flight", 30)
    world = make_world(100)
    world.start(m=40)
    with monkeypatch.context() as patch:
        patch.setattr(Recorded, "_answer", dying(Recorded._answer, at=75))
        kill_and_take_over(world, "prepare_run")
    assert Prediction.objects.count() == 60
    asked = []
    original = Recorded._answer
    monkeypatch.setattr(Recorded, "_answer", lambda self, item: asked.append(item) or original(self, item))
    world.do("prepare_run")
    assert len(asked) == Prediction.objects.count() - 60


def test_routing_is_taken_up_where_it_stopped(monkeypatch):
    monkeypatch.setattr(Recorded, "in_flight", 3)
    world = make_world(200)
    run = world.analysed(m=80)
    route(run=run, user=world.manager)
    for target, name, how, at in (
        (routing_stage, "insert_select", dying_after, 2),
        (Recorded, "_answer", dying, 4),
        (routing_stage.queue, "create_batch", dying_after, 1),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, how(getattr(target, name), at=at))
            kill_and_take_over(world, "route_run")
    world.do("route_run")
    run.refresh_from_db()
    assert run.state == Run.State.LABELLING
    assert Route.objects.filter(run=run).count() == 200
    assert world.project.work_batches.count() == 2
    check_nothing_lost_or_doubled(run)


def test_the_analysis_and_the_delivery_happen_once(monkeypatch):
    world = make_world(100)
    run = world.calibrated(m=40)
    analyse(run=run, user=world.manager)
    with monkeypatch.context() as patch:
        patch.setattr(certify, "change_state", dying_after(certify.change_state, at=1))
        kill_and_take_over(world, "analyse_run")
    assert not Certificate.objects.exists()
    world.do("analyse_run")
    run.refresh_from_db()
    route(run=run, user=world.manager)
    world.do("route_run")
    world.finish()
    deliver(run=run, user=world.manager)
    with monkeypatch.context() as patch:
        patch.setattr(deliveries, "_named", dying_after(deliveries._named, at=2))
        kill_and_take_over(world, "deliver_run")
    assert run.deliveries.count() == 0
    world.do("deliver_run")
    assert run.deliveries.get().files.count() == 8


def test_a_model_that_fails_for_good_ends_the_job_in_words_and_it_can_be_started_again(monkeypatch):
    world = make_world(100)
    run = world.start(m=40)

    def broken(self, items):
        raise BackendError("The model has no weights.")

    with monkeypatch.context() as patch:
        patch.setattr(Recorded, "predict", broken)
        job = world.project.jobs.get(kind="prepare_run")
        jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == (Job.State.FAILED, "The model has no weights.")
    run.refresh_from_db()
    assert run.state == Run.State.PREPARING
    jobs.retry(job=job)
    world.do("prepare_run")
    run.refresh_from_db()
    assert run.state == Run.State.CALIBRATING


def test_a_model_that_fails_for_a_while_is_tried_again(monkeypatch):
    world = make_world(50)
    world.start(m=20)

    def away(self, items):
        raise BackendError("The server is away.", permanent=False)

    with monkeypatch.context() as patch:
        patch.setattr(Recorded, "predict", away)
        job = world.project.jobs.get(kind="prepare_run")
        jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.QUEUED
    world.do("prepare_run")


def test_money_is_exact():
    world = make_world(30, costs=("0.000001", "0.1"))
    run = world.start(m=10, p=Decimal(1))
    world.do("prepare_run")
    amount = Spend.objects.get(run=run, stage=Spend.Stage.POOL).amount
    assert amount == Decimal("0.000030")
