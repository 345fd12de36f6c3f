"""What a manager may do with a run and when; what breaks it; who sees what."""

from decimal import Decimal

import pytest

from annotation import hooks, queue
from annotation.errors import ConflictError, InputError
from annotation.models import AuditEvent, Job, Label, WorkItem
from annotation.permissions import access_to
from annotation.services.projects import ChoiceSpec, set_choices
from routing.core import sampling
from routing.models import Draw, DrawItem, PoolItem, Prediction, Route, Run, Spend
from routing.selectors.items import item_history, item_rows
from routing.selectors.ledger import ledger
from routing.selectors.overview import overview
from routing.selectors.runs import run_report
from routing.services.deliveries import deliver
from routing.services.runs import analyse, cancel_run, outlook, route, start_run
from routing.services.sources import delete_source, save_source
from tests.factories import add_member, make_items, make_project
from tests.routing.worlds import make_world

pytestmark = pytest.mark.django_db


# --- the freeze ---------------------------------------------------------------------------------------------


def test_pool_and_draw_can_be_recomputed_from_what_is_stored():
    world = make_world(150)
    run = world.start(m=60)
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


def test_everything_is_drawn_before_a_label_can_exist():
    run = make_world(100).start(m=40)
    assert Draw.objects.filter(run=run).exists()
    assert not WorkItem.objects.exists()
    assert run.calibration_batch is None


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
    seen = outlook(
        project=world.project, epsilon=Decimal("0.1"), alpha=Decimal("0.1"), m=80, p=Decimal("0.5")
    )
    assert seen.statistics.expected_human_labels == 40
    assert seen.calibration_cost == 320
    assert seen.model_cost == 200 + 2 * (40 + 40)  # pilot and asked items
    assert seen.people_only == 1600
    assert not Run.objects.exists()


# --- order of the steps -------------------------------------------------------------------------------------


def test_a_run_cannot_be_started_twice():
    world = make_world(100)
    world.start(m=40)
    with pytest.raises(ConflictError, match="Run 1 is under way"):
        world.start(m=40)
    assert Run.objects.count() == 1


def test_early_and_second_analyses_are_refused_in_words():
    world = make_world(100)
    run = world.start(m=40)
    with pytest.raises(ConflictError, match="cannot be analysed now"):
        analyse(run=run, user=world.manager)
    world.do("prepare_run")
    world.label(limit=5)
    run.refresh_from_db()
    with pytest.raises(ConflictError, match="still to be labelled"):
        analyse(run=run, user=world.manager)
    run.refresh_from_db()
    assert run.state == Run.State.CALIBRATING
    assert run.calibration_batch.locked_at is None
    world.finish()
    analyse(run=run, user=world.manager)
    with pytest.raises(ConflictError):
        analyse(run=run, user=world.manager)
    world.do("analyse_run")
    with pytest.raises(ConflictError, match="analysed once"):
        analyse(run=run, user=world.manager)


def test_routing_and_delivery_wait_for_their_turn():
    world = make_world(100)
    run = world.calibrated(m=40)
    with pytest.raises(ConflictError, match="before it is analysed"):
        route(run=run, user=world.manager)
    with pytest.raises(ConflictError, match="routed first"):
        deliver(run=run, user=world.manager)


def test_routing_twice_is_refused():
    world = make_world(100)
    run = world.routed(m=40)
    with pytest.raises(ConflictError, match="routed already"):
        route(run=run, user=world.manager)
    assert Route.objects.filter(run=run).count() == 100


def test_a_cancelled_run_asks_no_more_and_its_alpha_stays_charged():
    world = make_world(100)
    run = world.start(m=40)
    world.do("prepare_run")
    cancel_run(run=run, user=world.manager)
    assert world.label() == 0
    with pytest.raises(ConflictError):
        cancel_run(run=run, user=world.manager)
    second = world.start(m=40)
    assert [(entry.number, entry.alpha) for entry in ledger(second)] == [
        (1, Decimal("0.1")),
        (2, Decimal("0.1")),
    ]
    assert run_report(second).alpha_total == Decimal("0.2")


def test_cancelling_while_the_models_work_ends_their_job():
    world = make_world(100)
    run = world.start(m=40)
    cancel_run(run=run, user=world.manager)
    assert world.project.jobs.get(kind="prepare_run").state == Job.State.CANCELLED
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED


def test_a_second_run_covers_what_nobody_labelled_and_keeps_the_earlier_predictions():
    world = make_world(300)
    first = world.complete(m=40)
    labelled = set(Label.objects.values_list("item_id", flat=True))
    paid = Prediction.objects.count()
    second = world.start(m=20)
    assert second.number == 2
    assert set(second.pool_items.values_list("item_id", flat=True)).isdisjoint(labelled)
    assert second.pool_size == 300 - len(labelled)
    world.do("prepare_run")
    assert not Spend.objects.filter(run=second, stage=Spend.Stage.POOL).exists()
    assert Prediction.objects.count() >= paid
    assert [entry.number for entry in ledger(second)] == [1, 2]
    assert first.state == Run.State.COMPLETE


# --- blindness ----------------------------------------------------------------------------------------------


def test_nobody_sees_predictions_scores_draw_or_labels_before_the_analysis():
    world = make_world(100)
    run = world.calibrated(m=40)
    for user in (world.manager, add_member(world.project, "viewer"), add_member(world.project, "reviewer")):
        access = access_to(user, world.project.slug)
        page = item_rows(world.project, access, size=100)
        assert page.blind
        assert all(
            (row.label, row.annotator, row.uncertainty, row.routed_to) == (None,) * 4 for row in page.rows
        )
        assert item_rows(world.project, access, stage="labelled").total == 0
        assert item_rows(world.project, access, label="cat").total == 0
        asked = DrawItem.objects.filter(draw__run=run, asked=True)[0].item_id
        history = item_history(world.project, access, asked)
        assert not history.predictions
        assert not history.labels
        assert not history.routes
        assert set(history.data) == {"text"}  # the columns that hold predictions are not shown
    report = run_report(run)
    assert report.certificate is None
    assert report.thresholds == []
    assert report.observed_errors is None
    assert report.region is None
    assert hooks.hidden_batches(world.project) == {run.calibration_batch_id}


def test_after_the_analysis_those_who_may_see_predictions_do():
    world = make_world(100)
    world.routed(m=40)
    manager = access_to(world.manager, world.project.slug)
    page = item_rows(world.project, manager, size=100)
    assert not page.blind
    assert all(row.uncertainty is not None and row.routed_to is not None for row in page.rows)
    history = item_history(world.project, manager, page.rows[0].id)
    assert history.predictions
    assert "model1" in history.data
    reviewer = access_to(add_member(world.project, "reviewer"), world.project.slug)
    assert item_rows(world.project, reviewer).blind
    assert not item_history(world.project, reviewer, page.rows[0].id).predictions


def test_whoever_may_have_seen_predictions_cannot_label_the_next_blind_batch():
    world = make_world(200)
    add_member(world.project, "reviewer")
    world.complete(m=40)
    world.start(m=40)
    world.do("prepare_run")
    assert "annotators and reviewers" in hooks.blind_objection(world.project, world.manager)
    assert queue.claim(project=world.project, user=world.manager) is None
    assert queue.claim(project=world.project, user=world.annotators[0]) is not None


def test_the_manager_may_label_in_the_first_run():
    world = make_world(100)
    world.start(m=40)
    world.do("prepare_run")
    assert queue.claim(project=world.project, user=world.manager) is not None


def test_choices_stay_while_a_run_is_open():
    world = make_world(100)
    run = world.start(m=40)
    with pytest.raises(ConflictError, match="Run 1"):
        set_choices(project=world.project, user=world.manager, choices=[ChoiceSpec("yes"), ChoiceSpec("no")])
    cancel_run(run=run, user=world.manager)
    assert hooks.schema_objection(world.project) == ""


# --- people who cannot, and people who change their mind ----------------------------------------------------


def test_what_nobody_can_label_counts_against_the_models_and_is_never_asked_again():
    world = make_world(150)
    run = world.start(m=60)
    world.do("prepare_run")
    odd = set(
        DrawItem.objects.filter(draw__run=run, asked=True).values_list("item__external_id", flat=True)[:3]
    )
    world.label(answer=lambda item: None if item.external_id in odd else world.truth[item.external_id])
    run.refresh_from_db()
    with pytest.raises(ConflictError, match="given up"):
        analyse(run=run, user=world.manager)
    assert world.give_up_all() == 3
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    run.refresh_from_db()
    report = run_report(run)
    assert report.unanswered == 3
    assert "3 items" in report.sentence
    route(run=run, user=world.manager)
    world.do("route_run")
    run.refresh_from_db()
    if run.routed_batch:
        asked_again = run.routed_batch.work_items.values_list("item__external_id", flat=True)
        assert odd.isdisjoint(asked_again)


def test_a_correction_before_the_lock_is_used_and_harmless():
    world = make_world(100)
    run = world.calibrated(m=40)
    label = Label.objects.first()
    other = next(key for key in ("cat", "dog") if key != label.value)
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="c-0001-abcdef")
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    run.refresh_from_db()
    assert run.invalid_reason == ""
    assert f'"label":"{other}"' in next(
        line for line in run.certificate.draw_lines.splitlines() if f'"{label.item.external_id}"' in line
    )


def test_a_correction_after_the_lock_marks_the_run_invalid_everywhere():
    world = make_world(100)
    run = world.analysed(m=40)
    before = run.certificate.document
    label = Label.objects.first()
    other = next(key for key in ("cat", "dog") if key != label.value)
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="c-0001-abcdef")
    run.refresh_from_db()
    assert label.item.external_id in run.invalid_reason
    assert run_report(run).invalid_reasons == [run.invalid_reason]
    assert AuditEvent.objects.filter(action="run.marked_invalid", target="run:1").count() == 1
    run.certificate.refresh_from_db()
    assert run.certificate.document == before


# --- sources ------------------------------------------------------------------------------------------------


def _change_first_source(world):
    source = world.project.sources.get(position=1)
    return save_source(
        project=world.project,
        user=world.manager,
        name=source.name,
        backend=source.backend,
        params={"label_column": "model2", "confidence_column": "confidence1"},
        cost_per_label=source.cost_per_label,
        source=source,
    )


def test_a_source_that_changed_is_refused_at_routing_and_the_run_marked_invalid():
    world = make_world(100)
    run = world.analysed(m=40)
    _change_first_source(world)
    with pytest.raises(ConflictError, match="Model 1 was changed"):
        route(run=run, user=world.manager)
    run.refresh_from_db()
    assert run.state == Run.State.ANALYSED
    assert "Model 1 was changed" in run.invalid_reason
    assert not Route.objects.exists()


def test_a_source_cannot_be_changed_under_a_run_but_its_price_can():
    world = make_world(100)
    run = world.start(m=40)
    with pytest.raises(ConflictError, match="under way"):
        _change_first_source(world)
    source = world.project.sources.get(position=1)
    save_source(
        project=world.project,
        user=world.manager,
        name=source.name,
        backend=source.backend,
        params=source.params,
        cost_per_label=Decimal(5),
        source=source,
    )
    assert run.run_sources.get(position=1).cost_per_label == 1
    with pytest.raises(ConflictError, match="belongs to a run"):
        delete_source(source=source, user=world.manager)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"name": "Model 1"}, "name"),
        ({"name": " "}, "name"),
        ({"position": 1}, "position"),
        ({"cost_per_label": Decimal(-1)}, "cost_per_label"),
        ({"backend": "oracle"}, "backend"),
        ({"params": {}}, "label_column"),
        ({"params": {"label_column": "model9"}}, "label_column"),
        ({"params": {"label_column": "model1", "colour": "red"}}, "colour"),
    ],
)
def test_a_source_that_cannot_be_is_refused_by_field(changes, where):
    world = make_world(10)
    fields = {
        "name": "New",
        "backend": "recorded",
        "params": {"label_column": "model1"},
        "cost_per_label": Decimal(1),
    }
    with pytest.raises(InputError) as caught:
        save_source(project=world.project, user=world.manager, **(fields | changes))
    assert caught.value.where == where
    assert world.project.sources.count() == 2


def test_an_unused_source_can_be_deleted():
    world = make_world(10)
    delete_source(source=world.project.sources.get(position=2), user=world.manager)
    assert world.project.sources.count() == 1


# --- overview -----------------------------------------------------------------------------------------------


def test_the_overview_names_the_next_step_all_along_the_way():
    world = make_world(100)
    access = access_to(world.manager, world.project.slug)

    def step():
        return overview(world.project, access).next_step.url_name

    assert step() == "plan"
    run = world.start(m=40)
    assert step() == ""
    assert overview(world.project, access).active
    world.do("prepare_run")
    assert step() == "annotate"
    world.finish()
    assert step() == "run_analyse"
    run.refresh_from_db()
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    assert step() == "run_route"
    run.refresh_from_db()
    route(run=run, user=world.manager)
    world.do("route_run")
    world.finish()
    assert step() == "run_deliver"
    run.refresh_from_db()
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    view = overview(world.project, access)
    assert view.next_step.url_name == "deliveries"
    assert {stage.state for stage in view.stages} == {"done"}
    assert view.savings.final
    assert not view.active


def test_the_overview_of_an_empty_project_and_of_an_annotator():
    project = make_project()
    owner = overview(project, access_to(project.created_by, project.slug))
    assert owner.next_step.url_name == "import_upload"
    annotator = overview(project, access_to(add_member(project), project.slug))
    assert annotator.next_step.url_name == ""
    assert annotator.spend == []
    assert annotator.savings is None
    make_items(project, 3)
    assert overview(project, access_to(project.created_by, project.slug)).next_step.url_name == "sources"


def test_the_overview_shows_a_job_that_failed():
    world = make_world(100)
    world.start(m=40)
    world.project.jobs.filter(kind="prepare_run").update(state=Job.State.FAILED, error="no power")
    view = overview(world.project, access_to(world.manager, world.project.slug))
    assert view.failed_job.error == "no power"
    assert next(stage for stage in view.stages if stage.key == "predict").state == "failed"
    assert view.next_step.url_name == "job"


def test_items_come_page_by_page_both_ways():
    project = make_project()
    make_items(project, 7)
    access = access_to(project.created_by, project.slug)
    first = item_rows(project, access, size=3)
    assert [row.external_id for row in first.rows] == ["t0", "t1", "t2"]
    assert first.previous is None
    assert first.total == 7
    second = item_rows(project, access, size=3, after=first.next)
    third = item_rows(project, access, size=3, after=second.next)
    assert [row.external_id for row in third.rows] == ["t6"]
    assert third.next is None
    back = item_rows(project, access, size=3, before=third.previous)
    assert [row.external_id for row in back.rows] == ["t3", "t4", "t5"]
    assert item_rows(project, access, q="text 4").total == 1
    with pytest.raises(InputError):
        item_rows(project, access, stage="nowhere")
