"""What a manager may do with a run and when, and what people can break."""

from decimal import Decimal

import pytest
from django.db.models import Sum
from django.utils.translation import override

from annotation.errors import ConflictError
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import AuditEvent, Job, Label
from routing.delivery.deliver import deliver
from routing.models import Certificate, DrawItem, Prediction, Route, Run, Source, Spend
from routing.ports import CORRECTED
from routing.runs.cancel import cancel_run
from routing.runs.certify import analyse, mark_invalid
from routing.runs.ledger import ledger
from routing.runs.queries import run_report
from routing.runs.route import route
from routing.runs.spending import paid_by, savings
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]


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


def test_routing_waits_while_another_run_has_the_models_and_the_people():
    world = make_world(200)
    first = world.analysed(m=60)
    second = world.start(m=60)
    with pytest.raises(ConflictError, match="Run 2 is under way"):
        route(run=first, user=world.manager)
    cancel_run(run=second, user=world.manager)
    route(run=first, user=world.manager)
    world.do("route_run")
    assert Route.objects.filter(run=first).count() == 200


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


def test_a_run_whose_routing_cannot_go_on_can_be_cancelled():
    world = make_world(100)
    run = world.analysed(m=40)
    job = route(run=run, user=world.manager)
    Source.objects.filter(position=1).update(params={"label_column": "another"})
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    assert "or cancel the run" in job.error
    cancel_run(run=run, user=world.manager)
    assert run.state == Run.State.CANCELLED


def test_cancelling_stops_an_analysis_before_its_certificate():
    world = make_world(100)
    run = world.calibrated(m=40)
    job = analyse(run=run, user=world.manager)
    cancel_run(run=run, user=world.manager)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.CANCELLED
    assert not Certificate.objects.exists()


def test_a_project_is_deleted_with_all_that_is_in_it():
    world = make_world(60)
    run = world.complete(m=20)
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    other = make_world(30).analysed(m=10)
    world.project.delete()
    assert list(Run.objects.all()) == [other]
    assert {label.item.project for label in Label.objects.all()} == {other.project}


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


def test_answers_that_a_cancelled_run_paid_count_in_the_net_saving_of_the_next():
    world = make_world(300)
    cancelled = world.calibrated(m=40)
    labels = Label.objects.count()
    cancel_run(run=cancelled, user=world.manager)
    run = world.complete(m=40)

    rows = {(row.source, row.stage): row for row in paid_by(run)}
    first = world.project.sources.get(position=1)
    assert (first.name, "pool") not in rows
    assert rows[first.name, "reused"].quantity == run.pool_size == 300 - labels
    used = Prediction.objects.filter(item__in=run.pool_items.values("item"))
    by_hand = sum(prediction.cost for prediction in used.filter(source=first))
    later = used.exclude(source=first)
    needed = set(run.pilot_items.values_list("item", flat=True))
    needed |= set(run.draw.items.filter(asked=True).values_list("item", flat=True))
    needed |= set(run.routes.filter(position=2).values_list("item", flat=True))
    by_hand += sum(prediction.cost for prediction in later if prediction.item_id in needed)
    people = Spend.objects.filter(run=run, source=None).aggregate(total=Sum("amount"))["total"]
    saved = savings(run, paid_by(run))
    assert saved.paid == by_hand + people
    assert saved.net == 1 - (by_hand + people) / (run.pool_size * run.human_cost)


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
    assert run.invalid_reasons == []
    assert f'"label":"{other}"' in next(
        line for line in run.certificate.draw_lines.splitlines() if f'"{label.item.external_id}"' in line
    )


def test_a_correction_between_the_lock_and_the_analysis_leaves_nothing_certified_for_programs():
    world = make_world(400, error=(lambda u: 0.6 * u * u, lambda u: 0.3 * u * u))
    run = world.calibrated(m=200, epsilon="0.1", alpha="0.1")
    analyse(run=run, user=world.manager)
    label = Label.objects.first()
    other = next(key for key in ("cat", "dog") if key != label.value)
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="c-0001-abcdef")
    world.do("analyse_run")
    assert Certificate.objects.get().certified, "the label that was locked counts"
    assert Job.objects.get(kind="analyse_run").result == {"certified": False}


def test_a_correction_after_the_lock_marks_the_run_invalid_everywhere():
    world = make_world(100)
    run = world.analysed(m=40)
    before = run.certificate.document
    label = Label.objects.first()
    other = next(key for key in ("cat", "dog") if key != label.value)
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="c-0001-abcdef")
    run.refresh_from_db()
    assert label.item.external_id in run.broken_by[0]
    assert run_report(run).invalid_reasons == run.broken_by
    with override("fr"):
        assert run.broken_by[0].startswith("L’étiquette de calibration de l’élément")
        # Whatever language the same was found in, it is the same.
        mark_invalid(run=run, why=CORRECTED, params={"item": label.item.external_id}, actor=None)
    assert len(run.broken_by) == 1
    assert AuditEvent.objects.filter(action="run.marked_invalid", target="run:1").count() == 1
    run.certificate.refresh_from_db()
    assert run.certificate.document == before
