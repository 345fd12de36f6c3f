"""A loss that may be slow is computed by jobs alone: no page and no label that is stored waits for it."""

from decimal import Decimal
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import Job, Label
from routing.common import computed_losses
from routing.core.losses import LossError, LossUnavailableError
from routing.core.messages import say
from routing.core.reference.sources import CHECKED
from routing.models import ComputedLoss, ExpertRequest, Run
from routing.runs.expert.audit import audit_state
from routing.runs.expert.report import audit_in_words
from routing.runs.later.audit import later_audit_state
from routing.runs.later.report import later_audit_in_words
from routing.runs.later.take_in import take_in
from testbed.experts import ExpertWorld
from testbed.worlds import CHOICES, World, make_world, rows_of
from tests.logged_in import client_of  # noqa: F401 - a fixture
from tests.routing.runs.slow_loss import PATH, SLOW, Slow, compute_all

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]

COMPUTING = "is still being computed"


@pytest.fixture(autouse=True)
def slow(settings: Any, monkeypatch: Any) -> Slow:
    settings.HYPAC_LOSSES = [PATH]
    # Else the audit of later items is for losses of HyPAC's own, of which the slow one takes seconds.
    monkeypatch.setattr("routing.runs.later.plan.counts_errors", lambda loss: True)
    SLOW.pairs.clear()
    return SLOW


def later_run(count: int = 60) -> tuple[World, Run]:
    """A run with an audit of later items, all of them marked, that has taken in some."""
    world = make_world(500)
    run = world.complete(target="population", m=200, p=Decimal(1), later_audit_share=Decimal(1), loss=PATH)
    world.arrive(count)
    take_in(run=run, user=world.manager)
    world.do("take_in")
    run.refresh_from_db()
    return world, run


class TestLaterAudit:
    def test_no_label_waits_for_a_loss_and_the_job_counts_it(self, slow: Slow) -> None:
        world, run = later_run()
        slow.pairs.clear()
        assert world.label()
        assert not slow.pairs
        run.refresh_from_db()
        state = later_audit_state(run)
        assert state.computing
        assert state.audited < 60
        assert any(COMPUTING in words for words in later_audit_in_words(run, state))
        assert run.state == Run.State.LABELLING  # the audit may still sound its alarm
        assert compute_all(world.project)
        asked = len(slow.pairs)
        assert 0 < asked == len(set(slow.pairs))
        run.refresh_from_db()
        state = later_audit_state(run)
        assert (state.audited, state.computing, run.state) == (60, False, Run.State.COMPLETE)
        assert not any(COMPUTING in words for words in later_audit_in_words(run, state))
        by_models = [row for row in rows_of(run) if row.external_id in names_of(run)]
        assert by_models
        assert len(slow.pairs) == asked

    def test_an_alarm_is_raised_by_the_job(self, slow: Slow) -> None:
        world, run = later_run()
        world.label(answer=lambda item: next(c for c in CHOICES if c != world.truth[item.external_id]))
        run.refresh_from_db()
        assert run.audit_alarm_at is None
        compute_all(world.project)
        run.refresh_from_db()
        assert run.audit_alarm_at is not None
        assert run.broken_by

    def test_a_correction_counts_anew_once_its_loss_is_computed(self, slow: Slow) -> None:
        world, run = later_run()
        world.label()
        compute_all(world.project)
        run.refresh_from_db()
        before = later_audit_state(run)
        label = Label.objects.filter(work_item__batch=run.later_audit_batch).order_by("pk").first()
        assert label is not None
        slow.pairs.clear()
        other = next(one for one in CHOICES if one != label.value)
        queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="again")
        assert not slow.pairs
        compute_all(world.project)
        run.refresh_from_db()
        after = later_audit_state(run)
        assert after.audited == before.audited
        assert abs(after.differ - before.differ) == 1


def names_of(run: Run) -> set[str]:
    return set(run.audited_items.values_list("item__external_id", flat=True))


class TestExpert:
    def test_second_looks_and_audits_wait_for_the_job_and_are_the_same(self, slow: Slow) -> None:
        here = ExpertWorld(240, error=0.2)
        run = here.routed(here.start(loss=PATH, audit_share=Decimal("0.3"), accepted_error=Decimal("0.6")))
        slow.pairs.clear()
        while here.label(*here.world.annotators, *here.experts):
            pass
        assert not slow.pairs
        run.refresh_from_db()
        assert run.state == Run.State.LABELLING
        checked = run.routes.filter(position=run.run_sources.count() + CHECKED + 1)
        items = list(checked.values_list("item", flat=True))
        assert items
        assert not ExpertRequest.objects.filter(run=run, item__in=items, why="second_look").exists()
        state = audit_state(run)
        while compute_all(here.world.project) or here.label(*here.experts):
            pass
        run.refresh_from_db()
        assert run.state == Run.State.COMPLETE
        last = run.run_sources.select_related("source").order_by("position").last()
        best = {row.item_id: row.value for row in last.source.predictions.filter(item__in=items)}
        said = Label.objects.filter(work_item__batch=run.routed_batch, superseded_by=None, item__in=items)
        differ = {label.item_id for label in said if label.value != best.get(label.item_id)}
        assert differ
        asked = ExpertRequest.objects.filter(run=run, item__in=items, why="second_look")
        assert set(asked.values_list("item", flat=True)) == differ
        found = audit_state(run)
        assert found.audited >= state.audited
        assert not found.computing
        audits = ExpertRequest.objects.filter(run=run, why="audit").count()
        assert found.audited == audits
        assert not any(COMPUTING in words for words in audit_in_words(run, found))


class TestPages:
    @pytest.mark.parametrize("page", ["progress", "source_health"])
    def test_a_page_says_that_losses_are_computed_and_then_shows_them(
        self,
        slow: Slow,
        client_of: Any,  # noqa: F811
        page: str,
    ) -> None:
        world = make_world(120)
        world.routed(m=60, p=Decimal(1), loss=PATH)
        world.label()
        slow.pairs.clear()
        source = world.project.sources.get(position=1)
        args = [world.project.slug, *([source.pk] if page == "source_health" else [])]
        client = client_of(world.manager)

        def shown() -> str:
            return client.get(reverse(page, args=args)).content.decode()

        assert "losses are still being computed" in shown().lower()
        assert not slow.pairs
        shown()
        assert world.project.jobs.filter(kind="compute_losses").count() == 1
        compute_all(world.project)
        assert 0 < len(slow.pairs) <= 9
        assert not ComputedLoss.objects.exclude(label="", answer="").exists()
        slow.pairs.clear()
        assert "losses are still being computed" not in shown().lower()
        assert not slow.pairs

    def test_a_score_that_is_learnt_says_that_it_has_to_wait(self, slow: Slow, client_of: Any) -> None:  # noqa: F811
        world = make_world(120)
        world.complete(m=40, loss=PATH)
        slow.pairs.clear()
        body = {"epsilon": "0.1", "alpha": "0.1", "m": 20, "score": "calibrated", "loss": PATH}
        address = f"/api/v1/projects/{world.project.slug}/plan/"
        answered = client_of(world.manager).post(address, body, content_type="application/json")
        assert not slow.pairs
        assert "still being computed" in answered.content.decode(), answered.content


def test_a_loss_that_cannot_be_computed_now_is_tried_again(slow: Slow, monkeypatch: Any) -> None:
    world, run = later_run()
    world.label()

    job = world.project.jobs.get(kind="compute_losses", state=Job.State.QUEUED)
    with monkeypatch.context() as patched:
        patched.setattr("routing.runs.compute_losses.each_loss", fails_always)
        assert not jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.QUEUED
    assert job.error
    compute_all(world.project)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE


def test_a_loss_that_nobody_can_compute_any_more_keeps_no_other_back(slow: Slow) -> None:
    """And no look at a page begins a job anew that has just failed for good."""
    world, run = later_run(20)
    gone = {"pair": "0" * 64, "loss": "gone.module:LOSS", "params": "{}", "label": "a", "answer": "b"}
    world.project.computed_losses.create(**gone)
    world.label()
    tried = world.project.jobs.filter(kind="compute_losses")
    jobs.run(tried.get(state=Job.State.QUEUED).pk)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    assert "gone.module" in tried.get().error
    for _look in range(3):
        computed_losses.have_computed(world.project)
    assert tried.count() == 1
    tried.update(finished_at=timezone.now() - 2 * computed_losses.PAUSE)
    computed_losses.have_computed(world.project)
    assert tried.count() == 2


def test_a_label_has_its_loss_computed_whatever_failed_a_moment_ago(slow: Slow) -> None:
    world, run = later_run(20)
    gone = {"pair": "0" * 64, "loss": "gone.module:LOSS", "params": "{}", "label": "a", "answer": "b"}
    world.project.computed_losses.create(**gone)

    def work() -> None:
        while job := world.project.jobs.filter(kind="compute_losses", state=Job.State.QUEUED).first():
            jobs.run(job.pk)

    world.label(limit=3)
    work()
    world.label()
    work()
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE


def test_what_failed_for_good_hides_nothing_that_may_help_itself(slow: Slow, monkeypatch: Any) -> None:
    world, _run = later_run(20)
    gone = {"pair": "0" * 64, "loss": "gone.module:LOSS", "params": "{}", "label": "a", "answer": "b"}
    world.project.computed_losses.create(**gone)
    world.label()
    job = world.project.jobs.get(kind="compute_losses", state=Job.State.QUEUED)
    monkeypatch.setattr("routing.runs.compute_losses.each_loss", fails_always)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.QUEUED


def test_the_last_label_needs_no_loss_where_nothing_is_compared_any_more(monkeypatch: Any) -> None:
    world = make_world(200)
    run = world.routed(m=60, p=Decimal(1), loss=PATH)

    def gone(*_given: Any, **_more: Any) -> None:
        raise LossError(say("own.not_callable", path=PATH))

    monkeypatch.setattr("routing.common.computed_losses.make_loss", gone)
    world.label()
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE


def fails_always(*_given: Any) -> None:
    raise LossUnavailableError(say("cosine_distance.failed", path="there", error="it is down"))


def test_a_forecast_waits_for_the_losses_and_is_not_remembered_without_them(
    slow: Slow,
    client_of: Any,  # noqa: F811
) -> None:
    world = make_world(400, human_cost="40")
    world.project.loss = PATH
    world.project.save()
    client = client_of(world.manager)
    plan = {"epsilon": "10", "alpha": "10", "target": "dataset", "m": "120", "p": "1", "loss": PATH}

    def shown() -> str:
        answered = client.get(reverse("plan_outlook", args=[world.project.slug]), plan)
        assert answered.status_code == 200
        return answered.content.decode()

    client.post(reverse("plan", args=[world.project.slug]), plan | {"measure": "1"})
    page = shown()
    assert "once their losses are computed" in page
    assert "Measure first" not in page
    assert not slow.pairs
    assert compute_all(world.project) == 1
    assert slow.pairs
    slow.pairs.clear()
    page = shown()
    assert "Expected net saving" in page
    assert not slow.pairs
