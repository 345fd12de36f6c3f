"""What a run fixes before anything is known."""

from decimal import Decimal

import pytest
from django.db.models import Max

from annotation.errors import InputError
from annotation.jobs import jobs
from annotation.models import Job, WorkItem
from routing.core import sampling
from routing.models import Draw, DrawItem, PoolItem, Prediction, Run
from routing.runs import start
from routing.runs.cancel import cancel_run
from routing.runs.plan import outlook_of_plan
from routing.runs.start import start_run
from routing.sources.manage import save_source
from testbed.factories import make_items, make_project
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


def test_pool_and_draw_can_be_recomputed_from_what_is_stored():
    world = make_world(150)
    run = world.calibrating(m=60)
    names = [f"t{index}" for index in range(150)]
    pool = run.pool_items.order_by("position").values_list("item__external_id", "v")
    assert [name for name, _ in pool] == names
    assert [v for _, v in pool] == sampling.tie_breaks(run.salt, names).tolist()
    assert run.pool_hash == sampling.pool_hash(names)
    drawn = sampling.draw_calibration(pool_size=150, m=60, p=Decimal("0.9"), entropy=7)
    stored = DrawItem.objects.filter(draw__run=run).order_by("order")
    assert [row.item.position for row in stored] == drawn.positions.tolist()
    assert [row.asked for row in stored] == drawn.asked.tolist()
    assert run.draw.n == drawn.asked.sum()


def test_pool_and_pilot_are_frozen_at_once_and_nothing_is_drawn_before_models_have_answered():
    run = make_world(400, human_cost="40").start(m=40)
    assert run.pool_items.count() == 400
    assert run.pilot_items.exists()
    assert not Draw.objects.filter(run=run).exists()
    assert not WorkItem.objects.exists()
    assert run.calibration_batch is None


class TestOfALargePool:
    """The request that starts the run leaves it to the job."""

    def test_the_job_draws_what_the_request_would_have_drawn(self, monkeypatch):
        at_once = make_world(150).calibrating(m=60)
        world = made_later(monkeypatch)
        run = world.start(m=60)
        assert not run.pool_items.exists()
        assert not Draw.objects.filter(run=run).exists()
        make_items(world.project, 3)  # imported before the job begins
        world.do("prepare_run")
        run.refresh_from_db()
        assert run.state == Run.State.CALIBRATING
        assert frozen(run) == frozen(at_once)

    def test_probabilities_of_a_column_are_read_again(self, monkeypatch):
        def likely(index, row):
            row["likely"] = "0.5" if index % 2 else "0.9"

        at_once = make_world(150, change=likely).calibrating(m=60, p=None, p_column="likely")
        world = made_later(monkeypatch, change=likely)
        run = world.start(m=60, p=None, p_column="likely")
        world.do("prepare_run")
        run.refresh_from_db()
        assert frozen(run) == frozen(at_once)

    def test_no_model_is_asked_before_and_a_changed_pool_is_refused(self, monkeypatch):
        world = made_later(monkeypatch)
        run = world.start(m=60)
        world.project.items.get(position=149).delete()
        job = Job.objects.get(kind="prepare_run", project=world.project)
        jobs.run(job.pk)
        job.refresh_from_db()
        assert job.state == Job.State.FAILED
        assert "items changed" in job.error
        assert not Prediction.objects.exists()
        assert not run.pool_items.exists()
        cancel_run(run=run, user=world.manager)


def made_later(monkeypatch, **fields):
    world = make_world(150, **fields)
    monkeypatch.setattr(start, "AT_ONCE", 100)
    return world


def frozen(run):
    drawn = run.draw.items.order_by("order").values_list("item__external_id", "asked", "probability")
    pool = run.pool_items.order_by("position").values_list("item__external_id", "v")
    pilot = run.pilot_items.order_by("order").values_list("item__external_id", flat=True)
    return run.pool_hash, run.draw.n, list(pool), list(drawn), list(pilot)


def test_two_runs_of_one_plan_differ_in_their_draw_unless_the_entropy_is_given():
    world = make_world(100)
    first = world.start(m=40, entropy=None)
    cancel_run(run=first, user=world.manager)
    second = world.start(m=40, entropy=None)
    assert first.entropy != second.entropy


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"m": 101}, "m"),
        ({"m": 0}, "m"),
        ({"epsilon": Decimal(0)}, "epsilon"),
        ({"epsilon": Decimal("1.5")}, "epsilon"),
        ({"epsilon": Decimal("0.123456789")}, "epsilon"),
        ({"alpha": Decimal(1)}, "alpha"),
        ({"p": Decimal(0)}, "p"),
        ({"target": "everything"}, "target"),
        ({"score": "mood"}, "score"),
        ({"entropy": -1}, "entropy"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_by_field_and_nothing_is_stored(fields, where):
    world = make_world(100)
    with pytest.raises(InputError) as caught:
        world.start(**({"m": 40} | fields))
    assert caught.value.where == where
    assert not Run.objects.exists()
    assert not PoolItem.objects.exists()
    assert not Job.objects.filter(kind="prepare_run").exists()


def test_a_run_needs_items_and_a_model():
    project = make_project()
    plan = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 5, "p": Decimal(1)}
    with pytest.raises(InputError, match="add a source"):
        start_run(project=project, user=project.created_by, **plan)
    save_source(
        project=project,
        user=project.created_by,
        name="A",
        backend="recorded",
        params={"label_column": "x"},
        cost_per_label=Decimal(1),
    )
    with pytest.raises(InputError, match="import data"):
        start_run(project=project, user=project.created_by, **plan)


def test_the_outlook_counts_labels_and_money():
    world = make_world(200)
    seen = outlook_of_plan(
        project=world.project, epsilon=Decimal("0.1"), alpha=Decimal("0.1"), m=80, p=Decimal("0.5")
    )
    assert seen.statistics.expected_human_labels == 40
    assert seen.calibration_cost == 320
    assert seen.model_cost == 200 + 2 * (seen.pilot_size + 40)
    assert seen.people_only == 1600
    assert seen.warnings == ()
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"label_column": "text", "confidence_column": "confidence1"}, "none of the 60 items looked at"),
        ({"label_column": "model1"}, "no column of confidences"),
    ],
)
def test_the_outlook_warns_of_recorded_columns_that_cannot_serve(params, message):
    world = make_world(60)
    source = world.project.sources.get(position=1)
    source.params = params
    source.save(update_fields=["params"])
    plan = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 40, "p": Decimal("0.5")}
    (warning,) = outlook_of_plan(project=world.project, **plan).warnings
    assert message in warning


def test_a_population_is_not_sampled_from_what_thresholds_left_over():
    world = make_world(300, error=(lambda u: u**2,), costs=("1",))
    first = world.complete(m=120)
    left = first.pool_items.filter(item__labels__isnull=True)
    hardest = left.aggregate(Max("u"))["u__max"]
    assert hardest < 0.8  # whom people were given was chosen by the score
    with pytest.raises(InputError, match="import new items") as refused:
        world.start(m=20, target="population")
    assert refused.value.where == "target"
    make_items(world.project, 50, data={"model1": "cat", "confidence1": "0.9"})
    assert world.start(m=20, target="population").pool_size == 50
